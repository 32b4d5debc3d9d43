"""A policy, a sink, a kind of signal and a format to import can be added as docs/extending.md says, in few files."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

import pytest
import sink_targets
import test_policy_contract as policies
import test_signal_kind_contract as signals
import test_sink_contract as sinks
import test_snapshot as snapshots
from click.testing import CliRunner

from recrawl import Scheduler
from recrawl.cli.main import cli
from recrawl.errors import InvalidInput
from recrawl.scheduling.policies.registry import POLICIES
from recrawl.tracker.admission import PageRequest
from recrawl.tracker.importers.formats import FORMATS, Format
from recrawl.tracker.importers.rows import BadRow, GoodRow, Hints, Item, text_lines
from recrawl.tracker.kinds import SIGNALS, SINKS, SignalKind
from recrawl.tracker.settings.file import read_settings
from recrawl.tracker.settings.settings import SinkRule
from recrawl.tracker.sinks.registry import check_sinks

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
MOST_OPENED, MOST_EDITED = 10, 4


@pytest.mark.parametrize("role", ["A policy", "A sink", "A kind of signal", "A format to import"])
def test_a_paragraph_names_few_files_and_all_are_there(role: str) -> None:
    paragraph = re.split(r"^## ", DOCUMENT.partition(f"\n## {role}\n")[2], flags=re.MULTILINE)[0]
    for verb, most in (("Open", MOST_OPENED), ("Edit", MOST_EDITED)):
        (item,) = re.findall(rf"^- {verb}: (.*?)(?=^- |\Z)", paragraph, re.MULTILINE | re.DOTALL)
        files = re.findall(r"`((?:src|tests|docs)/[^`]+)`", item)
        assert 0 < len(set(files)) <= most
        assert [file for file in files if "<name>" not in file and not (ROOT / file).is_file()] == []


CSV_SINK = """
import csv, io
from pathlib import Path
from recrawl.tracker.sinks.event import event_dict
from recrawl.tracker.sinks.sink import Delivery, check_file

def check(rule, settings, where):
    check_file(rule, where)

async def make(rule, settings, store, now):
    return CsvSink(Path(rule.target))

class CsvSink:
    def __init__(self, path):
        self._path = path

    async def take(self, changes, attempt):
        rows = io.StringIO()
        csv.writer(rows).writerows([event["id"], event["kind"], event["url"]] for event in map(event_dict, changes))
        try:
            whole = self._path.read_bytes() if self._path.exists() else b""
            whole = whole[: whole.rfind(b"\\n") + 1]
            self._path.write_bytes(whole + rows.getvalue().encode("utf-8", "replace"))
        except OSError as error:
            return Delivery(0, failed=str(error))
        return Delivery(len(changes))

    async def close(self):
        pass
"""


def _ids_of_rows(content: bytes) -> list[str]:
    return [row[0] for row in csv.reader(content.decode().splitlines()) if len(row) == 3]


@asynccontextmanager
async def _csv_target(folder: Path) -> AsyncIterator[sink_targets.Target]:
    rule = SinkRule("s", "csv", str(folder / "out.csv"))
    yield sink_targets.FileTarget(rule, _ids_of_rows, b"half a ro")


def test_a_csv_sink_is_a_module_a_row_and_a_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is known to the settings, and the whole suite of sinks holds it."""
    (tmp_path / "csv_sink.py").write_text(CSV_SINK)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(SINKS, "csv", "csv_sink")
    monkeypatch.setitem(sink_targets.TARGETS, "csv", _csv_target)
    path = tmp_path / "settings.toml"
    path.write_text('[[sinks]]\nname = "table"\nkind = "csv"\ntarget = "out.csv"\n')
    check_sinks(read_settings(path).settings)
    suite = [
        sinks.test_every_event_comes_once_and_in_order_over_restarts,
        sinks.test_a_write_that_a_crash_cut_short_spoils_nothing_that_follows,
        sinks.test_a_target_that_cannot_be_written_is_tried_again_and_nothing_is_lost,
        sinks.test_an_address_that_would_break_a_document_comes_whole,
        sinks.test_an_event_that_comes_again_has_the_same_id,
    ]
    for number, held in enumerate(suite):
        folder = tmp_path / str(number)
        folder.mkdir()
        held(folder, "csv")
    for target in ("", "."):
        sinks.test_a_target_that_cannot_be_is_refused_before_anything_runs("csv", target)


def test_a_kind_of_signal_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SIGNALS, "email", SignalKind("a newsletter links to the page"))
    signals.test_signals_within_a_moment_are_one_and_a_crawl_answers_them("email")
    signals.test_a_kind_is_believed_as_far_as_it_is_true("email")
    signals.test_what_was_heard_outlives_a_restart(tmp_path, "email")


def read_json_lines(stream: IO[bytes], hints: Hints) -> Iterator[Item]:  # noqa: ARG001 - by the contract
    """A parser as a stranger would write it."""
    for number, line in text_lines(stream):
        try:
            yield GoodRow(number, PageRequest(str(json.loads(line or "")["address"])))
        except (ValueError, KeyError, TypeError, RecursionError):
            yield BadRow(number, "is no JSON with an address")


def test_a_format_to_import_is_a_parser_and_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    form = Format("a JSON document a line", read_json_lines, lambda ending, _start: ending == "jl")
    monkeypatch.setitem(FORMATS, "json-lines", form)
    path = tmp_path / "pages.jl"
    path.write_bytes(b'{"address": "https://example.com/1"}\n\xff\xfe{\n{"address": "https://example.com/2"}\n')
    ran = CliRunner().invoke(cli, ["import", str(path), "--store", str(tmp_path / "data"), "--json"])
    done = json.loads(ran.stdout)
    assert (done["added"], done["refused"]) == (2, 1)


RANDOM_POLICY = """
import numpy as np
from recrawl.scheduling.policies.argmax import Ranked

class Random(Ranked):
    def worth(self, slots, now):
        moment = int(np.float64(now).view(np.uint64))
        return 1.0 - np.random.default_rng([self.seed, moment]).random(len(slots))
"""


def test_a_policy_is_a_class_and_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is had by name, the whole suite of policies holds it, and a snapshot goes on with it."""
    (tmp_path / "random_policy.py").write_text(RANDOM_POLICY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(POLICIES, "random", "random_policy.Random")
    suite = [test for name, test in vars(policies).items() if name.startswith("test_")]
    assert len(suite) > 10
    for held in suite:
        held("random")
    snapshots.test_policies_that_look_at_all_pages_go_on_alike_too("random")
    with pytest.raises(InvalidInput, match="echo-greedy, random, ncis-approx-j"):
        Scheduler(budget=1.0, policy="rondam")
