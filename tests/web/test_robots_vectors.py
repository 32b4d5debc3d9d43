"""robots.txt against published examples: RFC 9309 section 5, and the tables of paths and precedence of Google."""

from __future__ import annotations

import pytest

from recrawl.web.robots.entry import RobotsAnswer, robots_answer
from recrawl.web.url.address import Address, read_address


def _page(target: str) -> Address:
    read = read_address("https://example.com" + target)
    assert isinstance(read, Address), read
    return read


def _read(text: str, token: str = "recrawl") -> RobotsAnswer:
    return robots_answer(200, text.encode(), token, _page("/robots.txt"))


# A pattern, the paths it matches, the paths it does not.
PATTERNS = [
    ("/", ["/", "/any/path"], []),
    ("/*", ["/", "/any/path"], []),
    ("/$", ["/"], ["/any/path", "/?a"]),
    (
        "/fish",
        ["/fish", "/fish.html", "/fish/salmon.html", "/fishheads", "/fishheads/yummy.html", "/fish.php?id=anything"],
        ["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"],
    ),
    (
        "/fish*",
        ["/fish", "/fish.html", "/fish/salmon.html", "/fishheads", "/fishheads/yummy.html", "/fish.php?id=anything"],
        ["/Fish.asp", "/catfish", "/?id=fish"],
    ),
    (
        "/fish/",
        ["/fish/", "/fish/?id=anything", "/fish/salmon.htm"],
        ["/fish", "/fish.html", "/animals/fish/", "/Fish/Salmon.asp"],
    ),
    (
        "/*.php",
        [
            "/index.php",
            "/filename.php",
            "/folder/filename.php",
            "/folder/filename.php?parameters",
            "/folder/any.php.file.html",
            "/filename.php/",
        ],
        ["/", "/windows.PHP"],
    ),
    (
        "/*.php$",
        ["/filename.php", "/folder/filename.php"],
        ["/filename.php?parameters", "/filename.php/", "/filename.php5", "/windows.PHP"],
    ),
    ("/fish*.php", ["/fish.php", "/fishheads/catfish.php?parameters"], ["/Fish.PHP"]),
    ("/foo/bar?baz=quz", ["/foo/bar?baz=quz"], ["/foo/bar", "/foo/bar?baz=q"]),
    ("/foo/bar/%E3%83%84", ["/foo/bar/%E3%83%84", "/foo/bar/ツ"], ["/foo/bar/"]),
    ("/foo/bar/ツ", ["/foo/bar/%E3%83%84"], ["/foo/bar/%E3%83%85"]),
    ("/foo/bar/%62%61%7A", ["/foo/bar/baz", "/foo/bar/%62%61%7A"], ["/foo/bar/ba"]),
    ("/path/*/end$", ["/path/a/end", "/path/a/b/end"], ["/path/end", "/path/a/end/"]),
    ("/x.html#part", ["/x.html", "/x.htmlx"], ["/x"]),  # what follows the mark is a remark
]


@pytest.mark.parametrize(("pattern", "matched", "others"), PATTERNS)
def test_a_pattern_matches_what_the_table_says(pattern: str, matched: list[str], others: list[str]) -> None:
    shut = _read(f"User-agent: *\nDisallow: {pattern}")
    opened = _read(f"User-agent: *\nDisallow: /\nAllow: {pattern}")
    assert [path for path in matched + others if not shut.allows(_page(path))] == matched
    assert [path for path in matched + others if opened.allows(_page(path))] == matched


PRECEDENCE = [
    ("Allow: /p\nDisallow: /", "/page", True),
    ("Allow: /folder\nDisallow: /folder", "/folder/page", True),
    ("Allow: /page\nDisallow: /*.htm", "/page.htm", False),
    ("Allow: /page\nDisallow: /*.ph", "/page.php5", True),
    ("Allow: /$\nDisallow: /", "/", True),
    ("Allow: /$\nDisallow: /", "/page.htm", False),
    ("Disallow: /x\nAllow: /x/page.html", "/x/page.html", True),
    ("Disallow: /x/page.html\nAllow: /x/", "/x/page.html", False),
    ("Disallow: /x/page.html\nAllow: /x/", "/x/", True),
    ("Disallow:\nAllow:", "/x", True),
    ("Disallow: /\nAllow: /", "/x", True),
    ("Disallow: /x\nAllow: /", "/x/page.html", False),
    ("Disallow: /x/page.html\nAllow: /x/page.html", "/x/page.html", True),
    ("Allow: /page\nDisallow: /*.html", "/page.html", False),
    ("Allow: /x/page.\nDisallow: /*.html", "/x/page.html", True),
    ("Allow: /x/page.\nDisallow: /*.html", "/x/y.html", False),
    ("Disallow: /x/\nAllow: /x/allowed", "/x/allowed-slash/page", True),
]


@pytest.mark.parametrize(("rules", "path", "allowed"), PRECEDENCE)
def test_the_longest_pattern_wins_and_allow_wins_a_tie(rules: str, path: str, allowed: bool) -> None:
    assert _read("User-agent: *\n" + rules).allows(_page(path)) is allowed
    assert _read("User-agent: *\n" + "\n".join(reversed(rules.split("\n")))).allows(_page(path)) is allowed


RFC_SIMPLE = """User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""

RFC_CASES = [
    ("foobot", "/example/page.html", True),
    ("foobot", "/example/allowed.gif", True),
    ("foobot", "/example/other.html", False),
    ("foobot", "/publications/", False),
    ("barbot", "/example/page.html", False),
    ("barbot", "/example/other.html", True),
    ("bazbot", "/example/page.html", False),
    ("bazbot", "/a.gif", True),
    ("quxbot", "/example/page.html", True),  # a group without rules: everything
    ("quxbot", "/a.gif", True),
    ("recrawl", "/example/page.html", False),
    ("recrawl", "/publications/x", True),
    ("recrawl", "/else", True),
]


@pytest.mark.parametrize(("token", "path", "allowed"), RFC_CASES)
def test_the_example_of_the_rfc(token: str, path: str, allowed: bool) -> None:
    assert _read(RFC_SIMPLE, token).allows(_page(path)) is allowed


def test_the_longest_match_of_the_rfc() -> None:
    answer = _read("User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif", "foobot")
    assert answer.allows(_page("/example/page/allowed.gif"))
    assert not answer.allows(_page("/example/page/disallowed.gif"))


LINES = [
    ("user-agent: recrawl\ndisallow: /\n", False),
    ("foo: recrawl\nbar: /\n", True),
    ("user-agent recrawl\ndisallow /\n", False),
    ("USER-AGENT: RECRAWL\nDISALLOW: /\n", False),
    ("user-agent: recrawl\nallow: /x\n\nuser-agent: other\ndisallow: /\n", True),
    ("user-agent: a\n\n\nuser-agent: recrawl\ndisallow: /\n", False),
    ("user-agent: recrawl\ndisallow: /x\ncrawl-delay: 1\nuser-agent: other\nallow: /x\n", False),
    ("user-agent: recrawl\nsitemap: https://example.com/s\nuser-agent: other\ndisallow: /x\n", False),
    ("\ufeffuser-agent: recrawl\ndisallow: /\n", False),
    ("user-agent: recrawl\r\rdisallow: /\r", False),
    ("user-agent: recrawl\r\ndisallow: /\r\nallow: /x\r\n", True),
    ("user-agent: recrawl # me\ndisallow: / # all\n", False),
    ("user-agent: Recrawl/2.1\ndisallow: /\n", False),
    ("user-agent: recrawl*\ndisallow: /\n", False),
    ("user-agent: *\ndisallow: /x\nuser-agent: recrawl\ndisallow: /y\n", True),
]


@pytest.mark.parametrize(("text", "allowed"), LINES)
def test_lines_are_read_as_crawlers_read_them(text: str, allowed: bool) -> None:
    assert _read(text).allows(_page("/x")) is allowed
