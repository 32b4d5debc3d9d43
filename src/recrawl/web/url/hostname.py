"""Rules for host names, beyond what the URL standard asks.

A name may be legal and still lead where no crawl should go, or look like another name. `check_host_name` gives
the broken rule with its reason, or nothing: `empty-label`, `long-host`, `host-character`, `bad-idn`,
`mixed-script`, `local-name`, `address-in-name`. The gate in `egress.py` decides on the address that is dialled;
these rules come before it and name the fault.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address

import ada_url

from recrawl.errors import InvalidInput
from recrawl.web.url.networks import forbidden_network

ANY_NAME = "*"
"""Among local names: every name is one. No setting can say so."""
_LABEL = re.compile(r"[a-z0-9_-]+")
_LOCAL_SUFFIXES = ("localhost", "local", "internal", "intranet", "lan", "home.arpa", "onion", "invalid")
# Public services that answer with whatever address is written in the name.
_ADDRESS_SERVICES = ("nip.io", "sslip.io", "xip.io", "localtest.me", "lvh.me", "vcap.me", "lacolhost.com", "traefik.me",
                     "local.gd", "backname.io")  # fmt: skip
_FOUR_NUMBERS = re.compile(r"(?:^|\.)(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})\.")
# Scripts that are written together in one word (Unicode TS 39, "highly restrictive").
_WRITTEN_TOGETHER = (
    frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"LATIN", "CJK", "BOPOMOFO"}),
    frozenset({"LATIN", "CJK", "HANGUL"}),
)
_SCRIPT_OF_NONE = frozenset({"DIGIT", "HYPHEN-MINUS", "LOW", "MIDDLE", "COMBINING", "ZERO", "MODIFIER", "IDEOGRAPHIC",
                             "KATAKANA-HIRAGANA", "ARABIC-INDIC", "EXTENDED"})  # fmt: skip

Broken = tuple[str, str]


@lru_cache(maxsize=16384)
def check_host_name(host: str, local_names: frozenset[str] = frozenset()) -> Broken | None:
    """The rule that a parsed, lower-case host name breaks, with the reason. O(length).

    >>> check_host_name("example.com")
    >>> check_host_name("localhost")[0], check_host_name("127.0.0.1.nip.io")[0]
    ('local-name', 'address-in-name')
    """
    labels = host.split(".")
    return (
        _check_labels(host, labels)
        or ("xn--" in host and _check_scripts(labels))
        or _check_reach(host, labels, local_names)
        or None
    )


def matches_name(host: str, pattern: str) -> bool:
    """Whether a host is the one named, or any name under it for `*.name`.

    >>> matches_name("a.living.test", "*.living.test"), matches_name("living.test", "*.living.test")
    (True, False)
    """
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and len(host) > len(pattern) - 1
    return host == pattern


def plain_name(written: str, field: str) -> str:
    """A host name or `*.name` of the settings as addresses spell it: lower case, ASCII, no final dot, no brackets.

    Raises:
        InvalidInput: for what can be no host name, and so would silently match nothing; `field` is named.

    >>> plain_name("*.Bücher.example.", "opted_out"), plain_name("[2001:DB8::1]", "opted_out")
    ('*.xn--bcher-kva.example', '2001:db8::1')
    """
    text = written.strip()
    star = "*." if text.startswith("*.") else ""
    bare = text.removeprefix("*.").removeprefix("[").removesuffix("]")
    try:
        return star + str(ip_address(bare))
    except ValueError:
        pass
    try:
        host = ada_url.idna_to_ascii(bare).decode("ascii").lower().removesuffix(".")
    except ValueError:  # what is no text
        host = ""
    if _check_labels(host, host.split(".")) is not None:
        raise InvalidInput(f"holds {written!r}; write a host name, such as example.com or *.example.com", field=field)
    return star + host


def _check_labels(host: str, labels: list[str]) -> Broken | None:
    if not all(labels):
        return "empty-label", "two dots follow each other in the host, or it begins with one"
    if len(host) > 253 or any(len(label) > 63 for label in labels):
        return "long-host", "a host has at most 253 characters, and 63 between two dots"
    if not all(_LABEL.fullmatch(label) for label in labels):
        return "host-character", "a host is made of letters, digits, hyphens and dots"
    return None


def _check_scripts(labels: list[str]) -> Broken | None:
    for label in labels:
        if not label.startswith("xn--"):
            continue
        plain = ada_url.idna_to_unicode(label)
        if plain.startswith("xn--"):
            return "bad-idn", f"{label} does not decode to a name"
        scripts = {_script(character) for character in plain} - {""}
        if len(scripts) > 1 and not any(scripts <= together for together in _WRITTEN_TOGETHER):
            mix = " and ".join(sorted(scripts)).lower()
            return "mixed-script", f"{label} mixes the scripts {mix}, as names made to deceive do"
    return None


def _script(character: str) -> str:
    """The script of a character as the first word of its Unicode name; "" for what all scripts share."""
    word = unicodedata.name(character, "UNKNOWN").split(" ", 1)[0]
    return "" if word in _SCRIPT_OF_NONE else word


def _check_reach(host: str, labels: list[str], local_names: Iterable[str]) -> Broken | None:
    if ANY_NAME in local_names or any(matches_name(host, pattern) for pattern in local_names):
        return None
    if len(labels) == 1 or any(_is_under(host, suffix) for suffix in _LOCAL_SUFFIXES):
        return "local-name", "the name has no meaning outside a local network; list it under `local-names` to allow it"
    if any(_is_under(host, service) for service in _ADDRESS_SERVICES):
        return "address-in-name", "the name resolves to any address written into it"
    numbers = _FOUR_NUMBERS.search(host)
    if numbers and _is_private_spelling(numbers[1]):
        return "address-in-name", f"the name holds the address {numbers[1]}, which is not public"
    return None


def _is_private_spelling(dotted: str) -> bool:
    try:
        return forbidden_network(ip_address(dotted)) is not None
    except ValueError:
        return False


def _is_under(host: str, suffix: str) -> bool:
    return host == suffix or host.endswith("." + suffix)
