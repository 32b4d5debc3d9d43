"""The errors recrawl raises.

    RecrawlError
     ├── InvalidInput      a value that cannot be used; names the field and, if there is one, the row
     │    ├── InvalidFile  the same for a file: names the file and counts its rows from 1
     │    └── MissingExtra a feature whose library is not installed; names the extra that brings it
     ├── UnknownPage       an id that is not, or no longer, the scheduler's
     ├── Unreachable       a question with no answer, such as a freshness that no budget reaches
     └── StoreError        the store cannot do it now; nothing was written
          ├── StoreBusy    someone else holds it: another tracker, or a long reader; may be tried again
          ├── StoreFull    no space is left; may be tried again when there is
          ├── StoreLost    its connection, or our place as owner, is gone; the last call may be written or not
          │    └── StoreTaken  another owner has taken over, or the data is no longer there: it cannot be tried again
          ├── StoreDamaged what is stored is not whole, or not a store
          └── StoreNewer   written by a newer recrawl

Every message is one sentence that says what is wrong and how to repair it. The command line prints it and
exits with code 2; a library user finds the parts in the attributes.
"""

from __future__ import annotations


class RecrawlError(Exception):
    """Base of everything recrawl raises on purpose."""


class InvalidInput(RecrawlError, ValueError):
    """A value that cannot be used.

    Args:
        problem: what is wrong and how to repair it, without the field and the row.
        field: the column, option or argument at fault.
        row: index of the page at fault, counted from 0 as in an array.
    """

    def __init__(self, problem: str, *, field: str | None = None, row: int | None = None) -> None:
        self.problem = problem
        self.field = field
        self.row = row
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        if self.field is None:
            return self.problem
        where = self.field if self.row is None else f"{self.field}[{self.row}]"
        return f"{where} {self.problem}"


class InvalidFile(InvalidInput):
    """A file that cannot be read as pages; `row` still counts from 0, the sentence counts rows from 1."""

    def __init__(self, path: str, problem: str, *, field: str | None = None, row: int | None = None) -> None:
        self.path = path
        super().__init__(problem, field=field, row=row)

    def _sentence(self) -> str:
        row = "" if self.row is None else f" row {self.row + 1}:"
        field = "" if self.field is None else f" {self.field}"
        separator = "" if row else ":"
        return f"{self.path}{separator}{row}{field} {self.problem}"


class MissingExtra(InvalidInput):
    """A feature that needs a library of an extra that is not installed."""


class UnknownPage(RecrawlError, KeyError):
    """An id that the scheduler does not know: never given out, or of a page that was removed.

    Args:
        page: the id.
        row: its place among the ids of the call, counted from 0.
    """

    def __init__(self, page: int, *, row: int | None = None) -> None:
        self.page = page
        self.row = row
        super().__init__(page)

    def __str__(self) -> str:
        where = "id" if self.row is None else f"ids[{self.row}]"
        return f"{where} {self.page} is not a page of this scheduler; it may have been removed"

    def __reduce__(self) -> tuple[object, ...]:
        return _unknown_page, (self.page, self.row)


def _unknown_page(page: int, row: int | None) -> UnknownPage:
    return UnknownPage(page, row=row)


class Unreachable(RecrawlError):
    """A question with no answer: the sentence says what is the most that can be had."""


class StoreError(RecrawlError):
    """A store that cannot do what it is asked."""


class StoreBusy(StoreError):
    """Held by another tracker, or locked for longer than we wait: try again."""


class StoreFull(StoreError):
    """No space is left: nothing was written, and it may be tried again when there is."""


class StoreLost(StoreError):
    """The connection is gone, or another owner has taken over; whether the last call was written is unknown."""


class StoreTaken(StoreLost):
    """Another owner has taken over, or the file or its thread is gone: this process must end, it can write no more."""


class StoreDamaged(StoreError):
    """What is stored is damaged, cut short, or no store at all; it is left as it is."""


class StoreNewer(StoreError):
    """Written by a newer recrawl, whose tables this one does not know."""
