"""The small parts of a tracker: hours, bytes, newcomers, indices, memory, the committer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import InvalidInput, StoreBusy, StoreError, StoreTaken
from recrawl.store.rows import Answer, HostRow, LeaseRow, NewPage, Observation, PageRow, Result
from recrawl.store.store import Store
from recrawl.tracker.admission import PageRequest, Rejected, admit
from recrawl.tracker.clock import TrackerClock
from recrawl.tracker.hosts import HostBook
from recrawl.tracker.hours import check_hours, open_again_at
from recrawl.tracker.pipeline.commit import MOST_AT_ONCE, Committer
from recrawl.tracker.pipeline.examine import DetectionState, from_bytes, to_bytes
from recrawl.tracker.schedule import EntryIndex
from recrawl.tracker.settings.settings import GroupRule, Settings, check_patterns
from recrawl.tracker.usage import Accounts, ByteBudget
from recrawl.tracker.visit import Visit
from recrawl.web.change.detect import Visit as Sample
from recrawl.web.change.detect import detect

DAY = 86_400.0


def _at(hour: float) -> float:
    return datetime(2026, 11, 16, tzinfo=UTC).timestamp() + 3600 * hour


@given(
    first=st.integers(0, 23),
    last=st.integers(0, 24),
    hour=st.floats(0, 23.99),
    zone=st.sampled_from(["UTC", "Asia/Kolkata", "America/New_York"]),
)
def test_a_group_is_open_in_its_hours_and_opens_at_the_first_of_them(
    first: int, last: int, hour: float, zone: str
) -> None:
    if first == last:
        return
    opens = open_again_at(f"{first}-{last}", zone, _at(hour))
    if opens is not None:
        assert _at(hour) < opens <= _at(hour) + DAY + 3600
        assert open_again_at(f"{first}-{last}", zone, opens) is None
        assert open_again_at(f"{first}-{last}", zone, opens - 1) is not None


def test_hours_over_midnight() -> None:
    assert open_again_at("22-6", "UTC", _at(23)) is None
    assert open_again_at("22-6", "UTC", _at(3)) is None
    assert open_again_at("22-6", "UTC", _at(12)) == _at(22)


@pytest.mark.parametrize(
    ("hours", "zone"),
    [("9", "UTC"), ("9-9", "UTC"), ("25-3", "UTC"), ("a-b", "UTC"), ("9-17", "Mars/Base"), ("9-17", "../x")],
)
def test_hours_and_zones_that_are_none_are_refused(hours: str, zone: str) -> None:
    with pytest.raises(InvalidInput):
        check_hours(hours, zone, "hours")


def test_bytes_over_a_day_stay_within_their_budget() -> None:
    budget, now, spent, rng = ByteBudget(1e6, 0.0), 0.0, 0, random.Random(1)
    while now < DAY:
        wait = budget.wait_s(now)
        if wait > 0:
            now += wait
            continue
        size = rng.randrange(50_000)
        budget.spend(size)
        spent += size
        now += 1.0
    assert 0.9e6 < spent <= 1.06e6
    assert ByteBudget(None, 0.0).wait_s(1.0) == 0.0


GROUPS = (
    GroupRule("news", ("https://*.example.com/news/*",), importance=5.0, objective="freshness", max_interval_s=3600.0),
    GroupRule("rest", ("https://*",), importance=0.5),
)


def test_a_newcomer_is_canonical_and_has_what_its_group_says() -> None:
    page = admit(
        PageRequest("https://WWW.Example.com:443/news/../news/a?utm_source=x#top"), Settings(groups=GROUPS), 7.0
    )
    assert page == NewPage(
        "https://www.example.com/news/a", "www.example.com", "news", 5.0, "freshness", None, 3600.0, "user", 7.0
    )
    other = admit(PageRequest("https://example.org/", importance=2.0), Settings(groups=GROUPS), 7.0)
    assert isinstance(other, NewPage)
    assert (other.group, other.importance) == ("rest", 2.0)


@pytest.mark.parametrize(
    "wanted",
    [
        PageRequest("ftp://example.com/"),
        PageRequest("http://10.0.0.1/"),
        PageRequest("javascript:alert(1)"),
        PageRequest("https://example.com/", importance=float("nan")),
        PageRequest("https://example.com/", importance=-1.0),
        PageRequest("https://example.com/", group="none"),
        PageRequest("https://example.com/", min_interval_s=10.0, max_interval_s=5.0),
        PageRequest("https://example.com:22/"),
    ],
)
def test_what_cannot_be_tracked_is_rejected_with_a_reason(wanted: PageRequest) -> None:
    found = admit(wanted, Settings(groups=GROUPS), 0.0)
    assert isinstance(found, Rejected)
    assert found.reason


def test_patterns_that_could_take_long_are_refused() -> None:
    with pytest.raises(InvalidInput, match="eight"):
        check_patterns([GroupRule("g", ("*a" * 9,))])


def test_pages_are_found_in_both_directions_and_forgotten() -> None:
    index = EntryIndex()
    pages = np.array([3, 5000, 7])
    entries = (np.array([1, 2, 9]) << 32) | np.array([0, 4000, 1])
    index.put(pages, entries)
    assert [index.page_of(entry) for entry in entries[::-1].tolist()] == [7, 5000, 3]
    assert [index.entry(page) for page in (3, 5000, 7, 4, 10**9)] == [*entries.tolist(), None, None]
    index.drop(5000)
    assert index.entries(np.array([3, 5000, 7, -1, 10**9])).tolist() == [entries[0], -1, entries[2], -1, -1]


def test_a_page_that_is_a_source_too_has_two_entries() -> None:
    index, own, source = EntryIndex(), (1 << 32) | 6, (1 << 32) | 2
    index.put(np.array([8]), np.array([own]))
    index.put_source(8, source)
    assert index.all_of(8) == [own, source]
    assert index.page_of(own) == index.page_of(source) == 8
    assert index.drop(8) == own
    assert (index.entry(8), index.source(8), index.all_of(8)) == (None, source, [source])
    assert index.drop_source(8) == source
    assert index.drop_source(8) is index.drop(8) is None


def test_memory_comes_back_as_it_was_and_what_is_none_is_forgotten() -> None:
    decision = detect(None, Sample(b"some words on a page", fetched_at=5.0))
    kept = DetectionState(decision.memory, moved_to="https://example.com/x", moved_times=1)
    assert from_bytes(to_bytes(kept)) == kept
    for broken in (None, b"", b"\x00", to_bytes(kept)[:-3], b"\x93\x02\xc0\x80"):
        assert from_bytes(broken) == DetectionState()


class Moody:
    """A store that cannot write so many times, and remembers in which batches it could."""

    def __init__(self, failures: list[StoreError]) -> None:
        self.failures, self.batches, self.tallied = failures, list[int](), 0

    async def complete(self, results: Sequence[Result], tallies: Mapping[str, int] | None = None) -> list[Answer]:
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        self.batches.append(len(results))
        self.tallied += sum((tallies or {}).values())
        return ["applied"] * len(results)


def _visit(token: int) -> Visit:
    """A visit that was decided."""
    page = PageRow(token, f"https://example.com/{token}", "example.com", "", 1.0, None, 0.0, None, "user", 0.0)
    visit = Visit(page, LeaseRow(token, token, "worker", 0.0, 60.0), token)
    visit.after, visit.observation = page, Observation(token, token, 1.0, "ok")
    return visit


def _committer(store: Moody, said: list[str]) -> tuple[Committer, Accounts]:
    accounts = Accounts()
    hosts = HostBook(Settings(), TrackerClock(), lambda _: None)
    return Committer(cast(Store, store), hosts, accounts, said.append), accounts


class Remembering(Moody):
    """A store that remembers the rows of hosts that it was given, and does something while it is asked."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        super().__init__([])
        self.rows: list[HostRow | None] = []
        self.meanwhile = meanwhile

    async def complete(self, results: Sequence[Result], tallies: Mapping[str, int] | None = None) -> list[Answer]:
        self.rows += [result.host for result in results]
        self.meanwhile()
        return await super().complete(results, tallies)


def test_the_row_of_a_host_is_built_when_it_is_written() -> None:
    """A host that asks for quiet while a result waits must be left alone after a crash too."""

    async def story() -> None:
        hosts = HostBook(Settings(), TrackerClock(), lambda _: None)
        store = Remembering()
        committer = Committer(cast(Store, store), hosts, Accounts(), lambda _: None)
        committer.put(_visit(1))
        hosts.of("example.com").blocked_until = 7e9
        committer.close(1.0)
        await committer.run()
        assert [row.blocked_until for row in store.rows if row is not None] == [7e9]

    asyncio.run(story())


@pytest.mark.parametrize("touched", [True, False])
def test_a_host_counts_as_stored_unless_it_changed_while_it_was_written(touched: bool) -> None:
    async def story() -> None:
        hosts = HostBook(Settings(), TrackerClock(), lambda _: None)
        state = hosts.of("example.com")
        hosts.ended(state)
        store = Remembering((lambda: hosts.ended(state)) if touched else (lambda: None))
        committer = Committer(cast(Store, store), hosts, Accounts(), lambda _: None)
        committer.put(_visit(1))
        committer.close(1.0)
        assert list(hosts.marks()) == ["example.com"]
        await committer.run()
        assert list(hosts.marks()) == (["example.com"] if touched else [])

    asyncio.run(story())


def test_results_under_load_are_written_in_large_batches() -> None:
    async def story() -> None:
        store = Moody([])
        committer, accounts = _committer(store, [])
        running = asyncio.create_task(committer.run())
        accounts.take(1000)
        answers = await asyncio.gather(*(committer.put(_visit(token)) for token in range(1000)))
        committer.close(1.0)
        await running
        assert answers == ["applied"] * 1000
        assert sum(store.batches) == 1000
        assert max(store.batches) == MOST_AT_ONCE
        assert len(store.batches) <= 6
        assert store.tallied == 1000

    asyncio.run(story())


class Forgetful(Moody):
    """A store that answers as it is told, and counts as stores do: if it applies a result."""

    def __init__(self, answers: list[Answer | StoreError | ValueError]) -> None:
        super().__init__([])
        self.answers = answers

    async def complete(self, results: Sequence[Result], tallies: Mapping[str, int] | None = None) -> list[Answer]:
        answer = self.answers.pop(0)
        if answer == "applied":
            return await super().complete(results, tallies)
        if not isinstance(answer, str):
            raise answer
        return [answer] * len(results)


@pytest.mark.parametrize(
    ("answers", "counted"),
    [
        (["stale", "applied"], 3),
        (["duplicate", "applied"], 3),
        ([StoreBusy("busy"), "stale", "applied"], 3),
        ([StoreBusy("the answer is lost"), "duplicate", "applied"], 0),
        ([ValueError("cannot be stored"), "applied"], 3),
    ],
    ids=["stale", "duplicate", "stale after a failure", "applied before", "not to be stored"],
)
def test_what_a_refused_batch_counted_is_counted_with_the_next(
    answers: list[Answer | StoreError | ValueError], counted: int
) -> None:
    async def story() -> None:
        store = Forgetful(answers)
        committer, accounts = _committer(store, [])
        running = asyncio.create_task(committer.run())
        accounts.take(3)
        await asyncio.gather(committer.put(_visit(1)), return_exceptions=True)
        assert await committer.put(_visit(2)) == "applied"
        committer.close(1.0)
        await running
        assert store.tallied == counted

    asyncio.run(story())


class Picky(Moody):
    """A store that cannot store one of the results at all, and has another owner from a write of its own on."""

    def __init__(self, bad: int, taken_after: int = 10**9) -> None:
        super().__init__([])
        self.bad, self.taken_after = bad, taken_after

    async def complete(self, results: Sequence[Result], tallies: Mapping[str, int] | None = None) -> list[Answer]:
        if len(self.batches) >= self.taken_after:
            raise StoreTaken("taken")
        if self.bad in [result.observation.token for result in results]:
            raise ValueError("cannot be stored")
        return await super().complete(results, tallies)


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_a_batch_that_is_written_one_by_one_counts_all_of_it_once(bad: int) -> None:
    async def story() -> None:
        store = Picky(bad)
        committer, accounts = _committer(store, [])
        accounts.take(3)
        futures = [committer.put(_visit(token)) for token in range(3)]
        committer.close(1.0)
        await committer.run()
        assert [future.exception() is not None for future in futures] == [token == bad for token in range(3)]
        assert store.batches == [1, 1]
        assert store.tallied == 3
        assert not accounts.unwritten

    asyncio.run(story())


def test_nobody_waits_for_ever_if_the_store_is_taken_while_a_batch_is_written_one_by_one() -> None:
    async def story() -> None:
        committer, accounts = _committer(Picky(0, taken_after=1), [])
        accounts.take(4)
        futures = [committer.put(_visit(token)) for token in range(4)]
        with pytest.raises(StoreTaken):
            await committer.run()
        assert isinstance(futures[0].exception(), ValueError)
        assert futures[1].result() == "applied"
        assert [future.cancelled() for future in futures[2:]] == [True, True]
        assert committer.abandoned == 2

    asyncio.run(story())


def test_a_store_in_trouble_holds_results_up_and_loses_none() -> None:
    async def story() -> None:
        said: list[str] = []
        store = Moody([StoreBusy("busy"), StoreBusy("busy")])
        committer, _ = _committer(store, said)
        running = asyncio.create_task(committer.run())
        assert await committer.put(_visit(1)) == "applied"
        committer.close(1.0)
        await running
        assert said == ["busy", ""]
        assert store.batches == [1]

    asyncio.run(story())


def test_at_the_end_what_cannot_be_written_is_given_up_and_nobody_is_told_that_it_was() -> None:
    async def story() -> None:
        committer, _ = _committer(Moody([StoreBusy("busy")] * 1000), [])
        running = asyncio.create_task(committer.run())
        futures = [committer.put(_visit(token)) for token in range(3)]
        committer.close(0.0)
        await running
        assert all(future.cancelled() for future in futures)
        assert committer.abandoned == 3

    asyncio.run(story())


def test_a_store_that_has_another_owner_ends_the_committer() -> None:
    async def story() -> None:
        committer, _ = _committer(Moody([StoreTaken("taken")]), [])
        future = committer.put(_visit(1))
        with pytest.raises(StoreTaken):
            await committer.run()
        assert future.cancelled()

    asyncio.run(story())
