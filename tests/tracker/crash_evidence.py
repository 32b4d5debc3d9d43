"""What is in a store, and how it must agree with what was seen outside: the comparison after every crash."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledger_site import LedgerSite
from tracker_process import SLOW

from recrawl.store.rows import Change, Observation, PageRow
from recrawl.store.store import Store

_MOST_REQUESTS_OF_A_FETCH = 4
_OUTSIDE = "outside:"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A store as it was read.

    Args:
        pages: by id.
        seen: all observations, in the order they were written.
        log: the change log.
        in_flight: addresses of pages that the tracker had leased to itself.
        sinks: cursors by name.
        lent: addresses of pages that were leased to outside fetchers, by token.
    """

    pages: dict[int, PageRow]
    seen: list[Observation]
    log: list[Change]
    in_flight: frozenset[str]
    sinks: dict[str, int]
    lent: dict[int, str]

    def urls(self) -> set[str]:
        return {page.url for page in self.pages.values()}


async def read_evidence(store: Store) -> Evidence:
    """Read all of a store."""
    pages: dict[int, PageRow] = {}
    while found := await store.list_pages(max(pages, default=0), 1000):
        pages.update({page.id: page for page in found})
    seen: list[Observation] = []
    after = 0
    while rows := await store.all_observations(after, 1000):
        after = rows[-1][0]
        seen.extend(row for _, row in rows)
    log: list[Change] = []
    while changes := await store.changes(len(log), 1000):
        log.extend(changes)
    held = await store.leases()
    sinks = {name: (await store.sink(name)).cursor for name in ("hook", "lines")}
    own = frozenset(pages[each.page_id].url for each in held if not each.worker.startswith(_OUTSIDE))
    lent = {each.token: pages[each.page_id].url for each in held if each.worker.startswith(_OUTSIDE)}
    return Evidence(pages, seen, log, own, sinks, lent)


def check_consistent(found: Evidence) -> None:
    """One result for a lease, a log without gaps, and pages whose counts are those of their results."""
    tokens = [row.token for row in found.seen]
    assert len(tokens) == len(set(tokens)), "a result counts twice"
    assert [change.cursor for change in found.log] == list(range(1, len(found.log) + 1))
    ids = [change.id for change in found.log]
    assert len(ids) == len(set(ids))
    by_page: dict[int, list[Observation]] = defaultdict(list)
    for row in found.seen:
        by_page[row.page_id].append(row)
    for page in found.pages.values():
        rows = by_page[page.id]
        assert page.visits == sum(row.verdict is not None for row in rows), page.url
        assert page.changes == sum(row.verdict == "changed" for row in rows), page.url
        assert page.settled_token == max((row.token for row in rows), default=0), page.url
        assert page.last_token >= page.settled_token
    told = Counter((change.event.kind, change.event.page_id) for change in found.log)
    for page in found.pages.values():
        assert told["discovered", page.id] == min(page.visits, 1), page.url
        assert told["changed", page.id] == page.changes, page.url


def check_nothing_lost(before: Evidence, after: Evidence, acknowledged: Iterable[str]) -> None:
    """What was durable then is there now, in the same order, and nothing that was promised is missing."""
    assert set(acknowledged) <= after.urls()
    assert before.pages.keys() <= after.pages.keys()
    assert after.seen[: len(before.seen)] == before.seen
    assert after.log[: len(before.log)] == before.log


def check_ledger(site: LedgerSite, in_flight: Counter[str], after: Evidence) -> None:
    """The server saw each own fetch that is in the store, and else at most one for each time a page was in flight."""
    written: Counter[str] = Counter()
    for row in after.seen:
        if not row.worker.startswith(_OUTSIDE):
            written[after.pages[row.page_id].url] += row.requests
    outside = Counter(each.url for each in site.borrowed)
    for url in after.urls():
        unwritten = site.asked[url] - outside[url] - written[url]
        assert 0 <= unwritten <= _MOST_REQUESTS_OF_A_FETCH * in_flight[url], (url, unwritten, in_flight[url])


def cut_short(site: LedgerSite) -> Counter[str]:
    """What a drain may end half way: the slow host's page, between two looks at it."""
    return Counter([site.url(SLOW, "/0")])


def check_borrowed(site: LedgerSite, after: Evidence) -> None:
    """Each result of an outside fetcher is one request that the server saw under its token; tokens rise on a page."""
    saw = {each.token: each for each in site.borrowed}
    assert len(saw) == len(site.borrowed), "a lease was used twice"
    for row in after.seen:
        if row.worker.startswith(_OUTSIDE):
            request = saw[row.token]
            assert (row.worker, row.requests) == (_OUTSIDE + request.worker, 1)
            assert after.pages[row.page_id].url == request.url
    last: dict[str, int] = {}
    for each in site.borrowed:
        assert each.token > last.get(each.url, 0), f"{each.url} was asked under an older lease"
        last[each.url] = each.token


def check_sinks(site: LedgerSite, lines: Path, after: Evidence, told_up_to: int) -> None:
    """Both sinks have every event up to their cursor, under the id and cursor that it has in the log."""
    assert all(body["id"] == key for key, body in site.delivered)
    hook = {key: body["cursor"] for key, body in site.delivered}
    written = {each["id"]: each["cursor"] for each in read_lines(lines)}
    for name, has in {"hook": hook, "lines": written}.items():
        cursor = after.sinks[name]
        assert cursor >= told_up_to
        assert has == {change.id: change.cursor for change in after.log if change.cursor <= cursor}, name


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a file of events; one that a crash cut short is none."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found
