"""Crawler traps: however many addresses a site makes up, no more are taken than the caps allow, and it is told."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice, permutations, product

import pytest

from recrawl.errors import InvalidInput
from recrawl.web.feeds.sitemap import Sitemap, SitemapEntry, SitemapWalk
from recrawl.web.url.address import Address, AddressRules, read_address
from recrawl.web.url.canonical import canonical_form
from recrawl.web.url.traps import DEFAULT_CAPS, Discovered, DiscoveryCaps, shape_of

CAPS = DiscoveryCaps(by_host=300, by_source=100, by_shape=50, by_variants=3)
TRIED = 2_000


def _address(target: str, host: str = "trap.example") -> Address:
    address = read_address(f"http://{host}{target}", AddressRules(max_length=4096))
    assert isinstance(address, Address), address
    return address


def _calendar() -> Iterator[str]:
    return (f"/calendar/{2000 + day // 365}/{day % 12 + 1}/{day % 28 + 1}" for day in count())


def _sessions() -> Iterator[str]:
    return (f"/shop;jsessionid={number:032x}/cart" for number in count())


def _session_parameters() -> Iterator[str]:
    return (f"/cart?token={number:x}&page=1" for number in count())


def _climbing() -> Iterator[str]:
    return ("/a" * depth for depth in count(1))


def _cases() -> Iterator[str]:
    return ("/" + "".join(letters) for letters in product(*zip("abcdefghijkl", "ABCDEFGHIJKL", strict=True)))


def _parameters() -> Iterator[str]:
    return ("/list?" + "&".join(f"{name}=1" for name in order) for order in permutations("abcdefg"))


def _words() -> Iterator[str]:
    """No two alike: nothing but the caps of host and source can end it."""
    letters = "bcdfghjklmnp"
    return ("/" + "".join(word) for word in product(letters, repeat=4))


TRAPS = {
    "calendar": (_calendar, 50),
    "session in the path": (_sessions, 50),
    "session in the query": (_session_parameters, 50),
    "path that climbs into itself": (_climbing, 2),
    "upper and lower case": (_cases, 3),
    "orders of parameters": (_parameters, 3),
    "words": (_words, 100),
}


@pytest.mark.parametrize("name", TRAPS)
def test_a_trap_yields_no_more_addresses_than_its_cap_and_is_reported(name: str) -> None:
    make, most = TRAPS[name]
    found = Discovered(CAPS)
    taken = [
        target for target in islice(make(), TRIED) if found.offer(_address(target), "http://trap.example/") is None
    ]
    assert len(taken) == most
    assert sum(found.refused.values()) == TRIED - most


def test_a_host_is_full_whatever_names_its_addresses() -> None:
    found = Discovered(CAPS)
    taken = sum(
        found.offer(_address(target), f"page {turn}") is None for turn, target in enumerate(islice(_words(), TRIED))
    )
    assert taken == CAPS.by_host
    assert found.refused == {"host-cap": TRIED - CAPS.by_host}
    assert found.offer(_address("/x", "other.example"), "page") is None


def test_refusals_cost_no_memory() -> None:
    found = Discovered(CAPS)
    for target in islice(_words(), TRIED):
        found.offer(_address(target), "http://trap.example/")
    assert len(found._taken) <= 3 * CAPS.by_source + 1


def test_ordinary_sites_are_taken_whole() -> None:
    found = Discovered()
    targets = [f"/news/{number}/story-about-{number % 7}" for number in range(5_000)] + [
        f"/topic/{n}?page=2" for n in range(99)
    ]
    assert [target for target in targets if found.offer(_address(target), target[:6]) is not None] == []
    assert found.refused == {}


def test_the_canonical_form_takes_the_session_out_before_the_caps_see_it() -> None:
    forms = {canonical_form(_address(f"/a?b=1&PHPSESSID={number:032x}")).url for number in range(50)}
    assert len(forms) == 1


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("/a/1/b", "/a/22/b", True),
        ("/a/x1y/b", "/a/2/b", True),
        ("/a?x=1&y=2", "/A?y=3&x=4", True),
        ("/a/b", "/a/c", False),
        ("/a?x=1", "/a?z=1", False),
        ("/a", "/a?", True),
    ],
)
def test_a_shape_leaves_out_numbers_and_values(one: str, other: str, same: bool) -> None:
    assert (shape_of(_address(one)) == shape_of(_address(other))) is same


def test_an_index_of_sitemaps_without_end_ends_at_the_cap_of_files_and_addresses() -> None:
    walk = SitemapWalk(["http://trap.example/0"], max_files=50, max_entries=10_000)
    numbers = count(1)
    files = 0
    while (url := walk.next_file()) is not None:
        files += 1
        walk.found(
            url,
            Sitemap(
                "index",
                tuple(SitemapEntry(f"http://trap.example/{next(numbers)}", None, foreign=False) for _ in range(9)),
            ),
        )
    assert files == 50
    assert walk.problems == ["there are more than 50 sitemap files; the rest is not read"]


def test_a_cap_below_one_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="by_shape is 0"):
        DiscoveryCaps(by_shape=0)
    assert DEFAULT_CAPS.by_variants < DEFAULT_CAPS.by_shape < DEFAULT_CAPS.by_source < DEFAULT_CAPS.by_host
