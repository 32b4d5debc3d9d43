"""Any order of calls, restarts and crashes of workers, against a plain model that a store must equal."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from postgres_server import PostgresServer
from store_samples import NOW, PostgresMaker, SqliteMaker, StoreMaker, changed_result, new_pages, result_of

from patience import PATIENCE_S
from recrawl.store.rows import PageEdit, Result
from recrawl.store.store import Store

URLS = st.lists(st.integers(1, 4), min_size=1, max_size=3)
PAGES = st.lists(st.integers(1, 5), min_size=1, max_size=5)
PLACES = st.lists(st.integers(0, 6), min_size=1, max_size=3)
"""Places among the last leases."""


@dataclass
class _Page:
    url: str
    role: str = "page"
    retired: bool = False
    crashes: int = 0
    settled: int = 0


@dataclass
class _Model:
    """What a store must be, kept in plain dictionaries."""

    pages: dict[int, _Page] = field(default_factory=dict)
    leases: dict[int, int] = field(default_factory=dict)  # token -> page
    applied: list[int] = field(default_factory=list)  # tokens
    log: list[tuple[str, str, int]] = field(default_factory=list)
    signals: dict[tuple[int, str], tuple[int, float, float]] = field(default_factory=dict)
    last_token: int = 0
    fetches: int = 0

    def of_role(self, role: str) -> list[int]:
        return [place for place, page in self.pages.items() if page.role == role]

    def retire(self, page_id: int) -> None:
        self.pages[page_id].retired = True
        self.leases = {token: page for token, page in self.leases.items() if page != page_id}
        self.signals = {key: heard for key, heard in self.signals.items() if key[0] != page_id}


class StoreMachine(RuleBasedStateMachine):
    """Rules are the calls of the contract; after each, the store equals the model."""

    make_place: Callable[[], tuple[StoreMaker, Callable[[], None]]]

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.place, self.clean_up = type(self).make_place()
        self.store: Store = self.do(self.place.open())
        self.model = _Model()
        self.results: list[Result] = []  # of every lease that ever was
        self.clock = NOW

    def do(self, call: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(call, PATIENCE_S))

    def teardown(self) -> None:
        self.do(self.store.close())
        self.do(self.loop.shutdown_default_executor())
        self.loop.close()
        self.clean_up()

    def tokens(self, places: list[int]) -> list[int]:
        return [result.observation.token for result in self.late(places)]

    def late(self, places: list[int]) -> list[Result]:
        return [self.results[-1 - place % len(self.results)] for place in places if self.results]

    @initialize()
    def begin(self) -> None:
        self.add([1, 2, 3])
        self.lease([1, 2], changes=True)

    @rule(numbers=URLS, role=st.sampled_from(["page", "page", "source"]))
    def add(self, numbers: list[int], role: str = "page") -> None:
        pages = [new_pages(number, role=role)[-1] for number in numbers]
        expected = []
        for page in pages:
            known = next((place for place, one in self.model.pages.items() if one.url == page.url), None)
            if known is None:
                known = len(self.model.pages) + 1
                self.model.pages[known] = _Page(page.url, role)
                expected.append((known, True))
                continue
            one = self.model.pages[known]
            begins = one.role == "source" and role == "page"
            expected.append((known, one.retired or begins))
            if one.retired:
                one.retired, one.crashes, one.role = False, 0, role
            elif begins:
                one.role = "page"
        answers = self.do(self.store.add_pages(pages))
        assert answers == expected

    @rule(page_id=st.integers(1, 5))
    def delete(self, page_id: int) -> None:
        found = self.do(self.store.edit_pages([PageEdit(page_id, state="retired")]))
        assert found == (page_id in self.model.pages)
        if found:
            self.model.retire(page_id)

    @rule(ids=PAGES, kind=st.sampled_from(["ping", "feed"]))
    def signal(self, ids: list[int], kind: str) -> None:
        self.clock += 1
        self.do(self.store.add_signals(ids, kind, self.clock))
        for page_id in ids:
            page = self.model.pages.get(page_id)
            if page is not None and not page.retired:
                count, first, _last = self.model.signals.get((page_id, kind), (0, self.clock, 0.0))
                self.model.signals[page_id, kind] = (count + 1, first, self.clock)

    @rule(ids=PAGES, changes=st.booleans())
    def lease(self, ids: list[int], changes: bool) -> None:
        self.clock += 1
        taken = set(self.model.leases.values())
        free = [page_id for page_id in dict.fromkeys(ids) if page_id in self.model.pages and page_id not in taken
                and not self.model.pages[page_id].retired]  # fmt: skip
        leased = self.do(self.store.lease(ids, "w", self.clock, self.clock + 60))
        assert [page.id for page, _lease in leased] == free
        for page, lease in leased:
            assert lease.token > self.model.last_token
            self.model.last_token = lease.token
            self.model.leases[lease.token] = page.id
            finished = changed_result if changes else result_of
            self.results.append(finished(page, lease, at=self.clock + 0.75))

    @rule(places=PLACES)
    def heartbeat(self, places: list[int]) -> None:
        tokens = list(dict.fromkeys(self.tokens(places)))
        good = self.do(self.store.heartbeat(tokens, self.clock + 120))
        assert good == [token for token in tokens if token in self.model.leases]

    @rule(places=PLACES)
    def complete(self, places: list[int]) -> None:
        batch = self.late(places)
        expected = [self._settle(result) for result in batch]
        if "applied" in expected:
            self.model.fetches += len(batch)
        answers = self.do(self.store.complete(batch, {"fetches": len(batch)} if batch else None))
        assert answers == expected

    def _settle(self, result: Result) -> str:
        seen = result.observation
        if seen.token in self.model.applied:
            return "duplicate"
        if self.model.leases.pop(seen.token, None) is None:
            return "stale"
        self.model.applied.append(seen.token)
        page = self.model.pages[seen.page_id]
        page.settled = seen.token
        page.crashes = result.page.crashes
        self.model.log += [(change.kind, change.url, change.token) for change in result.changes]
        began = seen.at - seen.elapsed_s
        for key in [key for key, heard in self.model.signals.items() if key[0] == seen.page_id and heard[2] <= began]:
            del self.model.signals[key]
        return "applied"

    @rule(places=PLACES)
    def release(self, places: list[int]) -> None:
        tokens = list(dict.fromkeys(self.tokens(places)))
        assert self.do(self.store.release(tokens)) == sum(token in self.model.leases for token in tokens)
        for token in tokens:
            self.model.leases.pop(token, None)

    @rule(places=PLACES)
    def crashed(self, places: list[int]) -> None:
        tokens = list(dict.fromkeys(self.tokens(places)))
        ended = [self.model.leases.pop(token) for token in tokens if token in self.model.leases]
        for page_id in ended:
            self.model.pages[page_id].crashes += 1
        rows = self.do(self.store.crashed(tokens))
        assert [(row.id, row.crashes) for row in rows] == [(one, self.model.pages[one].crashes) for one in ended]

    @rule()
    def restart(self) -> None:
        before = self.store.generation
        self.do(self.store.close())
        self.store = self.do(self.place.open())
        assert self.store.generation > before
        self.do(self._compare_roles())

    async def _compare_roles(self) -> None:
        model, store = self.model, self.store
        for role in ("page", "source"):
            assert [row.id for row in await store.list_pages(role=role)] == model.of_role(role)
        tracked = [place for place in model.of_role("page") if not model.pages[place].retired]
        found = await store.find_pages([page.url for page in model.pages.values()])
        assert sorted(found.values()) == (await store.load_schedule()).page_id.tolist() == tracked
        assert sum((await store.counts()).pages.values()) == len(model.of_role("page"))

    @invariant()
    def the_store_equals_the_model(self) -> None:
        self.do(self._compare())

    async def _compare(self) -> None:
        model, store = self.model, self.store
        leases = await store.leases()
        assert {lease.token: lease.page_id for lease in leases} == model.leases
        assert len({lease.page_id for lease in leases}) == len(leases)
        rows = await store.list_pages(role=None)
        assert {
            row.id: _Page(row.url, row.role, row.state == "retired", row.crashes, row.settled_token) for row in rows
        } == model.pages
        seen = await store.all_observations()
        assert [one.token for _number, one in seen] == model.applied
        pages = {result.observation.token: result.observation.page_id for result in self.results}
        for page_id in model.pages:
            fetches = [token for token in reversed(model.applied) if pages[token] == page_id]
            assert [one.token for one in await store.observations(page_id)] == fetches[:20]
        changes = await store.changes()
        assert [change.cursor for change in changes] == list(range(1, len(model.log) + 1))
        assert [(one.event.kind, one.event.url, one.event.token) for one in changes] == model.log
        waiting = await store.pending_signals()
        assert {(one.page_id, one.kind): (one.count, one.first_at, one.last_at) for one in waiting} == model.signals
        assert (await store.tallies()).get("fetches", 0) == model.fetches
        assert await store.check() == []


def _run(make_place: Callable[[], tuple[StoreMaker, Callable[[], None]]], examples: int) -> None:
    machine = type("Machine", (StoreMachine,), {"make_place": staticmethod(make_place)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            derandomize=True,
        ),
    )


def test_any_order_of_calls_leaves_what_a_plain_model_says() -> None:
    def make_place() -> tuple[StoreMaker, Callable[[], None]]:
        folder = Path(tempfile.mkdtemp(prefix="recrawl-machine-"))
        return SqliteMaker(folder / "data"), lambda: shutil.rmtree(folder)

    _run(make_place, examples=25)


@pytest.mark.parametrize("kind", ["postgresql"])
def test_the_same_on_postgresql(kind: str, postgres: PostgresServer) -> None:
    assert kind

    def make_place() -> tuple[StoreMaker, Callable[[], None]]:
        database = postgres.fresh_database()
        return PostgresMaker(postgres.dsn(database)), lambda: postgres.drop(database)

    _run(make_place, examples=10)
