"""The user agent: honest, reachable, and a name that robots.txt can address."""

from __future__ import annotations

import pytest

from recrawl.errors import InvalidInput
from recrawl.web.fetch.settings import user_agent


def test_it_names_product_version_and_contact() -> None:
    agent = user_agent("https://example.org/bot")
    assert agent.header.startswith("recrawl/")
    assert agent.header.endswith(" (+https://example.org/bot)")
    assert agent.token == "recrawl"


def test_a_mail_address_is_a_contact() -> None:
    assert user_agent("mailto:crawl@example.org", version="1").header == "recrawl/1 (+mailto:crawl@example.org)"


def test_a_product_of_ones_own_is_matched_without_case() -> None:
    assert user_agent("a@b.example", product="My-Bot", version="2").token == "my-bot"


@pytest.mark.parametrize(
    "contact", ["", "me", "http://", "a@b", "x\r\nEvil: 1", "http://a.example/\r\nEvil: 1", "http://a.example/)("]
)
def test_without_a_way_to_reach_the_operator_it_is_refused(contact: str) -> None:
    with pytest.raises(InvalidInput, match="site owners can reach you"):
        user_agent(contact)


@pytest.mark.parametrize("product", ["", "two words", "bot2", "bot\r\n", "b" * 41])
def test_a_name_that_robots_txt_could_not_address_is_refused(product: str) -> None:
    with pytest.raises(InvalidInput, match="product is"):
        user_agent("a@b.example", product=product)


def test_a_version_cannot_smuggle_a_header() -> None:
    with pytest.raises(InvalidInput, match="version is"):
        user_agent("a@b.example", version="1\r\nX: y")
