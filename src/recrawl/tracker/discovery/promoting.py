"""Which found pages are to be read for links: those one link away from a named page that are a few days old.

A page that is new is an article; one that stays and is linked from the main page is likely a section, whose links
change (ECHO, Lefortier et al. 2013). What it yields shows whether it was worth it: pages without yield retire.
"""

from __future__ import annotations

from recrawl.store.contract import Store
from recrawl.tracker.admission import follows
from recrawl.tracker.discovery.finding import Suggested, is_found
from recrawl.tracker.discovery.source import SourceBook
from recrawl.tracker.settings.settings import Settings
from recrawl.web.address import STORED_RULES, Address, read_address

_BATCH = 1000


async def hubs_among(
    store: Store, book: SourceBook, settings: Settings, now: float
) -> list[tuple[Suggested, str, int]]:
    """Pages that are to become hubs, with root and depth. O(pages of the hosts that have room for hubs)."""
    rules = settings.discovery
    if not rules.hubs or rules.depth < 2:
        return []
    chosen = []
    for host in sorted({source.host for source in book if source.row.kind == "hub" and source.memory.depth == 0}):
        room = rules.most_hubs - sum(each.row.kind == "hub" and each.is_active for each in book.of_host(host))
        after = 0
        while room > 0 and (pages := await store.list_pages(after, _BATCH, host=host)):
            after = pages[-1].id
            for page in pages:
                parent = book.at(page.source)
                if room <= 0 or not is_found(page) or parent is None or book.of_page(page.id) is not None:
                    continue
                old = page.visits > 0 and page.state == "active" and now - page.added_at >= rules.hub_age_s
                address = read_address(page.url, STORED_RULES)
                near = parent.row.kind == "hub" and parent.memory.depth == 0 and follows(page.group, settings)
                if old and near and isinstance(address, Address):
                    chosen.append((Suggested("hub", address, parent.url), parent.memory.root, 1))
                    room -= 1
    return chosen
