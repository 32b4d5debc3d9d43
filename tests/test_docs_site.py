"""The documentation site: every document is in it, every link leads somewhere, and it needs nothing from elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from build_docs import BrokenLink, build, slug
from docs_pages import API_PAGE, CLI_PAGE, CONTENTS, Page, pages
from recrawl.cli.main import COMMANDS

ROOT = Path(__file__).parents[1]
GENERATED = {str(CLI_PAGE), str(API_PAGE)}
NAMED = [name for names in CONTENTS.values() for name in names]


@dataclass(slots=True)
class Seen(HTMLParser):
    """What a page links to, loads, and names."""

    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    tags: set[str] = field(default_factory=set)
    here: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.names |= {given["id"]} if "id" in given else set()
        if tag == "a":
            self.links.append(given["href"])
            self.here += [given["href"]] if "aria-current" in given else []
        elif "href" in given or "src" in given:
            self.loaded.append(given.get("href") or given["src"])


@pytest.fixture(scope="module")
def made() -> list[Page]:
    return list(pages())


@pytest.fixture(scope="module")
def site(made: list[Page], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build(folder, made)
    return folder


@pytest.fixture(scope="module")
def seen(site: Path) -> dict[Path, Seen]:
    found = {}
    for path in sorted(site.rglob("*.html")):
        found[path] = Seen()
        found[path].feed(path.read_text(encoding="utf-8"))
    return found


def test_every_document_is_in_the_navigation_once() -> None:
    documents = {str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]}
    assert documents <= set(NAMED)
    assert len(NAMED) == len(set(NAMED))
    for name in set(NAMED) - GENERATED:
        assert (ROOT / name).is_file(), name


def test_every_link_and_anchor_leads_somewhere(site: Path, seen: dict[Path, Seen]) -> None:
    checked = 0
    for path, page in seen.items():
        for link in [*page.links, *page.loaded]:
            address = urlsplit(link)
            if address.scheme:
                assert address.scheme == "https", f"{path.name}: {link}"
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            assert target.is_file(), f"{path.name}: {link}"
            assert site in target.parents
            if address.fragment:
                assert address.fragment in seen[target].names, f"{path.name}: {link}"
            checked += 1
    assert checked > 1000


def test_every_page_has_the_navigation_and_its_place_in_it(
    made: list[Page], site: Path, seen: dict[Path, Seen]
) -> None:
    for page in made:
        found = seen[site / page.place]
        assert len(found.here) == page.listed, page.place
        assert set(found.tags) >= {"nav", "main", "h1"}
        assert len(found.links) > len(NAMED)


def test_pages_load_nothing_but_their_own_style_and_pictures(seen: dict[Path, Seen]) -> None:
    for path, page in seen.items():
        assert not page.tags & {"script", "iframe", "style", "form"}, path.name
        assert all(not urlsplit(link).scheme for link in page.loaded), path.name
        assert "default-src 'none'" in path.read_text(encoding="utf-8")


def test_markup_in_a_document_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    hostile = Page(Path("docs/hostile.md"), "# A <b>title</b>\n\n<script>alert(1)</script>\n", listed=False)
    build(tmp_path / "out", [hostile])
    text = (tmp_path / "out" / "hostile.html").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize(
    ("link", "told"),
    [
        ("nowhere.md", "leads to no file"),
        ("../../outside.md", "leads to no file"),
        ("other.md#no-such-heading", "names no heading"),
        ("#nor-this", "names no heading"),
    ],
)
def test_a_link_that_leads_nowhere_is_named(tmp_path: Path, link: str, told: str) -> None:
    other = Page(Path("docs/other.md"), "# Other\n", listed=False)
    lost = Page(Path("docs/lost.md"), f"# Lost\n\n[away]({link})\n", listed=False)
    with pytest.raises(BrokenLink, match=rf"docs/lost\.md: .*{told}"):
        build(tmp_path / "out", [other, lost])


def test_headings_of_one_name_have_anchors_of_their_own(tmp_path: Path) -> None:
    document = "# One\n\n## Same `thing`\n\n## Same `thing`\n\n[b](#same-thing-1)\n"
    twice = Page(Path("docs/twice.md"), document, listed=False)
    build(tmp_path / "out", [twice])
    text = (tmp_path / "out" / "twice.html").read_text(encoding="utf-8")
    assert re.findall(r'<h2 id="([^"]+)"', text) == ["same-thing", "same-thing-1"]
    assert slug("Same thing") == "same-thing"


def test_every_command_has_a_section_with_its_help(made: list[Page]) -> None:
    (page,) = [page for page in made if page.source == CLI_PAGE]
    sections = dict(re.findall(r"^## recrawl ([\w-]+)\n(.*?)(?=^## |\Z)", page.text, re.MULTILINE | re.DOTALL))
    assert sorted(sections) == sorted(COMMANDS)
    assert "Usage: recrawl plan [OPTIONS] PAGES" in sections["plan"]
    assert "--target-freshness" in sections["plan"]
    assert "--follow" in sections["changes"]


def test_every_route_is_in_the_reference_of_the_api(made: list[Page]) -> None:
    (page,) = [page for page in made if page.source == API_PAGE]
    told = set(re.findall(r"^### (?:GET|POST|PATCH|DELETE) .+$", page.text, re.MULTILINE))
    document = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    routes = re.findall(
        r"^\| `(GET|POST|PATCH|DELETE) (/[^`]*)` \| (?:read|signal|fetch|write|admin) \|", document, re.MULTILINE
    )
    assert len(routes) > 20
    assert {f"### {method} /api/v1{path}" for method, path in routes} <= told
