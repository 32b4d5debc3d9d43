"""Read foreign XML within bounds: expat, for sitemaps and feeds alike.

expat reads the whole document in one call, since old versions take quadratic time for pieces. No entity is declared, no
document type is fetched, elements nest up to a bound. Python decodes by the labels that browsers know, and by no other
codec that a document names.
"""

from __future__ import annotations

from xml.parsers import expat

from recrawl.web.content.charset import Charset, as_utf8, read_charset

MAX_TEXT = 8192
"""Characters of one element that are kept."""
BROKEN_OFF = frozenset({3, 5, 6, 20})
"""Codes of expat for a document that ends too early: in no element, in a token, in a character, in a section."""
_WIDE = {b"<\0?\0": "utf-16le", b"\0<\0?": "utf-16be"}


class Stop(ValueError):
    """Ends the parse from inside a handler; its text says why."""


class XmlReader:
    """Receives elements with their depth; a subclass overrides `opened`, `closed` and `text`."""

    max_depth = 64
    may_have_type = False

    def __init__(self) -> None:
        self.depth = 0

    def opened(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins, at `depth`."""

    def closed(self, name: str) -> None:
        """An element ends, at `depth`."""

    def text(self, data: str) -> None:
        """Text, in pieces."""

    def read(self, content: bytes) -> None:
        """Read a document in UTF-8. O(bytes).

        Raises:
            Stop: if a bound or a handler ends the parse.
            ExpatError: where the document is broken; what stands before has been received.
        """
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        parser.EntityDeclHandler = _refuse_type
        if not self.may_have_type:
            parser.StartDoctypeDeclHandler = _refuse_type
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self.text
        parser.Parse(content.lstrip(), True)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > self.max_depth:
            raise Stop(f"elements are nested more than {self.max_depth} deep")
        self.opened(name, attributes)

    def _end(self, name: str) -> None:
        self.closed(name)
        self.depth -= 1


def in_utf8(body: bytes) -> bytes:
    """Return a document in UTF-8, by its byte order mark, what it declares, or what its bytes look like. O(bytes)."""
    wide = _WIDE.get(body[:4])
    return as_utf8(body, Charset(wide) if wide else read_charset(body))


def _refuse_type(*_: object) -> None:
    raise Stop("it declares a document type, which no sitemap needs")
