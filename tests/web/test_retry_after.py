"""Retry-After and the dates of the web: every form is read, nothing raises, absurd waits are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.web.dates import believable, http_date, w3c_date
from recrawl.web.fetch.retry import retry_after_s

NOW = 784_111_777.0  # 6 November 1994, 08:49:37 UTC


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("", None),
        ("0", 0.0),
        ("120", 120.0),
        (" 120 ", 120.0),
        ("1.5", 1.5),
        ("-5", 0.0),
        ("86400", 86400.0),
        ("86401", 86400.0),
        ("99999999999", 86400.0),
        ("9" * 5000, 86400.0),
        ("-" + "9" * 5000, 0.0),
        ("٣٠", None),
        ("soon", None),
        ("1e5", None),
        ("nan", None),
        ("inf", None),
        ("12 0", None),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60.0),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60.0),
        ("Sun Nov  6 08:50:37 1994", 60.0),
        ("Sun, 06 Nov 1994 08:48:37 GMT", 0.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86400.0),
        ("Sun, 99 Nov 1994 08:50:37 GMT", None),
        ("Sun, 06 Foo 1994 08:50:37 GMT", None),
        ("Sun, 06 Nov 1994 25:50:37 GMT", None),
        ("Sun, 06 Nov 1994 08:50:37 CEST", None),
        ("Sun, " + "0" * 10_000, None),
        ("120, 120", 120.0),
        ("60,120", 120.0),
        ("120, soon", 120.0),
        ("-5, 90000", 86400.0),
        ("30, Sun, 06 Nov 1994 08:50:37 GMT", 60.0),
        ("Sunday, 06-Nov-94 08:50:37 GMT, 30", 60.0),
        ("Sun, 06 Nov 1994 08:50:37 GMT, Sun, 06 Nov 1994 08:51:37 GMT", 120.0),
        (", ,", None),
        ("," * 100_000, None),
    ],
)
def test_every_form_is_read_and_garbage_is_none(value: str | None, expected: float | None) -> None:
    assert retry_after_s(value, NOW) == expected


@given(st.text(max_size=50), st.floats(0, 4e9))
def test_no_text_raises_and_every_wait_is_within_bounds(value: str, now: float) -> None:
    wait_s = retry_after_s(value, now)
    assert wait_s is None or 0.0 <= wait_s <= 86400.0


@pytest.mark.parametrize(
    ("text", "now", "expected"),
    [
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777.0, 784_111_777.0),
        ("Friday, 06-Nov-26 08:49:37 GMT", 1_700_000_000.0, 1_793_954_977.0),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 1_700_000_000.0, 784_111_777.0),
        ("Sun, 6 Nov 1994 08:49:37 UTC", 0.0, 784_111_777.0),
        ("Sat, 31 Dec 2016 23:59:60 GMT", 0.0, 1_483_228_799.0),
        ("Sun, 29 Feb 2023 00:00:00 GMT", 0.0, None),
        ("06 Nov 1994", 0.0, None),
    ],
)
def test_http_dates_are_read_in_three_forms(text: str, now: float, expected: float | None) -> None:
    assert http_date(text, now) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970", 0.0),
        ("1970-02", 31 * 86400.0),
        ("1970-01-02", 86400.0),
        ("1970-01-01T01:00Z", 3600.0),
        ("1970-01-01T01:00:00Z", 3600.0),
        ("1970-01-01T01:00:00.123456789Z", 3600.0),
        ("1970-01-01T01:00:00+01:00", 0.0),
        ("1970-01-01T00:00:00-0130", 5400.0),
        ("1970-01-01 01:00:00", 3600.0),
        (" 1970-01-02\n", 86400.0),
        ("1970-13-01", None),
        ("1970-01-01T24:00:00Z", None),
        ("0000-01-01", None),
        ("70-01-01", None),
        ("1970/01/01", None),
        ("yesterday", None),
        ("", None),
        ("1" * 10_000, None),
    ],
)
def test_w3c_dates_are_read_and_others_are_none(text: str, expected: float | None) -> None:
    assert w3c_date(text) == expected


def test_only_times_between_the_first_web_page_and_tomorrow_are_believed() -> None:
    now = 1_700_000_000.0
    assert believable(now, now) == now
    assert believable(now + 86_000.0, now) == now + 86_000.0
    assert believable(now + 90_000.0, now) is None
    assert believable(0.0, now) is None
    assert believable(None, now) is None
