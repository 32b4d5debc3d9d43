"""The errors recrawl raises.

    RecrawlError
     ├── InvalidInput      a value that cannot be used; names the field and, if there is one, the row
     │    └── InvalidFile  the same for a file: names the file and counts its rows from 1
     └── Unreachable       a question with no answer, such as a freshness that no budget reaches

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


class Unreachable(RecrawlError):
    """A question with no answer: the sentence says what is the most that can be had."""
