"""OPML: the subscriptions of a feed reader, however deep they are nested. Pure.

The address of the feed counts (`xmlUrl`); where an outline has none, that of its page (`htmlUrl`, or `url` of a link).
Outlines without any are folders; a folder, or a category, that is a group of the settings gives its name to what is in
it. A document type is refused before any entity can grow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO
from xml.parsers import expat

from recrawl.tracker.admission import PageRequest
from recrawl.tracker.importers.rows import BadRow, GoodRow, Hints, Item, printable, whole

_DEEPEST = 64
_MOST_OUTLINES = 1_000_000
_LEAVES = ("rss", "atom", "feed", "link")


class _Stop(ValueError):
    """Ends the parse from inside a handler."""


@dataclass(slots=True)
class _Outlines:
    """Handlers for expat."""

    groups: frozenset[str]
    items: list[Item] = field(default_factory=list)
    depth: int = 0
    outlines: int = 0
    folders: list[str | None] = field(default_factory=list)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _Stop(f"its outlines are nested more than {_DEEPEST} deep")
        if self.depth == 1 and name.lower() != "opml":
            raise _Stop(f"its outermost element is {printable(name, 40)}")
        if name.lower() != "outline":
            return
        self.outlines += 1
        if self.outlines > _MOST_OUTLINES:
            raise _Stop(f"it has more than {_MOST_OUTLINES} outlines")
        given = {key.lower(): value.strip() for key, value in attributes.items()}
        folder = given.get("text") or given.get("title") or ""
        self.folders.append(folder if folder in self.groups else self._group())
        self._take(given)

    def end(self, name: str) -> None:
        self.depth -= 1
        if name.lower() == "outline" and self.folders:
            self.folders.pop()

    def refuse_document_type(self, *_: object) -> None:
        raise _Stop("it declares a document type, which no OPML needs")

    def _group(self) -> str | None:
        return self.folders[-1] if self.folders else None

    def _take(self, given: dict[str, str]) -> None:
        address = given.get("xmlurl") or given.get("htmlurl") or given.get("url")
        if address:
            named = [part.strip("/ ") for part in given.get("category", "").split(",")]
            group = next((name for name in named if name in self.groups), self.folders[-1])
            self.items.append(GoodRow(self.outlines, PageRequest(address, group=group, source="import")))
        elif given.get("type", "").lower() in _LEAVES:
            self.items.append(BadRow(self.outlines, "has neither xmlUrl nor htmlUrl"))


def read_opml(stream: IO[bytes], hints: Hints) -> Iterator[Item]:
    """The addresses of an OPML document; rows are its outlines, folders counted too."""
    content = whole(stream)
    if isinstance(content, BadRow):
        yield content
        return
    outlines = _Outlines(hints.groups)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    parser.StartDoctypeDeclHandler = outlines.refuse_document_type
    parser.EntityDeclHandler = outlines.refuse_document_type
    parser.StartElementHandler = outlines.start
    parser.EndElementHandler = outlines.end
    problem = None
    try:
        # At once: old versions of expat take quadratic time for pieces.
        parser.Parse(content.lstrip(), True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        problem = f"is not read as OPML beyond outline {outlines.outlines}: {printable(str(error))}"
    yield from outlines.items
    if problem is not None:
        yield BadRow(0, problem)
