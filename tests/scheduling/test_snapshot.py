"""Snapshots: a restored scheduler does what the other would have done, and no input can do harm."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from invariants import check
from snapshot_workloads import Crawler, Forgery, scheduler_with_everything, tuning

import recrawl
from recrawl.scheduling.policies.registry import POLICY_NAMES
from recrawl.scheduling.snapshot import COLUMNS, TABLES, VERSION
from recrawl.scheduling.table.records import AT_HOST, BY_VALUE, FREE, HELD, IN_FLIGHT, QUEUED, READY, STANDING

PLANNED = ("edf", "lds", "poisson")
EXACT = [name for name in POLICY_NAMES if name not in ("price", *PLANNED)]


def crawled_for(steps: int, policy: str = "price", seed: int = 1) -> Crawler:
    crawler = Crawler(scheduler_with_everything(policy), seed)
    crawler.run(steps)
    return crawler


def check_that_both_go_on_alike(crawler: Crawler, restored: recrawl.Scheduler, steps: int = 60) -> None:
    twin = crawler.twin(restored)
    assert crawler.run(steps) == twin.run(steps)
    assert crawler.scheduler.snapshot() == restored.snapshot()
    assert crawler.scheduler.counts == restored.counts


def states(scheduler: recrawl.Scheduler) -> set[int]:
    table = scheduler._table
    return set(table.pages["state"][: table.used].tolist())


@pytest.fixture(scope="module")
def snapshot() -> bytes:
    """Of a scheduler whose pages wait in queues of all kinds, with free slots and pages in flight."""
    crawler = crawled_for(40)
    while not {FREE, QUEUED, READY, IN_FLIGHT, AT_HOST, HELD} <= states(crawler.scheduler):
        crawler.run(1)
    return crawler.scheduler.snapshot()


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("steps", [0, 1, 40, 200])
def test_a_restored_scheduler_gives_the_same_answers_bit_for_bit(steps: int, seed: int) -> None:
    crawler = crawled_for(steps, seed=seed)
    check_that_both_go_on_alike(crawler, recrawl.Scheduler.restore(crawler.scheduler.snapshot()))


def test_a_large_market_goes_on_alike_amid_crowds_and_sweeps() -> None:
    """Saturated hosts, learned rates, pages below the price, and a flood of new pages that rest until it is over."""
    random = np.random.default_rng(4)
    made = recrawl.Scheduler(budget=300.0, objective="freshness", burst=20.0)
    made.set_hosts(range(20), min_gap=random.choice([0.0, 0.02, 0.3], 20))
    made.add(importance=random.pareto(1.2, 3000) + 0.01, last_crawled=0.0)
    rates, hosts = 10 ** random.uniform(-2.0, 1.5, 3000), random.integers(0, 40, 3000)
    made.add(importance=random.pareto(1.2, 3000) + 0.01, change_rate=rates, last_crawled=0.0, host=hosts)
    seen, swept = set(), 0
    for step in range(90):
        if step == 50:
            rates, hosts = 10 ** random.uniform(-2.0, 1.0, 8000), random.integers(0, 40, 8000)
            made.add(importance=random.pareto(1.2, 8000) + 0.01, change_rate=rates, host=hosts)
        both = [made]
        if step % 10 == 5:
            seen |= states(made)
            swept += made._policy.state()["sweep_left"] > 0
            both.append(recrawl.Scheduler.restore(made.snapshot()))
            check(both[1])
        for hurry in range(5):
            now = made.now + 0.02
            batches = [each.take(now, 20) for each in both]
            changed = random.random(len(batches[0])) < 0.5
            for each, batch in zip(both, batches, strict=True):
                np.testing.assert_array_equal(batch.ids, batches[0].ids, err_msg=f"in step {step}, {hurry}")
                np.testing.assert_array_equal(batch.values, batches[0].values)
                each.crawled(batch.ids, now, changed=changed)
        assert all(each.snapshot() == made.snapshot() for each in both[1:])
    assert swept > 2
    assert {QUEUED, READY, STANDING, AT_HOST, BY_VALUE} <= seen


@pytest.mark.parametrize("policy", EXACT)
def test_policies_that_look_at_all_pages_go_on_alike_too(policy: str) -> None:
    crawler = crawled_for(30, policy)
    check_that_both_go_on_alike(crawler, recrawl.Scheduler.restore(crawler.scheduler.snapshot()), steps=30)


@pytest.mark.parametrize("policy", PLANNED)
def test_policies_that_follow_a_plan_begin_it_anew_and_lose_no_page(policy: str) -> None:
    made = recrawl.Scheduler(budget=10.0, policy=policy)
    made.add(importance=np.ones(10), change_rate=1.0, last_crawled=0.0)
    once = made.add(profit=np.ones(3), decay=0.1, objective="once")
    made.take(1.0, 1)
    restored = recrawl.Scheduler.restore(made.snapshot())
    taken: set[int] = set()
    for step in range(1, 60):
        batch = restored.take(1.0 + step / 10, 5)
        taken |= set(batch.ids.tolist())
        restored.crawled(batch.ids, restored.now)
    assert len(taken) == 12, "all but the one in flight"
    assert len(taken & set(once.tolist())) >= 2


def test_a_scheduler_that_waits_with_no_budget_goes_on_alike() -> None:
    crawler = crawled_for(40)
    made = crawler.scheduler
    made.set_budget(0.0, made.now)
    made.take(made.now + 1, 3)
    restored = recrawl.Scheduler.restore(made.snapshot())
    now = made.now + 1
    made.set_budget(5.0, now)
    restored.set_budget(5.0, now)
    check_that_both_go_on_alike(crawler, restored)


@pytest.mark.parametrize("pause", [0.5, 100.0, 1e5, 1e12])
def test_a_pause_after_restoring_is_like_any_other(pause: float) -> None:
    crawler = crawled_for(40)
    restored = recrawl.Scheduler.restore(crawler.scheduler.snapshot())
    now = crawler.scheduler.now + pause
    crawler.flying.extend(crawler.scheduler.take(now, 5).ids.tolist())
    restored.take(now, 5)
    check_that_both_go_on_alike(crawler, restored)


def test_bytes_paths_and_files_give_the_same_scheduler(tmp_path: Path, snapshot: bytes) -> None:
    path = tmp_path / "scheduler.snapshot"
    assert recrawl.Scheduler.restore(snapshot).snapshot(path) is None
    assert path.read_bytes() == snapshot
    with path.open("rb") as file:
        sources: list[Any] = [path, str(path), bytearray(snapshot), memoryview(snapshot), io.BytesIO(snapshot), file]
        for source in sources:
            assert recrawl.Scheduler.restore(source).snapshot() == snapshot


def test_a_file_is_read_from_where_it_stands_and_a_pipe_to_its_end(snapshot: bytes) -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    behind = io.BytesIO(b"before" + snapshot)
    behind.seek(6)
    assert recrawl.Scheduler.restore(behind).snapshot() == snapshot
    assert recrawl.Scheduler.restore(Pipe(snapshot)).snapshot() == snapshot


def test_an_empty_scheduler_can_be_kept() -> None:
    restored = recrawl.Scheduler.restore(recrawl.Scheduler(budget=2.0, now=5.0).snapshot())
    assert (len(restored), restored.now, restored.budget) == (0, 5.0, 2.0)
    restored.add(importance=1.0, change_rate=1.0)
    assert len(restored.take(6.0, 5)) == 1


def test_settings_and_the_prior_are_kept(snapshot: bytes) -> None:
    kept, given = recrawl.Scheduler.restore(snapshot)._tuning, tuning()
    assert (kept.signal_delay, kept.shortest_retry, kept.longest_retry, kept.memory) == (
        given.signal_delay,
        given.shortest_retry,
        given.longest_retry,
        given.memory,
    )
    assert kept.prior is not None
    assert given.prior is not None
    assert kept.prior.grid == given.prior.grid
    assert kept.prior.host_rows == {"shy": 0, 7: 1}, "names that no host of a scheduler can have are dropped"
    np.testing.assert_array_equal(kept.prior.weights, given.prior.weights)
    np.testing.assert_array_equal(kept.prior.host_weights, given.prior.host_weights)


def test_old_ids_stay_known_and_removed_ones_unknown() -> None:
    made = recrawl.Scheduler(budget=1.0)
    ids = made.add(importance=[1.0, 2.0, 3.0], change_rate=1.0)
    made.remove(ids[1])
    restored = recrawl.Scheduler.restore(made.snapshot())
    restored.update(ids[[0, 2]], importance=2.0)
    with pytest.raises(recrawl.UnknownPage):
        restored.remove(ids[1])
    assert restored.add(importance=1.0, change_rate=1.0) == made.add(importance=1.0, change_rate=1.0)


def test_the_original_is_not_tied_to_its_copy(snapshot: bytes) -> None:
    first, second = recrawl.Scheduler.restore(snapshot), recrawl.Scheduler.restore(snapshot)
    Crawler(first).run(20)
    assert second.snapshot() == snapshot


def test_a_snapshot_is_plain_columns_that_numpy_reads(snapshot: bytes) -> None:
    """Numbers without links: what is not written follows from what is."""
    with np.load(io.BytesIO(snapshot), allow_pickle=False) as archive:
        columns = dict(archive)
    facts = json.loads(columns["facts"].tobytes())
    assert facts["format"] == VERSION
    assert {name: column.dtype for name, column in columns.items()} == COLUMNS
    assert all(column.ndim == 1 for column in columns.values())
    left_out = {f"{table}.{name}" for table, (dtype, _) in TABLES.items() for name in dtype.names or ()} - set(columns)
    assert left_out == {
        *("pages.next", "pages.prev", "pages.child", "flights.next_free"),
        *("hosts.offer_at", "hosts.in_flight", "hosts.offered", "hosts.waiting"),
        *("hosts.by_due", "hosts.by_value", "hosts.place"),
    }
    restored = recrawl.Scheduler.restore(snapshot)
    assert restored._table.pages.ctypes.data % 64 == 0, "a page is one line of the cache"
    check(restored)


def test_an_empty_snapshot_is_small() -> None:
    assert len(recrawl.Scheduler(budget=1.0).snapshot()) < 20_000


def test_a_file_is_replaced_only_by_a_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    made = scheduler_with_everything()
    made.snapshot(path)
    before = path.read_bytes()
    with pytest.raises(recrawl.InvalidFile, match="cannot be written"):
        made.snapshot(tmp_path / "nowhere" / "kept")
    (tmp_path / "folder").mkdir()
    with pytest.raises(recrawl.InvalidFile, match="cannot be written"):
        made.snapshot(tmp_path / "folder")
    made.take(1.0, 3)
    made.snapshot(path)
    assert path.read_bytes() != before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["folder", "kept"]


def changed_at(snapshot: bytes, place: int, new: bytes) -> bytes:
    return snapshot[:place] + new + snapshot[place + len(new) :]


def data_of(snapshot: bytes, name: str) -> int:
    """Where the numbers of a column begin."""
    with zipfile.ZipFile(io.BytesIO(snapshot)) as archive:
        member = archive.getinfo(f"{name}.npy")
    return snapshot.index(b"\n", member.header_offset) + 1


def zipped(members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return stream.getvalue()


def members_of(snapshot: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(snapshot)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def with_member(snapshot: bytes, name: str, change: Callable[[bytes], bytes]) -> bytes:
    return zipped([(each, change(content) if each == name else content) for each, content in members_of(snapshot)])


def from_format(snapshot: bytes, version: int) -> bytes:
    forgery = Forgery(snapshot)
    forgery.facts["format"] = version
    return forgery.bytes()


def as_objects(snapshot: bytes) -> bytes:
    forgery = Forgery(snapshot)
    forgery.columns["pages.gain"] = forgery.columns["pages.gain"].astype(object)
    return forgery.bytes()


def with_facts(snapshot: bytes, content: bytes) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, facts=np.frombuffer(content, dtype=np.uint8), **Forgery(snapshot).columns)
    return stream.getvalue()


def enlarged(snapshot: bytes) -> bytes:
    """Let the list of columns say that the first one has a gigabyte."""
    listed = snapshot.index(b"PK\x01\x02")
    return changed_at(snapshot, listed + 24, (2**30).to_bytes(4, "little"))


def shortened(snapshot: bytes) -> bytes:
    forgery = Forgery(snapshot)
    forgery.columns["pages.law"] = forgery.columns["pages.law"][:-1]
    return forgery.bytes()


GAIN, VIRUS = "pages.gain.npy", ("virus.npy", b"x")
REFUSED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "nothing": ("is not a snapshot of a scheduler$", lambda _: b""),
    "text": ("is not a snapshot of a scheduler$", lambda _: b"importance,change_rate" * 9),
    "another archive": ("is not a snapshot of a scheduler$", lambda _: zipped([("a.npy", b"x")])),
    "an empty archive": ("is not a snapshot of a scheduler$", lambda _: zipped([])),
    "format 1": (
        "is of format 1, which this recrawl does not read: add the pages to a new scheduler$",
        lambda _: b"\x89RECRAWL\1\0\0\0" + bytes(100),
    ),
    "a newer format": (r"newer recrawl, in format 3 \(this one reads 2\): update", lambda made: from_format(made, 3)),
    "cut short": ("is cut short", lambda made: made[:-1]),
    "cut in the middle": ("is cut short", lambda made: made[: len(made) // 2]),
    "more after the end": ("goes on after its end$", lambda made: made + b"\0"),
    "a flipped bit": (
        "is damaged: Bad CRC-32 for file 'pages.gain.npy'",
        lambda made: changed_at(made, data_of(made, "pages.gain"), bytes([made[data_of(made, "pages.gain")] ^ 1])),
    ),
    "a flipped bit at the end of a column": (
        "is damaged: Bad CRC-32 for file 'facts.npy'",
        lambda made: made.replace(b"]}PK", b"}}PK"),
    ),
    "facts that are not JSON": ("facts are not JSON$", lambda made: with_facts(made, b"{")),
    "facts that are nested": ("facts are not JSON$", lambda made: with_facts(made, b"[" * 100_000)),
    "facts that are no facts": ("is damaged: Expected `object`, got `array`$", lambda made: with_facts(made, b"[]")),
    "a column less": (
        "the column 'pages.gain' is missing",
        lambda made: zipped([each for each in members_of(made) if each[0] != GAIN]),
    ),
    "a column more": ("the column 'virus' is missing or unknown", lambda made: zipped([*members_of(made), VIRUS])),
    "compressed": ("are compressed", lambda made: zipped(members_of(made), zipfile.ZIP_DEFLATED)),
    "larger than the file": ("larger than the file", enlarged),
    "pickles": ("pages.gain is not stored as plain numbers of type float64$", as_objects),
    "a column of another type": (
        "pages.gain is not stored as plain numbers of type float64$",
        lambda made: with_member(made, GAIN, lambda content: content.replace(b"<f8", b"<i8")),
    ),
    "a column of another shape": (
        "pages.gain is not stored as plain",
        lambda made: with_member(made, GAIN, lambda content: content.replace(b",), }", b"1,2}")),
    ),
    "a column that says it is longer": (
        "pages.gain is not as long as it says$",
        lambda made: with_member(made, GAIN, lambda content: content.replace(b",), }  ", b"00,), }")),
    ),
    "a column that is shorter than its table": ("not all columns of pages have", shortened),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_snapshot_is_refused_with_one_sentence(what: str, tmp_path: Path, snapshot: bytes) -> None:
    problem, change = REFUSED[what]
    content, path = change(snapshot), tmp_path / "bad"
    assert content != snapshot
    with pytest.raises(recrawl.InvalidInput, match=f"^snapshot .*{problem}"):
        recrawl.Scheduler.restore(content)
    path.write_bytes(content)
    with pytest.raises(recrawl.InvalidFile, match=f"^{path}: .*{problem}"):
        recrawl.Scheduler.restore(path)


def test_a_column_that_comes_twice_is_refused(snapshot: bytes) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        content = zipped([*members_of(snapshot), members_of(snapshot)[1]])
    with pytest.raises(recrawl.InvalidInput, match="columns come twice"):
        recrawl.Scheduler.restore(content)


@pytest.mark.parametrize("source", [None, 3, io.StringIO("text"), ["x"]])
def test_what_cannot_be_read_is_refused(source: Any) -> None:
    with pytest.raises(recrawl.InvalidInput, match=r"^snapshot (is|was)"):
        recrawl.Scheduler.restore(source)


def test_a_path_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path, "a\0b"):
        with pytest.raises(recrawl.InvalidFile, match="cannot be read"):
            recrawl.Scheduler.restore(path)


def test_no_flipped_byte_goes_unnoticed_or_does_harm(snapshot: bytes) -> None:
    """But for bytes of the archive that mean nothing, such as the times of its columns."""
    random = np.random.default_rng(0)
    start = snapshot.index(b"PK\x01\x02")  # of the list of columns
    places = [
        *range(64),
        *random.integers(0, start, 300).tolist(),
        *random.integers(start, len(snapshot), 300).tolist(),
    ]
    for place in places:
        damaged = changed_at(snapshot, place, bytes([snapshot[place] ^ int(random.integers(1, 256))]))
        try:
            restored = recrawl.Scheduler.restore(damaged)
        except recrawl.InvalidInput:
            continue
        assert restored.snapshot() == snapshot


def test_a_snapshot_cut_short_anywhere_is_refused(snapshot: bytes) -> None:
    random = np.random.default_rng(0)
    for length in [*range(200), *random.integers(0, len(snapshot), 100).tolist()]:
        with pytest.raises(recrawl.InvalidInput):
            recrawl.Scheduler.restore(snapshot[:length])


def first(columns: dict[str, Any], state: int) -> int:
    return int(np.argmax(columns["pages.state"] == state))


def set_first(name: str, value: Any, state: int = QUEUED) -> Callable[[Forgery], None]:
    """Change a column of the first page in this state."""

    def change(forgery: Forgery) -> None:
        forgery.columns[name][first(forgery.columns, state)] = value

    return change


def set_where(name: str, value: Any, flag: int) -> Callable[[Forgery], None]:
    """Change a column of the first page that waits and has this flag."""

    def change(forgery: Forgery) -> None:
        columns = forgery.columns
        waits = (columns["pages.state"] != FREE) & (columns["pages.flags"] & flag != 0)
        columns[name][int(np.argmax(waits))] = value

    return change


def set_all(name: str, value: Any) -> Callable[[Forgery], None]:
    def change(forgery: Forgery) -> None:
        forgery.columns[name][:] = value

    return change


def set_column(name: str, value: Any) -> Callable[[Forgery], None]:
    def change(forgery: Forgery) -> None:
        forgery.columns[name] = np.asarray(value, dtype=forgery.columns[name].dtype)

    return change


def set_fact(*path: Any, value: Any) -> Callable[[Forgery], None]:
    def change(forgery: Forgery) -> None:
        place: Any = forgery.facts
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


def emptied(table: str) -> Callable[[Forgery], None]:
    def change(forgery: Forgery) -> None:
        for name in TABLES[table][1]:
            forgery.columns[f"{table}.{name}"] = forgery.columns[f"{table}.{name}"][:0]

    return change


FORGED: dict[str, tuple[str, Callable[[Forgery], None]]] = {
    "NaN": (r"pages.gain of row \d+ is nan", set_first("pages.gain", math.nan)),
    "infinite": (r"pages.last of row \d+ is inf", set_first("pages.last", math.inf)),
    "negative": (r"pages.wait of row \d+ is -1.0", set_first("pages.wait", -1.0)),
    "state": (r"pages.state of row \d+ is 9", set_first("pages.state", 9)),
    "law": (r"pages.law of row \d+ is 9", set_first("pages.law", 9)),
    "flags": (r"pages.flags of row \d+ is 32", set_first("pages.flags", 32)),
    "generation": (r"pages.generation of row \d+ is 4294967295", set_first("pages.generation", 2**32 - 1)),
    "host below": (r"pages.host of row \d+ is -2", set_first("pages.host", -2)),
    "host beyond": (r"page \d+ is of an unknown host", set_first("pages.host", 6)),
    "waits at no host": (r"page \d+ waits at a host without limits", set_first("pages.host", -1, AT_HOST)),
    "waits at an open host": (r"page \d+ waits at a host without limits", set_all("hosts.paced", 0)),
    "listens against its law": (r"page \d+ has a law that does not fit its signals", set_where("pages.law", 0, 8)),
    "a law without limits": (r"page \d+ has a law that needs limits", set_first("pages.law", 3)),
    "a law without learning": (r"page \d+ has a law that needs learning", set_first("pages.law", 5)),
    "a rate below all": (r"page \d+ changes at an impossible rate", set_first("pages.decay", 1e-300)),
    "no limits": (r"page \d+ has no limits", emptied("limits")),
    "no signals": (r"page \d+ has no signals", emptied("signals")),
    "no beliefs": (r"page \d+ has no beliefs", emptied("beliefs")),
    "an unknown kind": (r"page \d+ trusts unknown signals", set_where("signals.profile", -3, 8)),
    "an unknown profile": (r"page \d+ trusts unknown signals", set_where("signals.profile", 10, 8)),
    "no precision": (r"page \d+ trusts unknown signals", set_where("signals.precision", 0.0, 8)),
    "an unknown prior": (r"page \d+ has an unknown prior", set_where("beliefs.prior_row", 3, 2)),
    "in flight without a record": ("not all columns of flights have", set_first("pages.state", IN_FLIGHT)),
    "free but not listed": ("free slots do not fit", set_first("pages.state", FREE)),
    "free and twice": ("free slots do not fit", set_all("free", 0)),
    "no free slots": ("free slots do not fit", set_column("free", [])),
    "no hosts": ("not all columns of hosts have 0 rows", set_fact("hosts", value=[])),
    "two hosts of a name": ("two hosts have the same name", set_fact("hosts", 1, value="slow")),
    "a host that is true": (
        r"Expected `int \| str`, got `bool` - at `\$.hosts\[1\]`",
        set_fact("hosts", 1, value=True),
    ),
    "two kinds of a name": ("profiles do not fit its kinds", set_fact("kinds", value=["feed", "feed"])),
    "more kinds than there may be": ("Expected `array` of length <= 64", set_fact("kinds", value=["x"] * 65)),
    "profiles of another width": ("profiles do not fit its kinds", set_column("profiles", [0.5, 0.5, 0.5])),
    "profiles that are the same": ("profiles of signals are impossible", set_column("profiles", [0.5] * 4)),
    "profiles that are no shares": ("profiles of signals are impossible", set_column("profiles", [0.5, math.nan])),
    "a prior of another width": ("prior of change rates does not fit", set_column("prior", [1.0])),
    "a negative prior": ("prior of change rates has impossible weights", set_all("prior", -1.0)),
    "a row that the prior has not": ("prior of change rates does not fit", set_fact("prior_rows", 0, 1, value=2)),
    "a clock in words": ("Expected `float`, got `str` - at `\\$.now`", set_fact("now", value="noon")),
    "a clock without end": ("Expected `float` <= 1e\\+60 - at `\\$.now`", set_fact("now", value=math.inf)),
    "no clock": ("Expected `float`, got `null` - at `\\$.now`", set_fact("now", value=None)),
    "more tokens than the burst": ("more budget than there can be", set_fact("tokens", value=3.0)),
    "filled in the future": ("more budget than there can be", set_fact("filled", value=1e9)),
    "no half-life": ("half_life is", set_fact("memory", value=[0.0, True])),
    "a policy that is not there": ("policy is 'best', but must be", set_fact("policy", value="best")),
    "another policy": ("state has .*, but needs price$", set_fact("policy", value="argmax")),
    "no price": ("state has .*, but needs entry", set_fact("state", value={})),
    **{
        f"{name} {value}": (f"{name} is .*, but must be", set_fact("state", name, value=value))
        for name, value in (
            *(("entry", 0.0), ("entry", math.nan), ("entry", math.inf), ("price", -1.0), ("scale", 0.0)),
            *(("swept", math.nan), ("tick", -1.0), ("width", 0.0), ("width", math.inf), ("origin", math.nan)),
            *(("bins", 4095), ("bins", 64), ("bins", 2**40), ("bins", -4096), ("latest", math.nan), ("latest", 1e9)),
            *(("sweep_at", -1), ("sweep_left", -1), ("sweep_left", 1000), ("to_sweep", -1), ("budget", -1.0)),
        )
    },
}


@pytest.mark.parametrize("what", FORGED)
def test_numbers_that_no_scheduler_has_are_refused(what: str, snapshot: bytes) -> None:
    problem, change = FORGED[what]
    forgery = Forgery(snapshot)
    change(forgery)
    with pytest.raises(recrawl.InvalidInput, match=f"^snapshot is damaged: .*{problem}"):
        recrawl.Scheduler.restore(forgery.bytes())


def test_a_forgery_without_changes_is_the_snapshot(snapshot: bytes) -> None:
    assert recrawl.Scheduler.restore(Forgery(snapshot).bytes()).snapshot() == snapshot


INTEGERS = (-(2**31), -3, -2, -1, 0, 1, 2, 5, 60, 255, 4096, 2**31 - 1)
FLOATS = (math.nan, math.inf, -math.inf, -1.0, -0.0, 0.0, 1e-320, 1e-30, 0.5, 3.0, 1e30, 1e300)


def forge_one_number(column: Any, random: np.random.Generator) -> None:
    """Replace a number of a column by another: a strange one, or one from elsewhere in it."""
    place = int(random.integers(len(column)))
    if random.random() < 0.4:
        column[place] = random.choice(column)
        return
    with np.errstate(over="ignore"):
        if column.dtype.kind == "f":
            column[place] = random.choice(FLOATS)
        else:
            low, high = np.iinfo(column.dtype).min, np.iinfo(column.dtype).max
            column[place] = min(max(int(random.choice(INTEGERS)), low), high)


def survives(content: bytes) -> bool:
    """Whether a scheduler is restored; then it does not hang or crash, and refuses what it does not like."""
    try:
        restored = recrawl.Scheduler.restore(content)
    except recrawl.InvalidInput:
        return False
    crawler = Crawler(restored)
    flying = restored._table.pages["state"][: restored._table.used] == IN_FLIGHT
    crawler.flying = restored._table.ids_of(np.flatnonzero(flying)).tolist()
    crawler.run(8)
    return True


@pytest.mark.parametrize("table", [*TABLES, "free", "profiles", "prior"])
def test_forged_numbers_are_refused_or_do_no_harm(table: str, snapshot: bytes) -> None:
    random = np.random.default_rng(5)
    names = [name for name in COLUMNS if name.split(".")[0] == table]
    outcomes = set()
    for _ in range(300 if table == "pages" else 100):
        forgery = Forgery(snapshot)
        forge_one_number(forgery.columns[str(random.choice(names))], random)
        outcomes.add(survives(forgery.bytes()))
    assert False in outcomes


def leaves(facts: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to every value in the facts."""
    items = facts.items() if isinstance(facts, dict) else enumerate(facts) if isinstance(facts, list) else ()
    below = [place for key, value in items for place in leaves(value, (*path, key))]
    return [path, *below] if path else below


def test_forged_facts_are_refused_or_do_no_harm(snapshot: bytes) -> None:
    strange: tuple[Any, ...] = (
        None,
        True,
        -1,
        0,
        7,
        1.5,
        -1e300,
        10**400,
        math.inf,
        "x",
        "argmax",
        [],
        {},
        [[]],
        ["slow"],
        [3, 3],
    )
    outcomes = []
    for path in leaves(Forgery(snapshot).facts):
        for value in strange:
            forgery = Forgery(snapshot)
            set_fact(*path, value=value)(forgery)
            outcomes.append(survives(forgery.bytes()))
    assert outcomes.count(False) > len(outcomes) / 2
