"""Names of parameters are matched as fnmatch matches them, though most without it."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.web.url.address import Address, read_address
from recrawl.web.url.canonical import SESSION_PARAMETERS, TRACKING_PARAMETERS, CanonicalRules, canonical_form

PIECES = ["a", "B", "utm_", "*", "?", "[ab]", "[", "]", "-", "[!a]", "x"]
patterns = st.lists(st.lists(st.sampled_from(PIECES), max_size=4).map("".join), max_size=3).map(tuple)


@settings(max_examples=500, deadline=None)
@given(st.text("abx-_[]", min_size=1, max_size=5), patterns)
def test_a_parameter_is_dropped_where_a_pattern_fits_its_name(name: str, drop: tuple[str, ...]) -> None:
    address = read_address(f"http://a.example/?{name}=1")
    assert isinstance(address, Address)
    expected = any(fnmatchcase(name, pattern.lower()) for pattern in drop)
    assert bool(canonical_form(address, CanonicalRules(drop=drop)).dropped) == expected


def test_the_usual_patterns_fit_what_they_say_and_no_more() -> None:
    for pattern in TRACKING_PARAMETERS + SESSION_PARAMETERS:
        stem = pattern.rstrip("*")
        for name in (stem, stem + "x", stem[:-1], "x" + stem):
            address = read_address(f"http://a.example/?{name}=1")
            assert isinstance(address, Address)
            expected = any(fnmatchcase(name, each) for each in TRACKING_PARAMETERS + SESSION_PARAMETERS)
            assert bool(canonical_form(address).dropped) == expected
