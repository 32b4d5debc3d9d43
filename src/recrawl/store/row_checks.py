"""What is refused before it is written, and when a fetch began: for either store, in the same words."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import get_args

from recrawl.errors import InvalidInput
from recrawl.store.rows import PAGE_ROLES, PAGE_STATES, SOURCE_KINDS, NewPage, PageEdit, Result, SourceRow, SourceState


def check_new_pages(pages: Sequence[NewPage]) -> None:
    """Refuse a role that is none."""
    for row, page in enumerate(pages):
        _check(page.role, PAGE_ROLES, "role", row)


def check_edits(edits: Sequence[PageEdit]) -> None:
    """Refuse a state that is none."""
    for row, edit in enumerate(edits):
        if edit.state is not None:
            _check(edit.state, PAGE_STATES, "state", row)


def check_sources(rows: Sequence[SourceRow]) -> None:
    """Refuse a kind or a state that is none."""
    for row, source in enumerate(rows):
        _check(source.kind, SOURCE_KINDS, "kind", row)
        _check(source.state, get_args(SourceState), "state", row)


def check_source_pages(rows: Sequence[SourceRow], known: Collection[int]) -> None:
    """Refuse sources of pages that do not exist."""
    for row, source in enumerate(rows):
        if source.page_id not in known:
            raise InvalidInput(
                f"is {source.page_id}, but there is no such page: add it first", field="page_id", row=row
            )


def _check(value: str, allowed: Sequence[str], field: str, row: int) -> None:
    if value not in allowed:
        raise InvalidInput(f"is {value!r}, but must be one of {', '.join(allowed)}", field=field, row=row)


def began(result: Result) -> float:
    """When the fetch of a result began, in Unix seconds."""
    seen = result.observation
    return seen.at - seen.elapsed_s if result.began_at is None else result.began_at


def interval_column(said: float | None) -> float:
    """What the column of a least interval holds: 0 where nothing is said, -1 where 0 is said.

    Stores of earlier versions hold 0 for both, which counts as nothing said, and no row is written again.
    """
    if said is None or math.isnan(said):
        return 0.0
    return said or -1.0
