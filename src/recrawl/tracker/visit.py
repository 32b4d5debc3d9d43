"""One visit of a page, from its lease to its commit: the record that every stage of `pipeline/` fills and hands on."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

from recrawl.outcomes import Outcome
from recrawl.store.rows import Answer, LeaseRow, NewChange, NewVersion, Observation, PageRow, SourceRow, Verdict
from recrawl.web.change.digests import Digests
from recrawl.web.conditional import Validators
from recrawl.web.fetch.protocol import FetchResult

SettleAs = Literal["first", "unchanged", "changed", "failed", "rate-limited", "retired"]
"""How the scheduler learns that a visit ended."""
BROUGHT_COPY: frozenset[SettleAs] = frozenset({"first", "unchanged", "changed"})
OUTSIDE = "outside:"
"""Workers of other processes have names that begin so; their leases outlive this process."""
LONGEST_FRESH_S = 3600.0
"""A server that calls a copy fresh for longer is asked again after this time."""
_SAYS_MISSING: frozenset[Outcome] = frozenset({"missing", "gone", "soft-404"})


def says_missing(outcome: Outcome) -> bool:
    """Return whether an answer says that the page is not there."""
    return outcome in _SAYS_MISSING


@dataclass(slots=True, eq=False)
class Visit:
    """One fetch of one page. Each stage fills its own block and reads those above; a field is None until it is filled.

    Args:
        page: its row when it was leased; never replaced.
        lease: its lease.
        entry: of the scheduler, that was taken: the page's own, or its entry as a source.
        trigger: why it was taken.
        lease_until: when its lease runs out, as far as it was prolonged.
        heard: signals of the page while it is in flight: when each came, and the number of its kind.
        began_at: when the first request began: what is heard later may tell of a change that the fetch did not see.
            The time of the lease until that is known; remote workers do not say it.
        fetched: the answer.
        refetched: answers to second looks, seconds later.
        outcome: what the world answered, as far as the content tells.
        verdict: what detection says of a page that came.
        reason: why, for people.
        memory: detection state of the page from now on.
        digests: of what came; None if nothing did, or it was the same byte for byte.
        text: to be published as a new version.
        published: the digests of the text that counts, before and after.
        held: of a change that is published late: when the page was last seen without it, and first seen with it.
        validators: to be sent next time; None to keep what is stored.
        source: its row as a source from now on; goes into the same transaction.
        ended_at: when it was handed to completion.
        after: the row of the page from now on.
        observation: to be remembered.
        events: for the change log.
        version: to be published.
        settle_as: what the scheduler is told.
        held_until: the page is not to be taken before.
        fresh_until: the same, unless somebody asks for it or says that it changed.
        moved_to: where the page lives from now on, once that is sure.
        completing: whether it can no longer be withdrawn.
        durable: done when the visit is committed; None if it was withdrawn, or its lease ran out.
    """

    # dispatch
    page: PageRow
    lease: LeaseRow
    entry: int
    trigger: str = "schedule"
    lease_until: float = field(init=False)
    heard: list[tuple[float, int]] = field(default_factory=list)
    # fetch
    began_at: float = field(init=False)
    fetched: FetchResult | None = None
    refetched: tuple[FetchResult, ...] = ()
    # examine
    outcome: Outcome | None = None
    verdict: Verdict | None = None
    reason: str = ""
    memory: bytes | None = None
    digests: Digests | None = None
    text: bytes | None = None
    published: tuple[bytes | None, bytes | None] = (None, None)
    held: tuple[float | None, float | None] | None = None
    validators: Validators | None = None
    # discovery
    source: SourceRow | None = None
    # decide
    ended_at: float = 0.0
    after: PageRow | None = None
    observation: Observation | None = None
    events: list[NewChange] = field(default_factory=list)
    version: NewVersion | None = None
    settle_as: SettleAs | None = None
    held_until: float | None = None
    fresh_until: float | None = None
    moved_to: str | None = None
    # complete, commit
    completing: bool = False
    durable: asyncio.Future[Answer | None] | None = None

    def __post_init__(self) -> None:
        self.lease_until = self.lease.until
        self.began_at = self.lease.leased_at

    @property
    def is_page(self) -> bool:
        """Whether the page is tracked for itself, and not only for what it leads to."""
        return self.page.role == "page"

    @property
    def is_remote(self) -> bool:
        """Whether a worker of another process has it."""
        return self.lease.worker.startswith(OUTSIDE)

    @property
    def answer(self) -> FetchResult:
        """The answer to its fetch, which must have come."""
        assert self.fetched is not None, "it was not fetched"
        return self.fetched

    @property
    def row(self) -> PageRow:
        """The row of its page from now on, which must have been decided."""
        assert self.after is not None, "it was not decided"
        return self.after

    @property
    def seen(self) -> Observation:
        """What is remembered of it, which must have been decided."""
        assert self.observation is not None, "it was not decided"
        return self.observation

    @property
    def brought_copy(self) -> bool:
        """Whether a copy of the page came, or is known to be the same; said when it was decided."""
        return self.settle_as in BROUGHT_COPY

    @property
    def changed(self) -> bool | None:
        """Whether the copy that came had changed; None for a first one."""
        return None if self.settle_as == "first" else self.settle_as == "changed"

    def examined(self, outcome: Outcome, verdict: Verdict | None, reason: str, memory: bytes | None) -> None:
        """Note what the answer means."""
        self.outcome, self.verdict, self.reason, self.memory = outcome, verdict, reason, memory


class InFlight:
    """Every visit between its lease and its commit."""

    def __init__(self) -> None:
        self.by_token: dict[int, Visit] = {}
        self.by_page: dict[int, Visit] = {}
        self.lock = asyncio.Lock()
        """Held across take and lease, and by those who add or withdraw pages."""

    def __len__(self) -> int:
        return len(self.by_token)

    def add(self, visit: Visit) -> None:
        """Note a visit whose page was leased."""
        self.by_token[visit.lease.token] = visit
        self.by_page[visit.page.id] = visit

    def open(self) -> list[Visit]:
        """Return the visits that can still be withdrawn. O(visits)."""
        return [visit for visit in self.by_token.values() if not visit.completing]

    def find(self, token: int) -> Visit | None:
        """Return the visit of a token if it can still be withdrawn."""
        visit = self.by_token.get(token)
        return None if visit is None or visit.completing else visit

    def among(self, page_ids: Collection[int]) -> list[Visit]:
        """Return visits of these pages, tracked for themselves, that can still be withdrawn."""
        if not self.by_page:
            return []
        found = (self.by_page[page_id] for page_id in self.by_page.keys() & set(page_ids))
        return [visit for visit in found if visit.is_page and not visit.completing]

    def start_completion(self, visit: Visit) -> bool:
        """Start completing a visit; return False if it was withdrawn, expired, or is completing already."""
        if self.find(visit.lease.token) is not visit:
            return False
        visit.completing = True
        return True

    def withdraw(self, visit: Visit) -> bool:
        """End a visit that will not be completed; return False if it ended before, or is completing."""
        if self.find(visit.lease.token) is not visit:
            return False
        self.remove(visit)
        return True

    def remove(self, visit: Visit) -> None:
        """Forget a visit that was withdrawn, or is durable."""
        if self.by_token.pop(visit.lease.token, None) is not None and self.by_page.get(visit.page.id) is visit:
            del self.by_page[visit.page.id]
