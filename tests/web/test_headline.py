"""The headline counts wherever it stands, and a shell without text is compared by what it says in its head."""

from __future__ import annotations

import pytest

from recrawl.web.change.digests import layer_text
from recrawl.web.content.page import read_page
from recrawl.web.content.rules import ContentRules

ARTICLE = "<p>The fair opens at nine and closes at noon, and all are welcome to it.</p>"


def said(html: str, rules: ContentRules | None = None) -> list[str]:
    page = read_page(html.encode(), "text/html", rules or ContentRules())
    return layer_text("text", html.encode(), page).decode().split("\n")


@pytest.mark.parametrize(
    "html",
    [
        f"<section><header><h1>April</h1></header>{ARTICLE}</section>",
        f"<body><header><h1>April</h1></header><main>{ARTICLE}</main>",
        f"<body><nav><h1>April</h1></nav>{ARTICLE}",
        f"<body><header><h2>April</h2></header><main>{ARTICLE}</main>",
        f"<title>April</title>{ARTICLE}",
        f"<main><h1>April</h1>{ARTICLE}</main>",
    ],
)
def test_a_headline_belongs_to_the_text_once(html: str) -> None:
    assert said(html).count("April") == 1
    assert said(html) != said(html.replace("April", "June"))


def test_the_title_counts_only_where_there_is_no_headline() -> None:
    assert said(f"<title>Shop</title><h1>April</h1>{ARTICLE}")[0] == "April"
    assert "Shop" not in said(f"<title>Shop</title><header><h1>April</h1></header>{ARTICLE}")


@pytest.mark.parametrize("heading", ["<h1 hidden>April</h1>", "<h1 style='display:none'>April</h1>"])
def test_a_hidden_headline_does_not_count(heading: str) -> None:
    assert "April" not in said(f"<header>{heading}</header>{ARTICLE}")


def test_selectors_say_what_counts() -> None:
    html = f"<header><h1 class=top>April</h1></header>{ARTICLE}"
    assert "April" not in said(html, ContentRules(keep=("p",)))
    assert "April" not in said(html, ContentRules(drop=(".top",)))


def test_a_shell_is_compared_by_title_canonical_address_and_refresh_before_bytes() -> None:
    head = "<title>App</title><link rel=canonical href=/app><meta http-equiv=refresh content='5; url=/next'>"
    shell = head + "<script>{}</script>"
    assert said(shell.format(1)) == said(shell.format(2)) == ["App", "/app", "url=/next"]
    assert said("<script>1</script>") != said("<script>2</script>")
