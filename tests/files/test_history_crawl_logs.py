"""Crawl logs in: formats, times, flags, where changes are placed, and the sentences for bad ones."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_cases import write

from recrawl.errors import InvalidFile
from recrawl.files.crawl_log_file import read_crawl_log
from recrawl.files.history import CHANGED, CREATED, ChangeHistory, open_history

pytestmark = pytest.mark.usefixtures("csv_reader")


URLS = ["https://a.example/", "https://b.example/"]
ROWS: list[tuple[str, Any, Any]] = [
    (URLS[0], 1_700_000_000, 1),
    (URLS[1], 1_700_000_100, 0),
    (URLS[0], 1_700_086_400, 0),
    (URLS[0], 1_700_172_800, 1),
    (URLS[1], 1_700_172_900, 1),
]


def csv_of(rows: list[tuple[Any, ...]], header: str = "url,time,changed") -> str:
    """Rows as CSV."""
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


def save(folder: Path, ending: str) -> Path:
    """The rows above in a format."""
    columns = [list(column) for column in zip(*ROWS, strict=True)]
    names = ("url", "time", "changed")
    if ending == "parquet":
        pq.write_table(pa.table(dict(zip(names, columns, strict=True))), folder / "log.parquet")
        return folder / "log.parquet"
    if ending == "jsonl":
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in ROWS]
        return write(folder, "log.jsonl", "\n".join(lines))
    return write(folder, "log.csv", csv_of(ROWS))


def shape(history: ChangeHistory) -> tuple[Any, ...]:
    """All of a history as plain values."""
    events, crawls = history.events, history.crawls
    assert crawls is not None
    return (
        history.page_names, history.start, history.end,
        events.page.tolist(), events.time.tolist(), events.kind.tolist(),
        crawls.page.tolist(), crawls.time.tolist(), crawls.changed.tolist(),
    )  # fmt: skip


def refusal(path: Path) -> str:
    """The sentence that a bad log ends in, without its folder."""
    with pytest.raises(InvalidFile) as caught:
        open_history(path)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence.removeprefix(f"{path.parent}/")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_log_in_any_format(tmp_path: Path, ending: str) -> None:
    """Pages exist from their first crawl, changes lie in the interval that saw them, crawls are kept as they were."""
    history = open_history(save(tmp_path, ending), seed=5)
    assert history.name == "log"
    assert history.page_names == tuple(URLS)
    assert history.importance is None
    assert (history.start, history.end) == (1_700_000_000.0, 1_700_172_900.0)
    events = history.events
    assert events.kind.tolist() == [CREATED, CREATED, CHANGED, CHANGED]
    assert events.time[:2].tolist() == [1_700_000_000.0, 1_700_000_100.0]
    placed = dict(zip(events.page[2:].tolist(), events.time[2:].tolist(), strict=True))
    assert 1_700_086_400 < placed[0] <= 1_700_172_800
    assert 1_700_000_100 < placed[1] <= 1_700_172_900
    crawls = history.crawls
    assert crawls is not None
    assert crawls.page.tolist() == [0, 1, 0, 0, 1]
    assert crawls.time.tolist() == [float(time) for _, time, _ in ROWS]
    assert crawls.changed.tolist() == [True, False, False, True, True]


def test_formats_and_orders_of_rows_agree_to_the_bit(tmp_path: Path) -> None:
    """The same log gives the same history however it is written; another seed moves changes and nothing else."""
    whole = shape(open_history(save(tmp_path, "csv"), seed=3))
    assert whole == shape(open_history(save(tmp_path, "jsonl"), seed=3))
    assert whole == shape(open_history(save(tmp_path, "parquet"), seed=3))
    mixed = write(tmp_path, "mixed.csv", csv_of([ROWS[0], ROWS[1], ROWS[4], ROWS[3], ROWS[2]]))
    assert whole == shape(open_history(mixed, seed=3))
    other = shape(open_history(save(tmp_path, "csv"), seed=4))
    assert whole[6:] == other[6:]
    assert whole[4] != other[4]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1700000000", "1700086400.5"),
        ("2023-11-14T22:13:20Z", "2023-11-15T22:13:20.5Z"),
        ("2023-11-14T22:13:20", "2023-11-15 22:13:20.500"),
        ("2023-11-15T00:13:20+02:00", "2023-11-15T17:13:20.5-05:00"),
        ("1700000000", "2023-11-15T22:13:20.5+00:00"),
    ],
)
def test_times_as_seconds_and_as_dates(tmp_path: Path, first: str, second: str) -> None:
    """Unix seconds and ISO 8601, with a zone or in UTC, also mixed."""
    path = write(tmp_path, "log.csv", csv_of([("a", first, 0), ("a", second, 0)]))
    crawls = open_history(path).crawls
    assert crawls is not None
    assert crawls.time.tolist() == [1_700_000_000.0, 1_700_086_400.5]


@pytest.mark.parametrize(
    "times",
    [
        pa.array([dt.datetime(2023, 11, 14), dt.datetime(2023, 11, 15)], pa.timestamp("ms")),
        pa.array([dt.datetime(2023, 11, 14), dt.datetime(2023, 11, 15)], pa.timestamp("ns", "Europe/Berlin")),
        pa.array([dt.date(2023, 11, 14), dt.date(2023, 11, 15)]),
        pa.array([1_699_920_000.0, 1_700_006_400.0]),
        pa.array(["2023-11-14", "2023-11-15"]).dictionary_encode(),
    ],
    ids=lambda times: str(times.type),
)
def test_times_of_parquet(tmp_path: Path, times: Any) -> None:
    """Timestamps, dates, numbers and text; a timestamp with a zone is a moment, not a wall clock."""
    pq.write_table(pa.table({"url": ["a", "a"], "time": times, "changed": [True, False]}), tmp_path / "log.parquet")
    crawls = open_history(tmp_path / "log.parquet").crawls
    assert crawls is not None
    assert crawls.time.tolist() == [1_699_920_000.0, 1_700_006_400.0]


@pytest.mark.parametrize("yes", ["1", "true", "True", " TRUE ", "1.0"])
@pytest.mark.parametrize("no", ["0", "false", "False", "0.0"])
def test_flags_in_words(tmp_path: Path, yes: str, no: str) -> None:
    """0 and 1, true and false, in any case."""
    path = write(tmp_path, "log.csv", csv_of([("a", 1, no), ("a", 2, yes), ("a", 3, no)]))
    crawls = open_history(path).crawls
    assert crawls is not None
    assert crawls.changed.tolist() == [False, True, False]


@pytest.mark.parametrize("flags", [[False, True], [0, 1], [0.0, 1.0], ["0", True], ["false", 1]])
def test_flags_of_json(tmp_path: Path, flags: list[Any]) -> None:
    """Booleans, numbers and text, also mixed."""
    lines = [json.dumps({"url": "a", "time": index, "changed": flag}) for index, flag in enumerate(flags)]
    crawls = open_history(write(tmp_path, "log.jsonl", "\n".join(lines))).crawls
    assert crawls is not None
    assert crawls.changed.tolist() == [False, True]


def test_a_crawl_recorded_twice_counts_once(tmp_path: Path) -> None:
    """It saw a change if either row did."""
    path = write(tmp_path, "log.csv", csv_of([("a", 1, 0), ("a", 5, 1), ("a", 5, 0), ("a", 9, 0)]))
    history = open_history(path)
    assert history.crawls is not None
    assert history.crawls.time.tolist() == [1.0, 5.0, 9.0]
    assert history.crawls.changed.tolist() == [False, True, False]
    assert history.events.kind.tolist() == [CREATED, CHANGED]


def test_importance_is_that_of_the_last_crawl(tmp_path: Path) -> None:
    """By time, not by row."""
    rows = [("a", 9, 0, 4.0), ("b", 1, 0, 7.0), ("a", 2, 0, 1.0)]
    history = open_history(write(tmp_path, "log.csv", csv_of(rows, "url,time,changed,importance")))
    assert history.importance is not None
    assert history.importance.tolist() == [4.0, 7.0]


def test_changes_are_uniform_in_their_intervals(tmp_path: Path) -> None:
    """Over many intervals of one length, places have mean and variance of the uniform law."""
    rows = [(f"p{index}", time, 1) for index in range(4000) for time in (100, 200)]
    history = open_history(write(tmp_path, "log.csv", csv_of(rows)))
    placed = history.events.time[history.events.kind == CHANGED]
    share = (placed - 100) / 100
    assert len(share) == 4000
    assert share.mean() == pytest.approx(0.5, abs=0.02)
    assert share.var() == pytest.approx(1 / 12, rel=0.05)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([("a", 1, 0), ("a", "soon", 0)], "log.csv row 2: time is 'soon', but must be unix seconds or ISO 8601"),
        ([("a", 1, 0), ("a", "", 0)], "log.csv row 2: time is missing"),
        ([("a", "nan", 0), ("a", 1, 0)], "log.csv row 1: time is nan, but must be unix seconds, 0 or more"),
        ([("a", -1, 0), ("a", 1, 0)], "log.csv row 1: time is -1.0, but must be unix seconds, 0 or more"),
        ([("a", "inf", 0), ("a", 1, 0)], "log.csv row 1: time is inf, but must be unix seconds, 0 or more"),
        ([("a", 1700000000000, 0)], "log.csv row 1: time is 1.7e+12, which is no time in unix seconds"),
        ([("a", "1969-01-01", 0), ("a", 1, 0)], "log.csv row 1: time is -31536000.0"),
        ([("a", "2023-13-01", 0), ("a", 1, 0)], "log.csv row 1: time is '2023-13-01'"),
        ([("a", 1, 0), ("a", 2, "maybe")], "log.csv row 2: changed is 'maybe', but must be 0 or 1"),
        ([("a", 1, 0), ("a", 2, "2")], "log.csv row 2: changed is '2', but must be 0 or 1"),
        ([("a", 1, 0), ("a", 2, "")], "log.csv row 2: changed is missing: write 0 or 1 in every row"),
        ([("a", 1, 0), ("", 2, 0)], "log.csv row 2: url is missing: write it in every row"),
        ([("a", 1, 0), ("b", 2, 0)], "log.csv: has no page that was crawled twice"),
        ([("a", 1, 1), ("a", 1, 0)], "log.csv: has no page that was crawled twice"),
        ([], "log.csv: holds no crawls"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, rows: list[tuple[Any, ...]], sentence: str) -> None:
    """The sentence names file, row and field."""
    assert refusal(write(tmp_path, "log.csv", csv_of(rows))).startswith(sentence)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ((1.0, -1.0), "log.csv row 2: importance is -1.0, but must be 0 or more"),
        ((1.0, "nan"), "log.csv row 2: importance is nan, but must be a number"),
        ((0, 0), "log.csv: importance is 0 on every page"),
        ((1.0, ""), "log.csv row 2: importance is missing"),
    ],
)
def test_bad_importance_is_named(tmp_path: Path, values: tuple[Any, Any], sentence: str) -> None:
    """As in a file of pages."""
    rows = [("a", 1, 0, values[0]), ("a", 2, 0, values[1])]
    path = write(tmp_path, "log.csv", csv_of(rows, "url,time,changed,importance"))
    assert refusal(path).startswith(sentence)


@pytest.mark.parametrize("lost", ["url", "time", "changed"])
def test_a_missing_column_is_named_with_the_nearest(tmp_path: Path, lost: str) -> None:
    """A slip in a header is told."""
    header = "url,time,changed".replace(lost, lost + "s")
    sentence = refusal(write(tmp_path, "log.csv", csv_of(ROWS, header)))
    assert f"there is no column '{lost}'" in sentence
    assert f"did you mean '{lost}s'?" in sentence


@pytest.mark.parametrize(("name", "content"), [("log.jsonl", b""), ("log.csv", b""), ("log.parquet", b"PAR1"),
                                               ("log.csv.gz", b"\x1f\x8bnonsense"), ("log.txt", b"url")])  # fmt: skip
def test_unreadable_files_are_named(tmp_path: Path, name: str, content: bytes) -> None:
    """Empty, cut off, or of no known ending."""
    assert refusal(write(tmp_path, name, content)).startswith(f"{name}: ")


def test_names_cannot_command_a_terminal(tmp_path: Path) -> None:
    """Control characters in an address are replaced."""
    path = write(tmp_path, "log.csv", csv_of([("a\x1b[2J", 1, 0), ("a\x1b[2J", 2, 0)]))
    assert open_history(path).page_names == ("a\N{REPLACEMENT CHARACTER}[2J",)


def test_a_path_to_nothing_is_named(tmp_path: Path) -> None:
    """Whatever its ending."""
    for name in ("nothing", "nothing.csv"):
        assert refusal(tmp_path / name) == f"{name}: does not exist: check the name and the folder"


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50), st.booleans()), min_size=1, max_size=40),
    st.integers(0, 99),
)
@settings(deadline=None, max_examples=60)
def test_replaying_the_log_sees_what_the_log_saw(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, bool]], seed: int
) -> None:
    """Each crawl after the first of its page saw a change if and only if one lies since the crawl before."""
    path = write(tmp_path_factory.mktemp("log"), "log.csv", csv_of(rows))
    try:
        history = read_crawl_log(path, seed)
    except InvalidFile as error:
        assert "crawled twice" in str(error)  # noqa: PT017
        return
    events, crawls = history.events, history.crawls
    assert crawls is not None
    assert (np.diff(events.time) >= 0).all()
    assert (np.diff(crawls.time) >= 0).all()
    for page in range(len(history)):
        times = crawls.time[crawls.page == page]
        seen = crawls.changed[crawls.page == page]
        changes = events.time[(events.page == page) & (events.kind == CHANGED)]
        for before, now, changed in zip(times, times[1:], seen[1:], strict=False):
            assert bool(((changes > before) & (changes <= now)).sum()) == changed
