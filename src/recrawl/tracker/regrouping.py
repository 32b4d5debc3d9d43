"""Groups that changed in the settings, brought to the pages that are tracked already.

The rules of groups are kept as a fact of the store. When a tracker starts with others, pages are walked in batches. A
value that was the old group's (or the default of a page without one) becomes the new group's; one that the user gave
the page stays. A page that was put into a group by name stays in it while there is such a group.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import msgspec

from recrawl.store.contract import Store
from recrawl.store.rows import NOT_SAID, PageEdit, PageRow
from recrawl.tracker.newcomers import group_of
from recrawl.tracker.settings.settings import GroupRule, Settings, TrackedObjective

FACT = "groups"
_BATCH = 1000


@dataclass(frozen=True, slots=True)
class _Values:
    """What a group says of its pages."""

    importance: float
    objective: str | None
    min_interval_s: float | None
    max_interval_s: float  # infinity for no bound


async def regroup(store: Store, settings: Settings) -> int:
    """Bring changed groups to the pages; how many were edited. O(1) if nothing changed, else O(pages · patterns).

    It is done before the fact is written: after a crash it is done again, and what was done stays.
    """
    kept = (await store.facts()).get(FACT)
    signature = signature_of(settings.groups)
    if kept == signature:
        return 0
    old = read_signature(kept)
    edited = after = 0
    while pages := await store.list_pages(after, _BATCH):
        after = pages[-1].id
        edits = [edit for page in pages if (edit := edit_of(page, old, settings)) is not None]
        if edits:
            edited += await store.edit_pages(edits)
    await store.save_facts({FACT: signature})
    return edited


def signature_of(groups: Sequence[GroupRule]) -> str:
    """The rules as text, the same for the same rules."""
    return json.dumps([asdict(group) for group in groups], sort_keys=True)


def read_signature(kept: str | None) -> tuple[GroupRule, ...]:
    """The rules of a signature; none if it cannot be read."""
    try:
        return tuple(msgspec.json.decode(kept or "[]", type=list[GroupRule]))
    except msgspec.MsgspecError:
        return ()


def edit_of(page: PageRow, old: Sequence[GroupRule], settings: Settings) -> PageEdit | None:
    """What changes of a page; None if nothing does."""
    if page.state == "retired":
        return None
    before, now = _by_name(old), _by_name(settings.groups)
    new = _new_group(page, old, settings.groups)
    if page.group not in ("", *before) and page.group in now:
        before = now  # nobody knows what its group said when it was added: take it for what it says now
    was = _values(before.get(page.group))
    will = _values(new)
    longest = math.inf if page.max_interval_s is None else page.max_interval_s
    edit = PageEdit(
        page.id,
        group=_changed(page.group, "" if new is None else new.name),
        importance=will.importance if page.importance == was.importance != will.importance else None,
        objective=_objective(page, was, will, settings.objective),
        min_interval_s=_least(page, was, will),
        # The store takes None for "as it is": infinity is no bound too.
        max_interval_s=will.max_interval_s if longest == was.max_interval_s != will.max_interval_s else None,
    )
    return None if edit == PageEdit(page.id) else edit


def _new_group(page: PageRow, old: Sequence[GroupRule], new: Sequence[GroupRule]) -> GroupRule | None:
    fitted = group_of(page.url, old)
    by_hand = page.group and (fitted is None or fitted.name != page.group)
    named = _by_name(new).get(page.group)
    return named if by_hand and named is not None else group_of(page.url, new)


def _by_name(groups: Sequence[GroupRule]) -> Mapping[str, GroupRule]:
    return {group.name: group for group in groups}


def _values(group: GroupRule | None) -> _Values:
    if group is None:
        return _Values(1.0, None, None, math.inf)
    importance = 1.0 if group.importance is None else group.importance
    longest = math.inf if group.max_interval_s is None else group.max_interval_s
    objective = None if group.objective == "news" else group.objective  # which is said of sources, not of pages
    return _Values(importance, objective, group.min_interval_s, longest)


def _objective(page: PageRow, was: _Values, will: _Values, usual: TrackedObjective) -> str | None:
    """The new objective of a page; None to leave it. Where the group says nothing it is the tracker's, by name."""
    if (page.objective or usual) != (was.objective or usual) or was.objective == will.objective:
        return None
    return will.objective or usual


def _least(page: PageRow, was: _Values, will: _Values) -> float | None:
    """The new least interval of a page; None to leave it."""
    if page.min_interval_s != was.min_interval_s or was.min_interval_s == will.min_interval_s:
        return None
    return NOT_SAID if will.min_interval_s is None else will.min_interval_s


def _changed(has: str, wanted: str) -> str | None:
    return wanted if has != wanted else None
