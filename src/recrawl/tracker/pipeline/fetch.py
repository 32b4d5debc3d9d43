"""One page from lease to verdict: fetch, examine, look once more where that is asked for. The IO of a visit.

Beside the fetcher there are the parts that it asks: how many second looks may be made (`SecondLooks`), how hosts answer
for pages that do not exist (`MissingPages`), and the crash points inside a fetch (`CrashWatch`).
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from recrawl.jit import has_to_wait
from recrawl.outcomes import Outcome
from recrawl.store.contract import Store
from recrawl.store.crash_points import crash_planned, crash_point
from recrawl.store.packing import unpacked
from recrawl.store.rows import LeaseRow, PageRow
from recrawl.tracker.discovery.reading import examine_source
from recrawl.tracker.hosts import HostBook
from recrawl.tracker.pipeline.examine import Examined, Given, Need, NeedMissing, NeedText, examine, validators_for
from recrawl.tracker.settings.settings import Settings
from recrawl.web.address import Address, read_address
from recrawl.web.charset import as_utf8, read_charset
from recrawl.web.content_rules import ContentRules
from recrawl.web.fetch_result import FetchResult
from recrawl.web.fetch_steps import Channel, FetchJob, NeedRobots, Read, Send, Step
from recrawl.web.page_text import Page, read_page
from recrawl.web.refusal import Refused
from recrawl.web.soft_404 import MissingPage, bogus_path, missing_page, tells_apart
from recrawl.web.transport import Transport

_HALF_READ = 2


def crash_watch() -> Callable[[Step], None] | None:
    """What a transport tells its steps to, if a crash is planned."""
    return CrashWatch().see if crash_planned() else None


class CrashWatch:
    """Passes the points of a fetch; fetches that run at once are told apart by their tasks."""

    def __init__(self) -> None:
        self._reads: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()

    def see(self, step: Step) -> None:
        """A step is about to be answered."""
        task = asyncio.current_task()
        assert task is not None, "fetches run in tasks"
        match step:
            case NeedRobots():
                crash_point("robots")
            case Send():
                self._reads[task] = 0
                crash_point("connect")
            case Read():
                self._reads[task] = self._reads.get(task, 0) + 1
                if self._reads[task] == _HALF_READ:
                    crash_point("mid-body")


FIRST_SHARE = 0.1
LATER_SHARE = 0.01
_MOST_SAVED = 100.0  # of each kind, for a tracker of few pages


class SecondLooks:
    """Second fetches against visits."""

    def __init__(self) -> None:
        self._first = self._later = _MOST_SAVED

    def visited(self) -> None:
        """A page was fetched."""
        self._first = min(self._first + FIRST_SHARE, _MOST_SAVED)
        self._later = min(self._later + LATER_SHARE, _MOST_SAVED)

    def take(self, *, first: bool) -> bool:
        """Whether a second fetch may be made now, which counts then: the first of its page, or a later one."""
        left = self._first if first else self._later
        if left < 1.0:
            return False
        if first:
            self._first -= 1.0
        else:
            self._later -= 1.0
        return True


_MOST_HOSTS = 10_000
_KEPT_S = 7 * 86_400.0
_UNSURE_S = 600.0
_TOKEN_BYTES = 8
_PASSING: frozenset[Outcome] = frozenset({"rate-limited", "server-error", "network-error", "truncated", "deferred"})


class _Answer(NamedTuple):
    """What was found out, and whether the host said it: else it is asked again soon."""

    missing: MissingPage | None
    sure: bool = True


_UNSURE = _Answer(None, sure=False)


class MissingPages:
    """Remembers the answers of the hosts asked last.

    Args:
        fetch: fetches one thing, within pacing and budget.
        now: Unix seconds.
        say: takes sentences for people.
    """

    def __init__(
        self,
        fetch: Callable[[FetchJob], Awaitable[FetchResult]],
        now: Callable[[], float],
        say: Callable[[str], None],
    ) -> None:
        self._fetch = fetch
        self._now = now
        self._say = say
        self._known: OrderedDict[str, tuple[float, asyncio.Task[_Answer]]] = OrderedDict()

    async def of(self, page: Address) -> MissingPage | None:
        """How the origin of a page answers for what it does not have; None if it says so, or tells nothing."""
        at, task = self._known.get(page.origin, (0.0, None))
        if task is None or self._now() - at > _kept_s(task):
            task = asyncio.create_task(self._ask(page))
            self._known.pop(page.origin, None)  # the place in the order is that of the last question
            self._known[page.origin] = self._now(), task
            if len(self._known) > _MOST_HOSTS:
                self._known.popitem(last=False)
        return (await asyncio.shield(task)).missing

    async def _ask(self, page: Address) -> _Answer:
        try:
            return await self._compare(page)
        except Exception as error:  # of the probe, not of the page that seems to have changed
            self._say(f"how {page.origin} answers for pages that it does not have could not be found out: {error!r}")
            return _UNSURE

    async def _compare(self, page: Address) -> _Answer:
        path = bogus_path(page.target.partition("?")[0], secrets.token_hex(_TOKEN_BYTES))
        answer = await self._fetch(FetchJob(page.with_target(path)))
        if not answer.has_page:
            return _UNSURE if answer.outcome in _PASSING else _Answer(None)
        missing = missing_page(_read(answer), path)
        home = await self._fetch(FetchJob(page.with_target("/")))
        if home.outcome in _PASSING:
            return _UNSURE
        return _Answer(missing if home.has_page and tells_apart(missing, _read(home)) else None)


def _kept_s(task: asyncio.Task[_Answer]) -> float:
    """How long an answer counts; one that is awaited counts until it comes."""
    return _KEPT_S if not task.done() or task.result().sure else _UNSURE_S


def _read(result: FetchResult) -> Page:
    return read_page(result.body, result.header(b"content-type").decode("latin-1") or None)


_SOON, _SOON_S = 20.0, 60.0  # from the start of a visit to a second look: so many times the wait, if there is one
_LOOK_S = 0.1
_LONGEST_WAIT_S = 120.0
COMPARING = 4
"""How many times as large a page may be that is read as one that is compared, until kernels are compiled.

Interpreted on a quiet machine, 64 KiB are read in about 0.1 s; 16 KiB that have wholly changed are compared in 0.2 s,
and with a second look in 0.5 s.
"""
_MOST_GROWTH = 3  # bytes of UTF-8 for one of any other encoding, at most
OUTSIDE = "outside:"
"""Workers of other processes have names that begin so; their leases outlive this one."""


@dataclass(slots=True)
class Flight:
    """A page that is being fetched.

    Args:
        page: its row when it was leased.
        lease: its lease.
        scheduled: its id in the scheduler.
        trigger: why it was taken.
        until: when its lease runs out, as far as it was prolonged.
        began_at: when the request of its first fetch began: what is heard later may tell of a change that the fetch did
            not see. The time of the lease until that is known; outside fetchers do not say it.
    """

    page: PageRow
    lease: LeaseRow
    scheduled: int
    trigger: str = "schedule"
    until: float = field(init=False)
    began_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.until = self.lease.until
        self.began_at = self.lease.leased_at

    @property
    def is_outside(self) -> bool:
        """Whether an outside fetcher has it."""
        return self.lease.worker.startswith(OUTSIDE)


class Visitor(Protocol):
    """Brings a page and says what came of it."""

    async def visit(self, flight: Flight) -> tuple[FetchResult, Examined]:
        """Fetch a page and say what came of it; notes in the flight when the fetch began."""


class Fetcher:
    """Fetches and examines pages.

    Args:
        transport: sends requests.
        store: keeps the texts that were published.
        settings: what counts as a change, and when to look again.
        missing: knows how hosts answer for pages that do not exist.
        hosts: told when a request has ended, from when the gap to the next counts.
        channel_of: how a page is fetched: as a page, or by the bounds of sitemaps or feeds.
    """

    def __init__(
        self,
        transport: Transport,
        store: Store,
        settings: Settings,
        missing: MissingPages,
        hosts: HostBook,
        channel_of: Callable[[PageRow], Channel],
    ) -> None:
        self._transport = transport
        self._store = store
        self._settings = settings
        self._missing = missing
        self._hosts = hosts
        self._channel_of = channel_of
        self._second_looks = SecondLooks()

    async def visit(self, flight: Flight) -> tuple[FetchResult, Examined]:
        """Fetch a page and say what came of it; notes in the flight when the fetch began."""
        page, now = flight.page, self._hosts.now()
        self._second_looks.visited()
        rules = self._settings.address_rules
        address = read_address(page.url, rules)
        if isinstance(address, Refused):
            refused = _refused(page, address)
            return refused, Examined("refused", None, refused.reason, page.memory)
        validated = None if page.validated_url is None else read_address(page.validated_url, rules)
        validated_at = validated if isinstance(validated, Address) else None
        job = FetchJob(address, validators_for(page), self._channel_of(page), validated_at=validated_at)
        result, began_at = await self._fetch(job)
        if began_at is not None:
            flight.began_at = began_at
        give = partial(self._give, page, result, now)
        examined = await examine_fetched(page, result, now, self._settings.content, give)
        crash_point("hashed")
        return result, examined

    async def _give(self, page: PageRow, result: FetchResult, since: float, need: Need) -> Given:
        if isinstance(need, NeedText):
            return await published_text(self._store, page)
        if isinstance(need, NeedMissing):
            return await self._missing.of(result.address)
        wait_s = self._settings.again_after_s
        # What changes in the long time of a slow visit would be learned as noise.
        if self._hosts.now() - since > (_SOON * wait_s or _SOON_S) or not self._second_looks.take(first=need.first):
            return None
        await self._hosts.sleep(wait_s)
        again, _ = await self._fetch(FetchJob(result.address))
        await kernels_for(again, COMPARING)
        return again

    async def _fetch(self, job: FetchJob) -> tuple[FetchResult, float | None]:
        """The answer, and when the request for it began, None if there was none."""
        try:
            result = await self._transport.fetch(job)
        finally:
            began_at = self._hosts.done()
        self._hosts.heard(result)
        return result, began_at


async def examine_fetched(
    page: PageRow,
    result: FetchResult,
    now: float,
    rules: ContentRules,
    give: Callable[[Need], Awaitable[Given]],
) -> Examined:
    """Decide what the answer to a fetch means, of a page or of a mere source, by our fetcher or an outside one.

    Args:
        page: its row.
        result: the answer.
        now: the time of the visit.
        rules: what counts as a change.
        give: brings what the examination needs.
    """
    if page.role == "source":
        return examine_source(page, result)
    await kernels_for(result)
    examination = examine(page, result, now, rules)
    given: Given = None
    while True:
        try:
            need = examination.send(given)
        except StopIteration as end:
            examined: Examined = end.value
            return examined
        except Exception as error:  # a page that cannot be read is a failure of that page
            return Examined("network-error", None, f"what came could not be read: {error!r}", page.memory)
        if isinstance(need, NeedText):
            await kernels_for(result, COMPARING)
        given = await give(need)


async def published_text(store: Store, page: PageRow) -> bytes | None:
    """The text that was last published of a page, to be compared; None if it is not kept."""
    packed = await store.read_text(page.id)
    text = None if packed is None else unpacked(packed)
    await _until_compiled(COMPARING * len(text or b""))
    return text


async def kernels_for(result: FetchResult, weight: int = 1) -> None:
    """Wait while kernels for the web are compiled, if a page is so large that interpreting it would stop the loop.

    Args:
        result: has the page.
        weight: 1 if the page is read next, `COMPARING` if it is compared.
    """
    size = weight * len(result.body)
    if not has_to_wait("web", size):
        if not has_to_wait("web", _MOST_GROWTH * size):
            return
        size = weight * _bytes_in_utf8(result)
    await _until_compiled(size)


async def _until_compiled(size: int) -> None:
    """Wait while kernels for the web are compiled, if this many bytes would be interpreted; two minutes at most."""
    for _ in range(int(_LONGEST_WAIT_S / _LOOK_S)):
        if not has_to_wait("web", size):
            return
        await asyncio.sleep(_LOOK_S)


def _bytes_in_utf8(result: FetchResult) -> int:
    """The size of a page as it is read. O(bytes)."""
    content_type = result.header(b"content-type").decode("latin-1") or None
    return len(as_utf8(result.body, read_charset(result.body, content_type)))


def _refused(page: PageRow, why: Refused) -> FetchResult:
    nowhere = Address(page.url, "http", page.host, 80, "/")
    return FetchResult(nowhere, "refused", why.reason, nowhere)
