"""Conditional requests: validators go back as they came, and are believed only as far as audits bear them out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.web.conditional import (
    NO_VALIDATORS,
    FullAnswer,
    Validators,
    ValidatorTrust,
    fresh_for_s,
    is_not_modified,
    learn_full,
    learn_not_modified,
    request_headers,
    should_audit,
    should_send,
    validators_of,
)

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("etag", "last_modified"),
    [
        (b'"abc"', b"Sun, 06 Nov 1994 08:49:37 GMT"),
        (b'W/"abc"', b"Sunday, 06-Nov-94 08:49:37 GMT"),
        (b"abc", b"Sun Nov  6 08:49:37 1994"),
        (b'w/"abc"', b"yesterday"),
        (b'"abc', b"Sun, 06 Nov 1994 09:49:37 +0100"),
        (b'"a"b"', b"0"),
        (b'""', b"-1"),
        (b'"a b;c,d"', b"Fri, 31 Dec 9999 23:59:59 GMT"),
        ('"é"'.encode(), b"  odd  spaces"),
        (b"*", b"Thu, 01 Jan 1970 00:00:00 GMT"),
    ],
)
def test_validators_are_sent_back_byte_for_byte(etag: bytes, last_modified: bytes) -> None:
    validators = validators_of([(b"ETag", etag), (b"x-other", b"1"), (b"last-modified", last_modified)])
    sent = dict(request_headers(validators))
    assert sent["If-None-Match"].encode() == etag
    assert sent["If-Modified-Since"].encode() == last_modified


@pytest.mark.parametrize(
    "etag", [b"", b'"a\r\nEvil: 1"', b'"a\x00"', b'"\xff\xfe"', b'"' + b"a" * 5000 + b'"'], ids=repr
)
def test_what_cannot_be_sent_back_unaltered_counts_as_absent(etag: bytes) -> None:
    assert validators_of([(b"ETag", etag)]) == NO_VALIDATORS


def test_two_different_validators_of_one_kind_count_as_none() -> None:
    assert validators_of([(b"ETag", b'"a"'), (b"etag", b'"b"')]).etag is None
    assert validators_of([(b"ETag", b'"a"'), (b"etag", b'"a"')]).etag == b'"a"'


def test_a_200_without_validators_leaves_none_to_send() -> None:
    assert validators_of([(b"content-type", b"text/html")]) == NO_VALIDATORS
    assert request_headers(NO_VALIDATORS) == ()
    assert not should_send(ValidatorTrust(), NO_VALIDATORS)


@pytest.mark.parametrize(
    ("sent", "answered", "believed"),
    [
        (Validators(b'"a"'), NO_VALIDATORS, True),
        (Validators(b'"a"'), Validators(b'"a"'), True),
        (Validators(b'"a"'), Validators(b'W/"a"'), True),
        (Validators(b'"a"'), Validators(b'"b"'), False),
        (Validators(None, b"x"), Validators(b'"b"'), True),
        (NO_VALIDATORS, NO_VALIDATORS, False),
        (NO_VALIDATORS, Validators(b'"a"'), False),
    ],
)
def test_a_304_is_believed_only_for_a_validator_that_was_sent(
    sent: Validators, answered: Validators, believed: bool
) -> None:
    assert is_not_modified(sent, answered) is believed


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ([], 0.0),
        ([(b"Cache-Control", b"max-age=600")], 600.0),
        ([(b"cache-control", b'public, MAX-AGE="600"')], 600.0),
        ([(b"Cache-Control", b"max-age=600"), (b"Age", b"100")], 500.0),
        ([(b"Cache-Control", b"max-age=600"), (b"Age", b"1000")], 0.0),
        ([(b"Cache-Control", b"max-age=600"), (b"Age", b"-1")], 600.0),
        ([(b"Cache-Control", b"no-cache, max-age=600")], 0.0),
        ([(b"Cache-Control", b"no-store")], 0.0),
        ([(b"Cache-Control", b"no-store"), (b"cache-control", b"max-age=600")], 0.0),
        ([(b"Cache-Control", b"max-age=600"), (b"Cache-Control", b"no-cache")], 0.0),
        ([(b"Cache-Control", b"public"), (b"Cache-Control", b"max-age=600")], 600.0),
        ([(b"Cache-Control", b"max-age=600"), (b"Cache-Control", b"max-age=900")], 600.0),
        ([(b"Cache-Control", b"max-age=600"), (b"Age", b"100, 20")], 500.0),
        ([(b"Cache-Control", b"max-age=600"), (b"Age", b"100"), (b"Age", b"20")], 500.0),
        ([(b"Expires", b"0"), (b"Expires", b"Fri, 31 Dec 9999 23:59:59 GMT")], 0.0),
        ([(b"Cache-Control", b"s-maxage=600")], 0.0),
        ([(b"Cache-Control", b"max-age=" + b"9" * 5000)], 86_400.0),
        ([(b"Cache-Control", b"max-age=-1")], 0.0),
        ([(b"Cache-Control", b"max-age=abc")], 0.0),
        ([(b"Expires", b"Tue, 14 Nov 2023 22:23:20 GMT")], 600.0),
        ([(b"Expires", b"Tue, 14 Nov 2023 22:23:20 GMT"), (b"Date", b"Tue, 14 Nov 2023 22:21:20 GMT")], 120.0),
        ([(b"Expires", b"Fri, 31 Dec 9999 23:59:59 GMT")], 86_400.0),
        ([(b"Expires", b"0")], 0.0),
        ([(b"Expires", b"-1")], 0.0),
        ([(b"Cache-Control", b"max-age=60"), (b"Expires", b"Fri, 31 Dec 9999 23:59:59 GMT")], 60.0),
    ],
)
def test_the_lifetime_is_a_lower_bound_that_is_capped(headers: list[tuple[bytes, bytes]], seconds: float) -> None:
    assert fresh_for_s(headers, NOW) == seconds


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_no_header_raises(control: bytes, expires: bytes) -> None:
    assert 0.0 <= fresh_for_s([(b"cache-control", control), (b"expires", expires)], NOW) <= 86_400.0


SOME = Validators(b'"a"')
DATED = Validators(None, b"Sun, 06 Nov 1994 08:49:37 GMT")
AUDIT_SAME = FullAnswer(was_conditional=False, text_changed=False, same_validators=SOME)
AUDIT_NEW = FullAnswer(was_conditional=False, text_changed=True)
AUDIT_NEW_SAME_SECOND = FullAnswer(was_conditional=False, text_changed=True, same_validators=DATED)
ANSWER_NEW = FullAnswer(was_conditional=True, text_changed=True)
ANSWER_IDLE = FullAnswer(was_conditional=True, text_changed=False)


def _until_audit(trust: ValidatorTrust) -> tuple[ValidatorTrust, int]:
    count = 0
    while should_send(trust, SOME):
        trust, count = learn_not_modified(trust), count + 1
        assert count < 1000
    return trust, count


def test_believed_304s_are_audited_less_and_less_often_but_always_again() -> None:
    trust, gaps = ValidatorTrust(), []
    for _ in range(7):
        trust, count = _until_audit(trust)
        assert should_audit(trust)
        gaps.append(count)
        trust = learn_full(trust, AUDIT_SAME)
    assert gaps == [4, 8, 16, 32, 64, 64, 64]
    assert trust.trust == "honest"


def test_text_that_changed_under_the_same_etag_is_a_lie_at_once() -> None:
    trust, _ = _until_audit(ValidatorTrust())
    lied = learn_full(trust, FullAnswer(was_conditional=False, text_changed=True, same_validators=SOME))
    assert lied.trust == "blind"
    assert not should_send(lied, SOME)


def test_two_changes_within_the_second_of_one_last_modified_do_not_make_a_page_blind() -> None:
    """Last-Modified counts whole seconds: an honest server gives both changes the same value."""
    trust, _ = _until_audit(ValidatorTrust())
    once = learn_full(trust, AUDIT_NEW_SAME_SECOND)
    assert once.trust != "blind"
    assert should_send(once, DATED)
    later = learn_full(once, ANSWER_NEW)  # the next change shows without an audit: the server is honest
    again, _ = _until_audit(later)
    assert learn_full(again, AUDIT_NEW_SAME_SECOND).trust != "blind"


@pytest.mark.parametrize("was_conditional", [False, True])
def test_a_last_modified_that_stays_while_the_text_changes_is_a_lie_the_second_time(was_conditional: bool) -> None:
    answer = FullAnswer(was_conditional, text_changed=True, same_validators=DATED)
    trust, _ = _until_audit(ValidatorTrust())
    trust = learn_full(trust, answer)
    assert trust.trust != "blind"
    assert learn_full(trust, answer).trust == "blind"


def test_a_last_modified_of_the_second_of_the_answer_is_not_sent_back() -> None:
    """The page may change once more within that second; a 304 to the same value would hide that."""
    modified = (b"Last-Modified", b"Sun, 06 Nov 1994 08:49:37 GMT")
    same, later = (b"Date", b"Sun, 06 Nov 1994 08:49:37 GMT"), (b"Date", b"Sun, 06 Nov 1994 08:49:38 GMT")
    assert validators_of([modified, same]) == NO_VALIDATORS
    assert validators_of([modified, later]).last_modified == modified[1]
    assert validators_of([modified, (b"Date", b"today")]).last_modified == modified[1]
    assert validators_of([modified, same, (b"ETag", b'"a"')]) == Validators(b'"a"', modified[1])


def test_a_server_that_always_answers_304_is_found_out_by_the_third_audit() -> None:
    trust = ValidatorTrust()
    for audit in range(3):
        trust, _ = _until_audit(trust)
        trust = learn_full(trust, AUDIT_NEW)
        assert (trust.trust == "blind") is (audit == 2)


def test_an_honest_server_is_not_distrusted_for_changes_that_an_audit_happens_to_find() -> None:
    trust = ValidatorTrust()
    for _ in range(20):
        trust, _ = _until_audit(trust)
        trust = learn_full(trust, AUDIT_NEW)
        trust = learn_full(learn_not_modified(trust), ANSWER_NEW)
    assert trust.trust == "honest"


def test_a_liar_is_asked_without_condition_and_tried_again_after_fifty_fetches() -> None:
    trust = ValidatorTrust(trust="blind")
    for _ in range(49):
        trust = learn_full(trust, AUDIT_SAME)
        assert not should_send(trust, SOME)
    assert learn_full(trust, AUDIT_SAME) == ValidatorTrust()


def test_validators_that_change_without_the_text_are_noisy_but_still_sent() -> None:
    trust = ValidatorTrust()
    for turn in range(3):
        trust = learn_full(trust, ANSWER_IDLE)
        assert (trust.trust == "noisy") is (turn == 2)
    assert should_send(trust, SOME)
    assert learn_not_modified(trust).trust == "unknown"


def test_a_full_fetch_outside_an_audit_teaches_nothing() -> None:
    trust = learn_not_modified(ValidatorTrust())
    assert learn_full(trust, AUDIT_NEW) == trust
