"""What sources name, brought to the store: new addresses become pages, dates of tracked pages become signals.

How far discovery goes is bounded by scope, by caps and by the day. What is refused is never kept, so memory grows with
what was taken only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from recrawl.store.rows import NewPage
from recrawl.store.store import Store
from recrawl.tracker.admission import PageRequest, Rejected, admit, fits, group_of
from recrawl.tracker.clock import DAY_S, TrackerClock
from recrawl.tracker.discovery.reading import ListDiff, Named, tells_of_change
from recrawl.tracker.discovery.source import Source, SourceBook
from recrawl.tracker.hosts import HostBook
from recrawl.tracker.settings.settings import DiscoveryRules, Settings
from recrawl.web.url.address import STORED_RULES, Address, read_address
from recrawl.web.url.canonical import registered_domain
from recrawl.web.url.traps import Discovered

_NO_PAGES = frozenset((
    "jpg", "jpeg", "png", "gif", "webp", "avif", "svg", "ico", "bmp", "tif", "tiff", "css", "js", "mjs", "map", "woff",
    "woff2", "ttf", "otf", "eot", "mp3", "mp4", "m4a", "m4v", "ogg", "ogv", "wav", "webm", "mov", "avi", "mkv", "zip",
    "gz", "tgz", "bz2", "xz", "7z", "rar", "tar", "dmg", "exe", "msi", "deb", "rpm", "apk", "iso", "bin", "swf",
))  # fmt: skip


def outside(address: Address, root: str, depth: int, rules: DiscoveryRules) -> str | None:
    """The rule by which an address is not followed, None if it is. O(patterns · length).

    Args:
        address: in canonical form.
        root: `root_of` the page that the user named and that all this began with.
        depth: links from that page.
        rules: of the user.

    >>> from recrawl.web.url.address import read_address
    >>> outside(read_address("https://www.example.com/a"), "example.com", 1, DiscoveryRules())
    >>> outside(read_address("https://other.example.com/a"), "example.com", 1, DiscoveryRules())
    'out-of-scope'
    """
    if depth > rules.depth:
        return "too-deep"
    if not belongs(address, root, rules):
        return "out-of-scope"
    if rules.include and not any(fits(address.url, pattern) for pattern in rules.include):
        return "not-included"
    if any(fits(address.url, pattern) for pattern in rules.exclude):
        return "excluded"
    if is_no_page(address):
        return "no-page"
    return None


def root_of(address: Address) -> str:
    """What addresses of the same host have in common: name and port, with or without `www.` in front."""
    return address.authority.removeprefix("www.")


def is_no_page(address: Address) -> bool:
    """Whether an address says by its ending that it is an image, a script, an archive: nothing to read."""
    name = address.target.partition("?")[0].rpartition("/")[2]
    return "." in name and name.rpartition(".")[2].lower() in _NO_PAGES


def signature(rules: DiscoveryRules) -> str:
    """What decides which addresses are taken: when it changes, what was refused is looked at again."""
    return repr((rules.scope, rules.include, rules.exclude, rules.depth, rules.caps, rules.oldest_s))


def belongs(address: Address, root: str, rules: DiscoveryRules) -> bool:
    """Whether an address is of the site that the user asked to follow, whatever its path."""
    if rules.scope == "patterns":
        return True  # they are asked next
    if rules.scope == "site":
        return registered_domain(address.host) == registered_domain(root.partition(":")[0])
    return root_of(address) == root


DAY_CAP = "day-cap"


class DiscoveryQuota:
    """What was taken so far, as counts.

    Args:
        rules: scope and caps.
    """

    def __init__(self, rules: DiscoveryRules) -> None:
        self._rules = rules
        self._taken = Discovered(rules.caps)
        self._today: Counter[str] = Counter()
        self._day = -1
        self.hosts: dict[str, int] = {}
        """Hosts whose pages of earlier lives are counted, with the addresses of each that were taken, then and now."""

    def note(self, host: str, *, taken: bool) -> None:
        """An address of a host was taken or refused; a host of which nothing was taken is forgotten."""
        if taken:
            self.hosts[host] = self.hosts.get(host, 0) + 1
        elif not self.hosts.get(host):
            self.hosts.pop(host, None)

    def remember(self, address: Address, source: str) -> None:
        """Count an address that was taken in an earlier life. O(length)."""
        self._taken.offer(address, source)

    def offer(self, address: Address, source: str, root: str, depth: int, now: float) -> str | None:
        """Take a new address, or say by which rule it is refused. O(length).

        Args:
            address: in canonical form, not tracked and never tracked before.
            source: the address of the source that named it.
            root: see `outside`.
            depth: links from the page that the user named.
            now: Unix seconds.
        """
        rule = outside(address, root, depth, self._rules) or self._full_today(address, now)
        if rule is None:
            refused = self._taken.offer(address, source)
            rule = None if refused is None else refused.rule
        if rule is None:
            self._today[address.host] += 1
        return rule

    def _full_today(self, address: Address, now: float) -> str | None:
        if int(now // DAY_S) != self._day:
            self._day = int(now // DAY_S)
            self._today.clear()
        return DAY_CAP if self._today[address.host] >= self._rules.by_day else None


Add = Callable[[Sequence[NewPage]], Awaitable[list[tuple[int, bool]]]]
_BATCH = 500
_LONGEST_WAIT_DAYS = 30.0
_BORN_WITHIN_S = 7 * DAY_S


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of the findings of a poll.

    Args:
        found: pages that are new to everyone, by their ids, and when each was born, as far as is known.
        changed: tracked pages that are said to have changed, by their ids.
        gains: importance of each of these, and the days since its last crawl.
        put_off: addresses that are looked at again at the next poll: the day is full.
        refused: how many addresses were not taken, by rule.
    """

    found: Mapping[int, float] = field(default_factory=dict)
    changed: tuple[int, ...] = ()
    gains: tuple[tuple[float, float], ...] = ()
    put_off: tuple[str, ...] = ()
    refused: Counter[str] = field(default_factory=Counter)


class Ingest:
    """Takes in findings.

    Args:
        store: knows which addresses are known.
        hosts: of the tracker.
        book: all sources.
        settings: of the tracker.
        clock: of the tracker.
        add: tracks pages from now on.
    """

    def __init__(
        self, store: Store, hosts: HostBook, book: SourceBook, settings: Settings, clock: TrackerClock, add: Add
    ) -> None:
        self._store = store
        self._hosts = hosts
        self._book = book
        self._settings = settings
        self._clock = clock
        self._add = add
        self.frontier = DiscoveryQuota(settings.discovery)

    async def take_in(self, source: Source, findings: ListDiff) -> Taken:
        """Add what is new, and say which tracked pages have changed. O(addresses)."""
        found: dict[int, float] = {}
        refused: Counter[str] = Counter()
        put_off: list[str] = []
        changed: dict[int, tuple[float, float]] = {}
        for named in _batches(findings.fresh):
            urls = [each.address.url for each in named]
            known = await self._store.find_pages(urls, role="page", retired=True)
            await self._hear(changed, [each for each in named if each.address.url in known], known)
            new = [each for each in named if each.address.url not in known]
            found |= await self._track(source, new, put_off, refused)
        for named in _batches(findings.moved):
            known = await self._store.find_pages([each.address.url for each in named])
            await self._hear(changed, named, known)
        return Taken(found, tuple(changed), tuple(changed.values()), tuple(put_off), refused)

    async def _hear(
        self, changed: dict[int, tuple[float, float]], named: Sequence[Named], known: dict[str, int]
    ) -> None:
        """Which of these pages changed after they were fetched, as their dates have it."""
        dated = {
            known[each.address.url]: each.at for each in named if each.at is not None and each.address.url in known
        }
        now = self._clock.now()
        for page in await self._store.read_pages(list(dated)):
            if page.state == "retired" or page.fetched_at is None:
                continue
            if tells_of_change(dated[page.id], page.fetched_at):
                days = min((now - page.fetched_at) / DAY_S, _LONGEST_WAIT_DAYS)
                changed[page.id] = (page.importance, max(days, 0.0))

    async def _track(
        self, source: Source, named: Sequence[Named], put_off: list[str], refused: Counter[str]
    ) -> dict[int, float]:
        """Track addresses that nobody knew, as far as rules and caps allow; ids and births of those that are new."""
        pages = []
        rules, memory = self._settings.discovery, source.memory
        for each in named:
            page: NewPage | str | None = outside(each.address, memory.root, memory.depth + 1, rules)
            if page is None:  # of what is outside nothing is kept, not even the host
                host = self._hosts.name_of(each.address)
                await self._count_known(host)
                page = self._page(source, each)
                self.frontier.note(host, taken=isinstance(page, NewPage))
            if isinstance(page, NewPage):
                pages.append(page)
                continue
            refused[page] += 1
            if page == DAY_CAP:
                put_off.append(each.address.url)
        added = await self._add(pages) if pages else []
        return {number: page.added_at for (number, new), page in zip(added, pages, strict=True) if new}

    def _page(self, source: Source, named: Named) -> NewPage | str:
        """The page that an address becomes, or the rule by which it is not taken."""
        settings, address, now = self._settings, named.address, self._clock.now()
        rules, other = settings.discovery, self._book.at(address.url)
        if other is not None and other.row.kind != "hub":
            return "source"  # a list of pages is no page
        if rules.oldest_s is not None and named.at is not None and named.at < now - rules.oldest_s:
            return "too-old"
        robots = self._hosts.robots_of(address)
        if robots is not None and robots.expires_at > now and not robots.allows(address):
            return "robots"
        group = group_of(address.url, settings.groups)
        found = rules.found if group is None or group.found is None else group.found
        page = admit(PageRequest(address.url, source=source.url), settings, now)
        if isinstance(page, Rejected) or found == "none":
            return "refused" if isinstance(page, Rejected) else "not-wanted"
        refused = self.frontier.offer(address, source.url, source.memory.root, source.memory.depth + 1, now)
        if refused is not None:
            return refused
        dated = named.at is not None and now - _BORN_WITHIN_S <= named.at <= now and source.row.polls > 0
        born = named.at if dated and named.at is not None else now
        return replace(page, objective="once" if found == "once" else page.objective, added_at=born)

    async def _count_known(self, host: str) -> None:
        """Count what was found on a host in earlier lives, once. O(pages of the host)."""
        if host in self.frontier.hosts:
            return
        self.frontier.hosts[host] = 1  # for this look: others who find the host meanwhile do not count it again
        after = 0
        while pages := await self._store.list_pages(after, 1000, host=host):
            after = pages[-1].id
            for page in pages:
                known = read_address(page.url, STORED_RULES) if page.source.startswith("http") else None
                if isinstance(known, Address):
                    self.frontier.remember(known, page.source)
                    self.frontier.hosts[host] += 1
        self.frontier.hosts[host] -= 1


def _batches(named: Sequence[Named]) -> list[Sequence[Named]]:
    return [named[start : start + _BATCH] for start in range(0, len(named), _BATCH)]
