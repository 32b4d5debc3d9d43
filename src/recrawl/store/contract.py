"""What a store promises. SQLite and PostgreSQL keep it; one suite of tests holds both to it.

- A call that returns is durable: it outlives `kill -9`, and with `synchronous=FULL` the loss of power.
- A call is one transaction: all of it happens, or nothing, whatever is raised.
- One owner at a time: `open_store(…, owner=True)` takes the lock and a generation number that rises with every owner.
  Writes of an owner that has lost its place raise `StoreLost`. Others read, and leave orders.
- A lease has a token that rises over the whole life of the store. A result is applied once, and only if its token is
  that of the page's lease. The same result again is `duplicate`; one whose lease is gone or whose page was leased
  again is `stale`. Neither changes anything.
- Cursors of the change log count 1, 2, 3 … in the order of commits: who has read up to a cursor misses nothing.
- What is in the way is a sentence: `StoreBusy`, `StoreFull`, `StoreDamaged`, `StoreNewer`, `StoreLost` (`errors.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from recrawl.store.columns import ScheduleColumns, StoreCounts
from recrawl.store.rows import (
    Answer,
    Change,
    ChangeKind,
    DeadLetter,
    HostRow,
    LeaseRow,
    NewChange,
    NewPage,
    Observation,
    Order,
    PageEdit,
    PageRole,
    PageRow,
    PageState,
    PauseKind,
    PendingSignal,
    Result,
    SinkRow,
    SourceRow,
)


class PageStore(Protocol):
    """Pages, by id and by address."""

    async def add_pages(self, pages: Sequence[NewPage]) -> list[tuple[int, bool]]:
        """Add pages; for each its id, and whether it is new, taken up anew, or was a source and is a page from now on.

        A page that is taken up anew and was `removed` or `moved` by the log is in the state `removed` until it comes,
        so that the log can tell that it is `restored`. In the order given. O(pages · log n).
        """

    async def edit_pages(self, edits: Sequence[PageEdit]) -> int:
        """Change pages; how many there were. A page that is retired loses its lease."""

    async def read_pages(self, ids: Sequence[int]) -> list[PageRow]:
        """The rows of those that exist, in the order of `ids`."""

    async def find_pages(
        self, urls: Sequence[str], *, role: PageRole | None = "page", retired: bool = False
    ) -> dict[str, int]:
        """Ids by address, of those that exist. O(addresses · log n), some microseconds each.

        Args:
            urls: in canonical form.
            role: only these; None for both.
            retired: find those that are retired as well.
        """

    async def list_pages(
        self,
        after: int = 0,
        limit: int = 100,
        *,
        group: str | None = None,
        host: str | None = None,
        role: PageRole | None = "page",
    ) -> list[PageRow]:
        """Pages with ids above `after`, in their order, retired ones too; of one role, or with None of both."""

    async def page_ids(self, state: PageState) -> list[int]:
        """Ids of the pages in a state, of role `page`. O(those), but for `active`: O(pages)."""

    async def asked_last(self, host: str, limit: int) -> list[PageRow]:
        """Those pages of a host that were asked last, the latest first. O(pages of the host)."""

    async def load_schedule(self) -> ScheduleColumns:
        """What the scheduler needs of all pages of role `page`. A million in about two seconds."""

    async def pause(self, kind: PauseKind, name: str, at: float) -> None:
        """Hold back a page (by address), a group or a host until `resume`. Twice is once."""

    async def resume(self, kind: PauseKind, name: str) -> bool:
        """End a pause; whether there was one."""

    async def paused(self) -> list[tuple[PauseKind, str]]:
        """All pauses."""

    async def count_paused(self) -> int:
        """How many active pages are paused by themselves, their group or their host. O(those)."""


class LeaseStore(Protocol):
    """Leases and results."""

    async def lease(
        self, ids: Sequence[int], worker: str, at: float, until: float, hosts: Sequence[HostRow] = ()
    ) -> list[tuple[PageRow, LeaseRow]]:
        """Lease pages to a worker and note what their hosts allow next; durable when it returns.

        A page that is retired, unknown, or leased to someone already is left out.
        """

    async def heartbeat(self, tokens: Sequence[int], until: float) -> list[int]:
        """Prolong leases; the tokens of those that are still good."""

    async def release(self, tokens: Sequence[int]) -> int:
        """Give leases back without a result; how many there were."""

    async def leases(self) -> list[LeaseRow]:
        """All leases."""

    async def complete(self, results: Sequence[Result], tallies: Mapping[str, int] | None = None) -> list[Answer]:
        """Write results: observation, page, host, events, version, source; the lease ends. One answer each.

        Args:
            results: any number, of different pages or not; applied in the order given.
            tallies: counters to raise in the same transaction, by name; only if a result is applied, or there is none,
                so that a batch that is sent again does not count twice.
        """

    async def answer_for(self, token: int) -> Answer:
        """What a result under a token would be answered that is not leased now: `duplicate` if it was applied."""

    async def crashed(self, tokens: Sequence[int]) -> list[PageRow]:
        """End the leases of workers that died, and count a crash for each page; the rows from then on."""


class HistoryStore(Protocol):
    """What was seen."""

    async def observations(self, page_id: int, limit: int = 20) -> list[Observation]:
        """The last fetches of a page, the newest first."""

    async def all_observations(self, after: int = 0, limit: int = 1000) -> list[tuple[int, Observation]]:
        """Fetches of all pages in the order they were written, with their numbers, for replay and export."""

    async def last_observation(self) -> int:
        """The number of the last fetch that is kept; 0 if no fetch is. O(1)."""

    async def read_text(self, page_id: int, version: int | None = None) -> bytes | None:
        """The text of a version as it was handed in; None for the last one, if it is kept."""

    async def versions(self, page_id: int) -> list[tuple[int, float, bytes]]:
        """Number, time and digest of the versions of a page, the newest first."""

    async def put_body(self, digest: bytes, body: bytes) -> None:
        """Keep a body under its digest before the result that names it is written. Twice is once."""

    async def read_body(self, digest: bytes) -> bytes | None:
        """A body, if it is kept and whole."""

    async def version_body(self, page_id: int, version: int | None = None) -> bytes | None:
        """The body that a version was read from, None for the last one; if bodies are kept, and it is whole."""

    async def raise_tallies(self, tallies: Mapping[str, int]) -> None:
        """Raise counters by name."""

    async def tallies(self) -> dict[str, int]:
        """All counters."""

    async def forget(self, before: float, versions_kept: int) -> int:
        """Delete observations from before a time, and all but the last so many texts of each page; rows deleted.

        Bodies that no version names are deleted too. What is learned of pages stays.
        """


class ChangeStore(Protocol):
    """The change log and who reads it."""

    async def append_changes(self, changes: Sequence[NewChange]) -> list[int]:
        """Append events that come from no fetch; their cursors."""

    async def changes(
        self,
        after: int = 0,
        limit: int = 1000,
        page_id: int | None = None,
        *,
        before: int | None = None,
        kinds: Sequence[ChangeKind] | None = None,
        newest_first: bool = False,
    ) -> list[Change]:
        """Events with cursors above `after`, in their order. O(those), of some kinds O(cursors in between).

        Args:
            after: the cursor that they come after.
            limit: how many at most.
            page_id: only those of one page.
            before: the cursor that they come before; None for all to the end.
            kinds: only these; None for all.
            newest_first: in the other order, so that the limit leaves out the oldest.
        """

    async def last_cursor(self) -> int:
        """The cursor of the last event; 0 if there is none."""

    async def cursor_before(self, time: float) -> int:
        """The last cursor of events detected before a time: read on from there to have all since."""

    async def sink(self, name: str) -> SinkRow:
        """Where a sink is; a new one if it was never seen."""

    async def sinks(self) -> list[SinkRow]:
        """All sinks that were ever fed, by name, also those that are no longer in the settings."""

    async def save_sink(self, row: SinkRow, dead: Sequence[DeadLetter] = ()) -> None:
        """Note where a sink is, and what it could not take."""

    async def dead_letters(self, name: str, limit: int = 100) -> list[DeadLetter]:
        """What a sink could not take, the newest first. O(limit)."""

    async def count_dead_letters(self, name: str, most: int = 10_000) -> int:
        """How many events a sink could not take; counts no further than `most`. O(most)."""


class SourceStore(Protocol):
    """Pages that lead to others. A source is never deleted: retired, or with a page that is retired, it stays."""

    async def add_sources(self, rows: Sequence[SourceRow]) -> list[bool]:
        """Make sources of pages that exist, of either role; for each whether it is new or taken up anew.

        One that is known is left as it is. One that is retired is taken up anew: kind, `found_by` and `added_at` are
        those of now, counts and memory stay.
        """

    async def sources(self) -> list[SourceRow]:
        """All sources in the order of their pages, retired ones too, without what they remember."""

    async def source_memory(self, page_id: int) -> bytes | None:
        """What the reader of a source remembers."""

    async def source_memories(self, page_ids: Sequence[int]) -> dict[int, bytes]:
        """What the readers of these sources remember, without those that remember nothing."""

    async def save_sources(self, rows: Sequence[SourceRow]) -> None:
        """Write sources whole, new ones too; a memory that is None is left as it is."""


class SignalStore(Protocol):
    """Signals that were acknowledged and not yet answered by a fetch."""

    async def add_signals(self, page_ids: Sequence[int], kind: str, at: float) -> None:
        """Count a signal for each page: one row for each page and kind, however many come."""

    async def pending_signals(self, page_ids: Sequence[int] | None = None) -> list[PendingSignal]:
        """All that wait, or those of some pages: results with a verdict end what was heard before their fetches began.

        One without, a failure, ends only signals of the kind that it names (`Result.answered`).
        """

    async def count_signals(self) -> int:
        """How many pairs of page and kind wait."""


class OwnerStore(Protocol):
    """Hosts, facts, orders, upkeep."""

    async def hosts(self, names: Sequence[str] | None = None) -> list[HostRow]:
        """All hosts, or those of some names that are known, by name, with robots and all that was learned."""

    async def list_hosts(self, after: str = "", limit: int = 100) -> list[HostRow]:
        """Hosts with names above `after`, by name, without robots and what was learned. O(limit)."""

    async def troubled_hosts(self, now: float) -> list[HostRow]:
        """Hosts that fail, are degraded, or are left alone until after `now`, by name, as `list_hosts` gives them."""

    async def save_hosts(self, rows: Sequence[HostRow]) -> None:
        """Write hosts whole."""

    async def facts(self) -> dict[str, str]:
        """Small facts by name, such as the signature of the settings."""

    async def save_facts(self, facts: Mapping[str, str]) -> None:
        """Write facts."""

    async def post(self, kind: str, payload: bytes, at: float) -> int:
        """Leave an order for the owner; its id. Anyone may."""

    async def orders(self, limit: int = 100) -> list[Order]:
        """Orders not answered yet, the oldest first."""

    async def answer(self, order: int, reply: bytes, at: float) -> None:
        """Answer an order."""

    async def reply_to(self, order: int) -> bytes | None:
        """The answer to an order, None while there is none."""

    async def counts(self) -> StoreCounts:
        """How many there are of everything; sources are not counted among pages. O(leases and sources)."""

    async def check(self) -> list[str]:
        """What is wrong with the data, in sentences; empty if nothing is. O(everything)."""

    async def backup(self, path: Path) -> None:
        """Write a whole, consistent copy beside the running store; refused if something is there."""

    async def close(self) -> None:
        """Let go of the store and its lock; calls under way are finished."""


class Store(PageStore, LeaseStore, HistoryStore, ChangeStore, SourceStore, SignalStore, OwnerStore, Protocol):
    """All of it.

    `generation` is 0 for who is not the owner; `name` is the address without a password, safe to print; `store_id`
    tells one store from another and is part of the ids of events.
    """

    name: str
    generation: int
    store_id: str
