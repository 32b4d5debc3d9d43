"""The honest name of the crawler: what it is called, in which version, and how to reach who runs it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from recrawl.errors import InvalidInput
from recrawl.version import __version__
from recrawl.web.refused import Refused
from recrawl.web.url.address import read_address

PRODUCT = "recrawl"
_PRODUCT = re.compile(r"[A-Za-z_-]{1,40}")
_VERSION = re.compile(r"[0-9A-Za-z.+_-]{1,40}")
_MAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+")


@dataclass(frozen=True, slots=True)
class UserAgent:
    """What the crawler calls itself.

    Args:
        header: the User-Agent line sent with every request.
        token: the product token that robots.txt groups are matched with (RFC 9309, 2.2.1).
    """

    header: str
    token: str


def user_agent(contact: str, *, product: str = PRODUCT, version: str = __version__) -> UserAgent:
    """The user agent with a way to reach its operator: a page about the crawler, or a mail address.

    Raises:
        InvalidInput: without a contact, or for a name that robots.txt could not address.

    >>> user_agent("https://example.org/bot", version="1.2").header
    'recrawl/1.2 (+https://example.org/bot)'
    >>> user_agent("crawl@example.org", version="1.2").header
    'recrawl/1.2 (+mailto:crawl@example.org)'
    """
    if not _PRODUCT.fullmatch(product):
        raise InvalidInput(f"is {product!r}, but must be letters, hyphens and underscores, at most 40", field="product")
    if not _VERSION.fullmatch(version):
        raise InvalidInput(f"is {version!r}, but must be letters, digits and dots, at most 40", field="version")
    return UserAgent(f"{product}/{version} (+{_contact(contact)})", product.lower())


def _contact(contact: str) -> str:
    plain = contact.strip().removeprefix("mailto:")
    if _MAIL.fullmatch(plain):
        return f"mailto:{plain}"
    address = read_address(plain)
    if isinstance(address, Refused) or any(sign in address.url for sign in "()"):
        raise InvalidInput(
            f"is {contact!r}: give a page about your crawler or a mail address, so that site owners can reach you",
            field="contact",
        )
    return address.url
