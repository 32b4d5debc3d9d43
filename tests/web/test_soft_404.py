"""Missing pages with status 200 are known by the host's answer for a bogus path; other pages never are."""

from __future__ import annotations

import pytest

from recrawl.errors import InvalidInput
from recrawl.lab.livingweb.articles import SOFT_MISSING
from recrawl.web.content.page import Page, read_page
from recrawl.web.content.soft_404 import bogus_path, looks_missing, missing_page, tells_apart

TOKEN = "k3v9x2m4q8w1"
PROSE = [f"sentence number {number} tells something of its own about word{number}" for number in range(40)]


def page(html: str) -> Page:
    return read_page(html.encode(), "text/html; charset=utf-8")


def sorry(path: str, extra: str = "") -> str:
    return (
        f"<title>Oops</title><h1>Oops</h1><p>We are sorry, {path} could not be found on this server.</p>"
        f"<p>Error 404-{len(path)}</p>{extra}"
    )


def proposals(first: int) -> str:
    """A long page of a shop for missing articles, with five proposals that differ by visit."""
    rows = "".join(f"<li>offer{number}" for number in range(first, first + 5))
    return f"<title>Shop</title><h1>This article is gone</h1><p>{' '.join(PROSE)}</p><ul>{rows}</ul>"


@pytest.mark.parametrize(
    ("bogus", "asked", "missing"),
    [
        (SOFT_MISSING.decode(), SOFT_MISSING.decode(), True),
        (sorry(f"/guides/{TOKEN}"), sorry("/guides/lamp-7"), True),
        (sorry(f"https://shop.example/guides/{TOKEN}"), sorry("https://shop.example/guides/lamp-7"), True),
        (proposals(0), proposals(3), True),
        (sorry(f"/guides/{TOKEN}"), sorry("/guides/lamp-7", "<p>Lamp of brass, price $12</p>"), False),
        (sorry(f"/guides/{TOKEN}"), "<title>Lamp</title><h1>Lamp</h1><p>Lamp of brass, price $12</p>", False),
        (proposals(0), f"<title>Lamp</title><p>{' '.join(PROSE)}</p>", False),
        (proposals(0), f"<title>Shop</title><p>{' '.join(PROSE[20:])}</p><p>{' '.join(PROSE[:10])}</p>", False),
        ("<title>Shop</title><div id=root></div>", "<title>Shop</title><div id=root></div>", False),
    ],
    ids=["same", "echoes path", "echoes address", "proposals", "more text", "article", "title", "cut", "empty shell"],
)
def test_a_page_is_missing_if_it_says_what_a_bogus_path_gets(bogus: str, asked: str, missing: bool) -> None:
    fingerprint = missing_page(page(bogus), f"/guides/{TOKEN}")
    assert looks_missing(page(asked), "/guides/lamp-7", fingerprint) == missing


def test_a_host_that_answers_everything_with_its_home_page_cannot_be_judged() -> None:
    shell = page("<title>Shop</title><p>Welcome to the shop of lamps</p>")
    assert not tells_apart(missing_page(shell, f"/{TOKEN}"), shell)
    assert tells_apart(missing_page(page(sorry(f"/{TOKEN}")), f"/{TOKEN}"), shell)
    assert not tells_apart(missing_page(page("<title>Shop</title>"), f"/{TOKEN}"), shell)


@pytest.mark.parametrize(
    ("path", "bogus"),
    [("/", "/" + TOKEN), ("/a/b", f"/a/{TOKEN}"), ("/a/b.php?x=/1", f"/a/{TOKEN}.php"), ("/a/", f"/a/{TOKEN}")],
)
def test_bogus_paths_stand_beside_the_path(path: str, bogus: str) -> None:
    assert bogus_path(path, TOKEN) == bogus


@pytest.mark.parametrize("token", ["", "short", "k3v9x2m4q8/w", "k3v9x2m4q8wé"])
def test_a_token_that_a_page_could_have_is_refused(token: str) -> None:
    with pytest.raises(InvalidInput, match="token must be at least 12"):
        bogus_path("/", token)
