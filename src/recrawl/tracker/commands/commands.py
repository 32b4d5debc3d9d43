"""What a user can ask of a tracker, how it is done, and how it gets to a tracker in another process.

A command is a value. It is applied on the store, and on the scheduler if one is running; done twice it does no more
than once. A process that wants something done opens the store as its owner and does it. If a tracker owns the store,
the command is left there as an order, in JSON; an order that is durable is done, by this tracker or the next.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec

from recrawl.errors import InvalidInput, RecrawlError, StoreBusy, StoreError
from recrawl.store.rows import NewChange, NewPage, PageEdit, PauseKind
from recrawl.store.store import Store, open_store
from recrawl.tracker.admission import PageRequest, Rejected, address_of, admit, is_paused
from recrawl.tracker.kinds import NOW
from recrawl.tracker.settings.settings import Settings

if TYPE_CHECKING:
    from recrawl.tracker.tracker import Tracker


class SourceHits(msgspec.Struct, array_like=True):
    """Hits on the pages of one source in a stretch of time, by age; both counts as `interest.pack_counts` gives them.

    Args:
        page_id: of the source.
        since: the beginning of the stretch.
        until: its end.
        hits: on its pages.
        watched: pages of that age.
    """

    page_id: int
    since: float
    until: float
    hits: bytes
    watched: bytes


class CountHits(msgspec.Struct, tag="hits"):
    """Count hits of access logs; what lies before hits that were counted is left out, so that twice is once."""

    counts: list[SourceHits]


class ListSources(msgspec.Struct, tag="sources"):
    """Which sources are there, and what do they bring?"""


PREFIX = "token:"
_ID = re.compile(r"[0-9a-f]{1,64}")


class KeepToken(msgspec.Struct, tag="token"):
    """Keep the record of a token, new or revoked; the token itself is not in it."""

    id: str
    record: str


def token_fact(number: str, record: str) -> dict[str, str]:
    """The fact to save."""
    if not _ID.fullmatch(number) or len(record) > 4096:
        raise InvalidInput("is no record of a token", field="token")
    return {PREFIX + number: record}


def token_records(facts: Mapping[str, str]) -> list[str]:
    """All records among facts."""
    return [value for name, value in facts.items() if name.startswith(PREFIX)]


_SHOWN_REJECTED = 20


class Add(msgspec.Struct, tag="add"):
    """Track pages; those whose address is among `paused`, if they are new, not before they are resumed.

    A page that is tracked already stays as it is, but for a `min_interval_s` that is said.
    """

    pages: list[PageRequest]
    dry_run: bool = False
    paused: list[str] = msgspec.field(default_factory=list)


class Remove(msgspec.Struct, tag="remove"):
    """Stop tracking pages; what was seen of them stays."""

    urls: list[str]


class Pause(msgspec.Struct, tag="pause"):
    """Hold back pages, groups or hosts, by address or name."""

    kind: PauseKind
    names: list[str]


class Resume(msgspec.Struct, tag="resume"):
    """End pauses; of pages also a quarantine."""

    kind: PauseKind
    names: list[str]


class Signal(msgspec.Struct, tag="signal"):
    """Pages are said to have changed."""

    urls: list[str]
    kind: str


class FetchNow(msgspec.Struct, tag="fetch-now"):
    """Fetch pages as soon as their hosts allow, whatever they are worth; the budget pays."""

    urls: list[str]


class SetBudget(msgspec.Struct, tag="budget"):
    """Change the budget until the tracker is started again."""

    per_day: float


class Spend(msgspec.Struct, tag="spend"):
    """Requests that were made beside the tracker, such as those for sitemaps: they count against its budget."""

    requests: int
    wire_bytes: int


class Explain(msgspec.Struct, tag="explain"):
    """Why is a page, or is it not, crawled now?"""

    url: str


Command = (
    Add
    | Remove
    | Pause
    | Resume
    | Signal
    | FetchNow
    | SetBudget
    | Spend
    | Explain
    | CountHits
    | ListSources
    | KeepToken
)


class Reply(msgspec.Struct):
    """What was done: counts by name, and what was refused, the first twenty in words."""

    done: dict[str, int] = msgspec.field(default_factory=dict)
    rejected: list[Rejected] = msgspec.field(default_factory=list)
    error: str = ""
    facts: dict[str, Any] = msgspec.field(default_factory=dict)


class CommandHandler:
    """Does commands on a store, and on a tracker that runs, if there is one.

    Args:
        store: owned by us.
        settings: groups, and what may be reached.
        tracker: that runs in this process.
    """

    def __init__(self, store: Store, settings: Settings, tracker: Tracker | None = None) -> None:
        self._store = store
        self._settings = settings
        self._tracker = tracker
        self._doers: dict[type, Callable[[Any, float], Awaitable[Reply]]] = {
            Add: self._add,
            Remove: self._remove,
            Pause: self._pause,
            Resume: self._resume,
            Signal: self._signal,
            FetchNow: self._fetch_now,
            SetBudget: self._budget,
            Spend: self._spend,
            Explain: self._explain,
            CountHits: self._count_hits,
            ListSources: self._list_sources,
            KeepToken: self._keep_token,
        }

    async def do(self, command: Command, now: float) -> Reply:
        """Do one command."""
        return await self._doers[type(command)](command, now)

    async def _add(self, command: Add, now: float) -> Reply:
        read = [admit(wanted, self._settings, now) for wanted in command.pages]
        pages = list({page.url: page for page in read if isinstance(page, NewPage)}.values())
        rejected = [each for each in read if isinstance(each, Rejected)]
        same = len(read) - len(pages) - len(rejected)
        changed = await self._set_intervals(command, read, rejected)
        done = {"same": same, "rejected": len(rejected), **changed}
        if command.dry_run:
            known = await self._store.find_pages([page.url for page in pages])
            added = len(pages) - len(known)
        else:
            done["paused"] = await self._hold(command, read, now)
            added = await self._enter(pages)
        done |= {"added": added, "known": len(pages) - added}
        return Reply(done, rejected[:_SHOWN_REJECTED])

    async def _set_intervals(
        self, command: Add, read: Sequence[NewPage | Rejected], rejected: list[Rejected]
    ) -> dict[str, int]:
        """Change the least interval of pages that are tracked and for which one is said; how many, if any."""
        said = {
            page.url: page.min_interval_s
            for wanted, page in zip(command.pages, read, strict=True)
            if isinstance(page, NewPage) and wanted.min_interval_s is not None and page.min_interval_s is not None
        }
        found = await self._store.find_pages(list(said)) if said else {}
        lows: dict[int, float] = {}
        for row in await self._store.read_pages(list(found.values())) if found else []:
            low = said[row.url]
            if row.max_interval_s is not None and low > row.max_interval_s:
                reason = f"min-interval is {low:g} s, above the max-interval of the page, {row.max_interval_s:g} s"
                rejected.append(Rejected(row.url[:200], reason))
            elif low != row.min_interval_s:
                lows[row.id] = low
        if lows and not command.dry_run:
            await self._store.edit_pages([PageEdit(number, min_interval_s=low) for number, low in lows.items()])
            if self._tracker is not None:
                await self._tracker.registry.space_out(lows)
        return {"changed": len(lows)} if lows else {}

    async def _hold(self, command: Add, read: Sequence[NewPage | Rejected], now: float) -> int:
        """Pause what is to be added paused and is not tracked yet; how many."""
        wanted = set(command.paused)
        named = [
            page.url
            for said, page in zip(command.pages, read, strict=True)
            if said.url in wanted and isinstance(page, NewPage)
        ]
        known = await self._store.find_pages(named) if named else {}
        new = {url for url in named if url not in known}
        for url in new:
            await self._store.pause("page", url, now)
        return len(new)

    async def _enter(self, pages: Sequence[NewPage]) -> int:
        """Add pages to the store, and to the scheduler if one runs; how many were new."""
        adding = self._store.add_pages if self._tracker is None else self._tracker.registry.add
        return sum(new for _, new in await adding(pages))

    async def _known(self, urls: Sequence[str]) -> tuple[dict[str, int], list[Rejected]]:
        """Ids by canonical address of pages that are tracked, and addresses that are not."""
        named = dict(address_of(url) for url in urls)
        found = await self._store.find_pages(list(named))
        missing = ((url, reason) for url, reason in named.items() if url not in found)
        return found, [Rejected(url[:200], reason or "is not tracked") for url, reason in missing]

    async def _named(self, kind: PauseKind, names: Sequence[str]) -> tuple[list[str], list[Rejected]]:
        """Names as pauses have them, and those that no page goes by."""
        if kind == "page":
            found, rejected = await self._known(names)
            return list(found), rejected
        known, rejected = [], []
        for name in names:
            if kind == "group":
                pages = await self._store.list_pages(limit=1, group=name)
            else:
                pages = await self._store.list_pages(limit=1, host=name.lower())
            if pages:
                known.append(name if kind == "group" else name.lower())
            else:
                rejected.append(Rejected(name[:200], f"is no {kind} of any page"))
        return known, rejected

    async def _remove(self, command: Remove, now: float) -> Reply:
        found, rejected = await self._known(command.urls)
        edits = [PageEdit(number, state="retired", reason="removed by the user") for number in found.values()]
        events = [
            NewChange("removed", now, url, page_id=number, detail='{"reason": "user"}') for url, number in found.items()
        ]
        await self._store.append_changes(events)  # first: an event may come twice, and must not be missing
        await self._store.edit_pages(edits)
        if self._tracker is not None:
            await self._tracker.registry.drop(list(found.values()))
        return Reply({"removed": len(found), "rejected": len(rejected)}, rejected[:_SHOWN_REJECTED])

    async def _pause(self, command: Pause, now: float) -> Reply:
        names, rejected = await self._named(command.kind, command.names)
        for name in names:
            await self._store.pause(command.kind, name, now)
        await self._sort_out(command.kind, names)
        return Reply({"paused": len(names), "rejected": len(rejected)}, rejected[:_SHOWN_REJECTED])

    async def _resume(self, command: Resume, _now: float) -> Reply:
        names, rejected = await self._named(command.kind, command.names)
        ended = set()
        if command.kind == "page":
            found = await self._store.find_pages(names)
            ill = [page for page in await self._store.read_pages(list(found.values())) if page.state == "quarantined"]
            await self._store.edit_pages([PageEdit(page.id, state="active", reason="") for page in ill])
            ended = {page.url for page in ill}
        for name in names:
            if await self._store.resume(command.kind, name):
                ended.add(name)
        await self._sort_out(command.kind, sorted(ended))
        return Reply({"resumed": len(ended), "rejected": len(rejected)}, rejected[:_SHOWN_REJECTED])

    async def _signal(self, command: Signal, now: float) -> Reply:
        found, rejected = await self._known(command.urls)
        heard = len(found)
        if self._tracker is None:
            await self._store.add_signals(list(found.values()), command.kind, now)
        else:
            heard = self._tracker.signals.heard(list(found.values()), command.kind, now)
            await self._tracker.signals.flush()
        done = {"heard": heard, "rejected": len(rejected)}
        if heard < len(found):
            done["ignored"] = len(found) - heard  # just crawled, or of a kind that the settings leave out
        return Reply(done, rejected[:_SHOWN_REJECTED])

    async def _fetch_now(self, command: FetchNow, now: float) -> Reply:
        found, rejected = await self._known(command.urls)
        paused = set(await self._store.paused()) if found else set()
        wanted = []
        for page in await self._store.read_pages(list(found.values())):
            paused_now = is_paused(page, paused)
            if paused_now or page.state == "quarantined":
                rejected.append(Rejected(page.url[:200], "is paused" if paused_now else "is quarantined"))
            else:
                wanted.append(page)
        await self._store.add_signals([page.id for page in wanted], NOW, now)
        if self._tracker is not None:
            for page in wanted:
                self._tracker.dispatcher.fetch_now.add(page.id, page.host)
        return Reply({"wanted": len(wanted), "rejected": len(rejected)}, rejected[:_SHOWN_REJECTED])

    async def _budget(self, command: SetBudget, _now: float) -> Reply:
        if self._tracker is None:
            return Reply(error="no tracker is running: set the budget in the settings")
        self._tracker.schedule.set_budget(command.per_day, self._tracker.timing.tick_s)
        return Reply({"budget_per_day": int(command.per_day)})

    async def _spend(self, command: Spend, _now: float) -> Reply:
        requests, wire_bytes = max(command.requests, 0), max(command.wire_bytes, 0)
        await self._store.raise_tallies({"requests": requests, "wire_bytes": wire_bytes})
        if self._tracker is not None:
            self._tracker.schedule.spend(float(requests))
            self._tracker.usage.bytes_left.spend(wire_bytes)
        return Reply({"requests": requests})

    async def _explain(self, command: Explain, now: float) -> Reply:
        from recrawl.tracker.commands.explain import explained  # needs a compiler, which other commands do not

        found, rejected = await self._known([command.url])
        if not found:
            return Reply({"rejected": 1}, rejected)
        page = (await self._store.read_pages(list(found.values())))[0]
        said = None if self._tracker is None else self._tracker.schedule.explain(page.id, now)
        hearing = None if self._tracker is None else self._tracker.signals
        facts = await explained(self._store, page, self._settings, said, hearing, now)
        return Reply(facts={**facts, "tracker_runs": self._tracker is not None})

    async def _count_hits(self, command: CountHits, _now: float) -> Reply:
        from recrawl.tracker.commands.hits import count

        sources = None if self._tracker is None else self._tracker.discovery
        return Reply({"sources": await count(self._store, sources, command.counts)})

    async def _list_sources(self, _command: ListSources, now: float) -> Reply:
        from recrawl.tracker.discovery.listing import list_sources

        return Reply(facts=await list_sources(self._store, self._settings, self._tracker, now))

    async def _keep_token(self, command: KeepToken, _now: float) -> Reply:
        await self._store.save_facts(token_fact(command.id, command.record))
        return Reply({"kept": 1})

    async def _sort_out(self, kind: PauseKind, names: Sequence[str]) -> None:
        """Let the scheduler have what is not held, and nothing else."""
        if self._tracker is not None:
            await self._tracker.registry.apply_pauses(kind, names)


_ASK_S = 0.05
_TURNS_ALONE = 20
_ENCODER = msgspec.json.Encoder()
_COMMAND = msgspec.json.Decoder(Command)
_REPLY = msgspec.json.Decoder(Reply)


async def carry_out(command: Command, settings: Settings, now: Callable[[], float], patience_s: float = 30.0) -> Reply:
    """Do a command on the store of the settings, or have it done by the tracker that runs on it.

    A store is begun only for pages that are added.

    Raises:
        StoreBusy: if the tracker that owns the store did not answer; the order stays, and is done when it can be.
    """
    async with CommandClient(settings, now, patience_s) as client:
        return await client.carry_out(command)


class CommandClient:
    """Commands one after another, as `carry_out` does them; remembers whether a tracker runs.

    Args:
        settings: whose store is meant.
        now: Unix seconds.
        patience_s: how long the tracker may take to answer.
    """

    def __init__(self, settings: Settings, now: Callable[[], float], patience_s: float = 30.0) -> None:
        self._settings = settings
        self._now = now
        self._patience_s = patience_s
        self._visited: Store | None = None  # of the tracker that runs

    async def __aenter__(self) -> CommandClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._leave()

    async def carry_out(self, command: Command) -> Reply:
        """Do a command, here or at the tracker."""
        settings = self._settings
        if self._visited is None:
            if isinstance(command, Add) and not _may_exist(settings.store) and not _begins(command, settings):
                with TemporaryDirectory() as nothing:
                    return await self._do(command, replace(settings, store=nothing))
            try:
                return await self._do(command, settings)
            except StoreBusy:
                self._visited = await open_store(settings.store, owner=False)
        return await self._ask(command, self._visited)

    async def _do(self, command: Command, settings: Settings) -> Reply:
        store = await open_store(settings.store, owner=True, create=isinstance(command, Add))
        try:
            return await CommandHandler(store, settings).do(command, self._now())
        finally:
            await store.close()

    async def _ask(self, command: Command, store: Store) -> Reply:
        order = await store.post("command", _ENCODER.encode(command), self._now())
        for turn in range(1, int(self._patience_s / _ASK_S) + 2):
            reply = await store.reply_to(order)
            if reply is not None:
                return _REPLY.decode(reply)
            await asyncio.sleep(_ASK_S)
            if turn % _TURNS_ALONE == 0 and await self._stand_in():
                reply = await store.reply_to(order)
                await self._leave()
                if reply is not None:
                    return _REPLY.decode(reply)
                break
        raise StoreBusy(
            f"the tracker on {store.name} has not answered within {self._patience_s:g} s; the order is kept, and done "
            "later"
        )

    async def _stand_in(self) -> bool:
        """Do the orders that wait if the owner of the store has left: it may have been another command."""
        try:
            store = await open_store(self._settings.store, owner=True, create=False)
        except StoreBusy:
            return False
        try:
            await serve_orders(store, CommandHandler(store, self._settings), self._now)
        finally:
            await store.close()
        return True

    async def _leave(self) -> None:
        store, self._visited = self._visited, None
        if store is not None:
            await store.close()


def _may_exist(store: str) -> bool:
    return "://" in store or Path(store).exists()


def _begins(command: Add, settings: Settings) -> bool:
    """Whether there is a page to begin a store with."""
    return not command.dry_run and any(isinstance(admit(each, settings, 0.0), NewPage) for each in command.pages)


async def serve_orders(store: Store, hand: CommandHandler, now: Callable[[], float]) -> int:
    """Do the orders that wait, the oldest first; how many."""
    done = 0
    for order in await store.orders():
        await store.answer(order.id, _ENCODER.encode(await _reply(hand, order.payload, now())), now())
        done += 1
    return done


async def _reply(hand: CommandHandler, payload: bytes, now: float) -> Reply:
    try:
        return await hand.do(_COMMAND.decode(payload), now)
    except msgspec.MsgspecError as error:
        return Reply(error=f"the order cannot be read: {error}")
    except StoreError:
        raise
    except RecrawlError as error:
        return Reply(error=str(error))
