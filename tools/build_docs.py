"""Builds the documents into a static site: `make docs`, or `python tools/build_docs.py SITE`.

    contents (docs_pages.py)   which pages there are, in the order of the navigation; generated ones among them
    Markdown -> HTML           markdown-it; headings get anchors, links between documents become links between pages
    page.html, style.css       what every page looks like; no script, nothing from elsewhere

Pictures and other files that documents link to are copied. A link that leads nowhere, or to a heading that does not
exist, ends the build with a sentence.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from docs_pages import ROOT, Page, pages, sections

LOOKS = Path(__file__).parent / "docs_site"
_LEXERS = {"sh": "bash", "console": "console", "python": "pycon"}
_NO_COLOURS = frozenset({"", "text"})


class BrokenLink(Exception):
    """A link that leads nowhere."""


@dataclass(slots=True)
class Site:
    """What is known while a site is built.

    Args:
        pages: all pages by their source.
        anchors: of each page, by its source.
        files: that are linked to and copied: source and place in the site.
    """

    pages: dict[Path, Page]
    anchors: dict[Path, set[str]] = field(default_factory=dict)
    files: dict[Path, str] = field(default_factory=dict)


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it.

    >>> slug("## How to add …".lstrip("# "))
    'how-to-add-'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def markdown() -> MarkdownIt:
    """The parser: CommonMark and tables; HTML in a document is text."""
    return MarkdownIt("commonmark", {"html": False, "highlight": _coloured}).enable("table")


def _coloured(code: str, language: str, _attributes: str) -> str:
    """Code with its colours as classes; empty for a language without, which is then shown as it is."""
    if language in _NO_COLOURS:
        return ""
    try:
        lexer = get_lexer_by_name(_LEXERS.get(language, language))
    except ClassNotFound:
        return ""
    text: str = highlight(code, lexer, HtmlFormatter(nowrap=True))
    return text


def _name_headings(tokens: Sequence[Token]) -> set[str]:
    """Give every heading its anchor; the anchors."""
    taken: dict[str, int] = {}
    names: set[str] = set()
    for opening, inline in pairwise(tokens):
        if opening.type != "heading_open":
            continue
        plain = "".join(child.content for child in inline.children or ())
        name = slug(plain)
        taken[name] = taken.get(name, -1) + 1
        name = f"{name}-{taken[name]}" if taken[name] else name
        opening.attrSet("id", name)
        names.add(name)
    return names


def _walk(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _walk(token.children or ())


def _place(site: Site, page: Page, target: str) -> str:
    """Where a link of a page leads within the site."""
    address = urlsplit(target)
    if address.scheme or address.netloc:
        return target
    name = Path(os.path.normpath(page.source.parent / address.path)) if address.path else page.source
    other = site.pages.get(name)
    if other is None:
        if ".." in name.parts or not (ROOT / name).is_file():
            raise BrokenLink(f"{page.source}: {target} leads to no file of the repository")
        site.files[name] = str(name).removeprefix("docs/")
        return _relative(page.place, site.files[name])
    if address.fragment and address.fragment not in site.anchors[name]:
        raise BrokenLink(f"{page.source}: {target} names no heading of {name}")
    return _relative(page.place, other.place) + (f"#{address.fragment}" if address.fragment else "")


def _relative(here: str, there: str) -> str:
    return os.path.relpath(there, Path(here).parent)


def _linked(site: Site, page: Page, tokens: Sequence[Token]) -> None:
    """Turn the links of a page into those of the site."""
    for token in _walk(tokens):
        for attribute in ("href", "src"):
            target = token.attrGet(attribute)
            if target is not None:
                token.attrSet(attribute, _place(site, page, str(target)))


def build(target: Path, found: Iterable[Page]) -> list[Path]:
    """Build a site of pages into a folder, in place of what was there; the files written.

    Args:
        target: the folder.
        found: the pages.

    Raises:
        BrokenLink: if a link leads nowhere.
    """
    site = Site({page.source: page for page in found})
    parser = markdown()
    parsed = {source: parser.parse(page.text) for source, page in site.pages.items()}
    site.anchors = {source: _name_headings(tokens) for source, tokens in parsed.items()}
    template = _template()
    shutil.rmtree(target, ignore_errors=True)
    for source, page in site.pages.items():
        _linked(site, page, parsed[source])
        body = Markup(parser.renderer.render(parsed[source], parser.options, {}))
        menu = [
            (title, [(each.title, _relative(page.place, each.place), each is page) for each in listed])
            for title, listed in sections(site.pages)
        ]
        style = _relative(page.place, "style.css")
        _write(target / page.place, template.render(page=page, body=body, menu=menu, style=style))
    for source, place in site.files.items():
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / source, target / place)
    shutil.copyfile(LOOKS / "style.css", target / "style.css")
    return sorted(path for path in target.rglob("*") if path.is_file())


def _template() -> Template:
    loader = FileSystemLoader(LOOKS)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template("page.html")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main() -> None:
    """Build the site into the folder that is named, or into `site`."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "site")
    try:
        written = build(target, pages())
    except BrokenLink as error:
        sys.exit(f"build_docs: {error}")
    sys.stdout.write(f"{len(written)} files; open {target / 'index.html'}\n")


if __name__ == "__main__":
    main()
