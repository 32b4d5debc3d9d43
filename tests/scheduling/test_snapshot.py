"""Snapshots: a restored scheduler does what the other would have done, and no input can do harm."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from snapshot_workloads import START, Crawler, Forgery, scheduler_with_everything, tuning

import recrawl
from recrawl.scheduling.policies.registry import POLICY_NAMES
from recrawl.scheduling.snapshot import VERSION

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


def _has_all(scheduler: Any) -> bool:
    """Whether there are free slots, and hosts in both books of the agenda."""
    table = scheduler._table
    free = (table.pages["state"][: table.used] == 0).sum() > 1
    return bool(free and scheduler._policy._desk["agenda"].any())


@pytest.fixture(scope="module")
def snapshot() -> bytes:
    crawler = crawled_for(40)
    while not (crawler.flying and _has_all(crawler.scheduler)):
        crawler.run(1)
    return crawler.scheduler.snapshot()


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("steps", [0, 1, 40, 200])
def test_a_restored_scheduler_gives_the_same_answers_bit_for_bit(steps: int, seed: int) -> None:
    crawler = crawled_for(steps, seed=seed)
    check_that_both_go_on_alike(crawler, recrawl.Scheduler.restore(crawler.scheduler.snapshot()))


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


def test_the_format_is_what_the_module_says(snapshot: bytes) -> None:
    magic, version, _, length = START.unpack_from(snapshot)
    assert (magic, version) == (b"\x89RECRAWL", VERSION)
    header = json.loads(snapshot[24 : 24 + length], parse_constant=pytest.fail)
    assert all(entry["offset"] % 64 == 0 for entry in header["arrays"])
    table = recrawl.Scheduler.restore(snapshot)._table
    assert table.pages.ctypes.data % 64 == 0, "a page is one line of the cache"
    assert Forgery(snapshot).bytes() != b""
    assert recrawl.Scheduler.restore(Forgery(snapshot).bytes()).snapshot() == snapshot


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


def test_what_is_no_snapshot_is_refused_with_one_sentence(tmp_path: Path, snapshot: bytes) -> None:
    refused = {
        "is not a snapshot": b"PK\x03\x04" + snapshot[4:],
        "is not a snapshot of": b"",
        "newer recrawl, in format 2": changed_at(snapshot, 8, b"\x02"),
        "its header is not whole": changed_at(snapshot, 16, b"\xff" * 8),
        "checksum of its header": changed_at(snapshot, 30, b"\x00"),
        "cut short: it ends before its pages": snapshot[:-1],
        "goes on after its end": snapshot + b"\0",
        "checksum of its pages": changed_at(snapshot, json_offset(snapshot, "pages"), b"\xff"),
    }
    path = tmp_path / "bad"
    for problem, content in refused.items():
        with pytest.raises(recrawl.InvalidInput, match=f"^snapshot .*{problem}"):
            recrawl.Scheduler.restore(content)
        path.write_bytes(content)
        with pytest.raises(recrawl.InvalidFile, match=f"^{path}: .*{problem}"):
            recrawl.Scheduler.restore(path)


def json_offset(snapshot: bytes, name: str) -> int:
    length = START.unpack_from(snapshot)[3]
    listed = json.loads(snapshot[24 : 24 + length])["arrays"]
    return next(int(entry["offset"]) for entry in listed if entry["name"] == name)


@pytest.mark.parametrize("source", [None, 3, io.StringIO("text"), ["x"]])
def test_what_cannot_be_read_is_refused(source: Any) -> None:
    with pytest.raises(recrawl.InvalidInput, match=r"^snapshot (is|was)"):
        recrawl.Scheduler.restore(source)


def test_a_path_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path, "a\0b"):
        with pytest.raises(recrawl.InvalidFile, match="cannot be read"):
            recrawl.Scheduler.restore(path)


def test_headers_that_are_garbage_are_refused(snapshot: bytes) -> None:
    import zlib

    deep = b"[" * 100_000
    for header in (b"{", b"[]", b"3", b'{"facts": {}}', b'{"facts": 1, "arrays": []}', deep, b'{"a": 1' + b"0" * 9999):
        content = START.pack(b"\x89RECRAWL", VERSION, zlib.crc32(header), len(header)) + header
        with pytest.raises(recrawl.InvalidInput, match="is damaged"):
            recrawl.Scheduler.restore(content)
    for shape in ([2**60], [-1], [1e3], "x", [2**31, 2**31], None):
        forged = Forgery(snapshot).bytes()
        length = START.unpack_from(forged)[3]
        parsed = json.loads(forged[24 : 24 + length])
        parsed["arrays"][0]["shape"] = shape
        header = json.dumps(parsed).encode()
        content = START.pack(b"\x89RECRAWL", VERSION, zlib.crc32(header), len(header)) + header + forged[24 + length :]
        with pytest.raises(recrawl.InvalidInput, match=r"is damaged|cut short"):
            recrawl.Scheduler.restore(content)


def test_records_of_another_form_are_refused(snapshot: bytes) -> None:
    forgery = Forgery(snapshot)
    forgery.arrays["heads"] = forgery.arrays["heads"].astype(np.float64)
    with pytest.raises(recrawl.InvalidInput, match="heads in another form"):
        recrawl.Scheduler.restore(forgery.bytes())


def test_missing_and_strange_arrays_are_refused(snapshot: bytes) -> None:
    for name in Forgery(snapshot).arrays:
        forgery = Forgery(snapshot)
        del forgery.arrays[name]
        with pytest.raises(recrawl.InvalidInput, match="is damaged"):
            recrawl.Scheduler.restore(forgery.bytes())


def test_no_flipped_byte_goes_unnoticed_or_does_harm(snapshot: bytes) -> None:
    """But for bytes between the arrays, which mean nothing."""
    random = np.random.default_rng(0)
    places = [*range(64), *random.integers(0, len(snapshot), 300).tolist()]
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


INTEGERS = (-(2**31), -3, -2, -1, 0, 1, 2, 5, 60, 255, 4096, 2**31 - 1)
FLOATS = (math.nan, math.inf, -math.inf, -1.0, -0.0, 0.0, 1e-320, 1e-30, 0.5, 3.0, 1e30, 1e300)


def forge_one_number(forgery: Forgery, name: str, random: np.random.Generator) -> None:
    """Replace a number somewhere in an array by another."""
    array = forgery.arrays[name]
    column = array if array.dtype.names is None else array[str(random.choice(array.dtype.names))]
    flat = column.reshape(-1) if array.dtype.names is None else column
    place = int(random.integers(len(flat)))
    with np.errstate(over="ignore"):
        if flat.dtype.kind == "f":
            flat[place] = random.choice(FLOATS)
        else:
            low, high = np.iinfo(flat.dtype).min, np.iinfo(flat.dtype).max
            flat[place] = min(max(int(random.choice(INTEGERS)), low), high)


def survives(content: bytes) -> bool:
    """Whether a scheduler is restored; then it does not hang or crash, and refuses what it does not like."""
    try:
        restored = recrawl.Scheduler.restore(content)
    except recrawl.InvalidInput:
        return False
    crawler = Crawler(restored)
    flying = restored._table.pages["state"][: restored._table.used] == 4
    crawler.flying = restored._table.ids_of(np.flatnonzero(flying)).tolist()
    crawler.run(8)
    return True


ARRAYS = (
    "pages",
    "limits",
    "signals",
    "beliefs",
    "hosts",
    "flights",
    "profiles",
    "prior",
    "desk",
    "agenda",
    "heads",
    "bits",
)


@pytest.mark.parametrize("name", ARRAYS)
def test_forged_numbers_are_refused_or_do_no_harm(name: str, snapshot: bytes) -> None:
    random = np.random.default_rng(5)
    outcomes = set()
    for _ in range(120):
        forgery = Forgery(snapshot)
        forge_one_number(forgery, name, random)
        outcomes.add(survives(forgery.bytes()))
    assert False in outcomes


@pytest.mark.parametrize("field", ["next", "prev", "child", "host", "state", "law", "flags"])
def test_forged_links_and_states_are_refused_or_do_no_harm(field: str, snapshot: bytes) -> None:
    random = np.random.default_rng(6)
    original = Forgery(snapshot).arrays["pages"][field]
    for _ in range(150):
        forgery = Forgery(snapshot)
        column = forgery.arrays["pages"][field]
        one, other = random.integers(len(column), size=2)
        column[one] = original[other]
        survives(forgery.bytes())


def test_links_that_run_in_a_ring_are_refused(snapshot: bytes) -> None:
    forgery = Forgery(snapshot)
    pages = forgery.arrays["pages"]
    at_host = np.flatnonzero(pages["state"] == 5)
    one, other = at_host[:2]
    pages["child"][one], pages["prev"][other] = other, one
    pages["child"][other], pages["prev"][one] = one, other
    pages["host"][one] = pages["host"][other]
    with pytest.raises(recrawl.InvalidInput, match=r"heap of a host|pages wait at no host"):
        recrawl.Scheduler.restore(forgery.bytes())
    forgery = Forgery(snapshot)
    pages = forgery.arrays["pages"]
    free = np.flatnonzero(pages["state"] == 0)
    pages["next"][free] = free[0]
    with pytest.raises(recrawl.InvalidInput, match="free places"):
        recrawl.Scheduler.restore(forgery.bytes())


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
        "inf",
        "x",
        "argmax",
        [],
        {},
        [[]],
        ["slow"],
        [3, 3, 3, 3],
    )
    outcomes = []
    for path in leaves(Forgery(snapshot).facts):
        for value in strange:
            forgery = Forgery(snapshot)
            place: Any = forgery.facts
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value
            outcomes.append(survives(forgery.bytes()))
    assert outcomes.count(False) > len(outcomes) / 2
