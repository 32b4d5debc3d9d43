"""Conditional requests: validators sent back byte for byte, trusted only as far as audits bear them out.

`validators_of` reads ETag and Last-Modified of a 200, `request_headers` sends them back as they came, however odd.
A 304 to a request that carried a validator is "unchanged"; one to a request without is a fault of the server. From
time to time a request goes out without validators (`should_audit`); `learn` compares what came back with what the
304s had claimed. Servers that answer 304 although the text changed are `blind` and asked without condition; servers
that answer 200 with the text unchanged are `noisy`: a new validator of theirs is no sign of a change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from recrawl.web.dates import http_date

Headers = Iterable[tuple[bytes, bytes]]
Trust = Literal["unknown", "honest", "noisy", "blind"]

_LONGEST_VALIDATOR_BYTES = 1024
_FIRST_AUDIT_AFTER = 4
_RAREST_AUDIT_AFTER = 64
_LIES_BY_AUDIT = 3
_WEIGHT_OF_SAME_SECOND = 2  # the second time reaches `_LIES_BY_AUDIT`
_NOISE_FOR_A_VERDICT = 3
_FULL_FETCHES_UNTIL_RETRIAL = 50
_MAX_FRESH_S = 86_400.0
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
_LIFETIME = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?([0-9]+)", re.IGNORECASE)
_NO_LIFETIME = re.compile(r"(?:^|[,\s])(?:no-cache|no-store)(?:$|[,\s=])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Validators:
    """The validators of the copy at hand, as the bytes the server sent."""

    etag: bytes | None = None
    last_modified: bytes | None = None

    def __bool__(self) -> bool:
        return self.etag is not None or self.last_modified is not None


NO_VALIDATORS = Validators()


def validators_of(headers: Headers) -> Validators:
    """The validators of a 200. What cannot be sent back unaltered, or came twice, counts as absent. O(headers).

    A Last-Modified equal to Date, without an ETag, counts as absent too: the page may change once more within that
    second under the same value (RFC 9110, 8.8.2.2). The next answer has a later Date, and its value is kept.
    """
    pairs = tuple(headers)
    etag, modified = _only(pairs, b"etag"), _only(pairs, b"last-modified")
    if etag is None and modified is not None and modified == _only(pairs, b"date"):
        return NO_VALIDATORS
    return Validators(etag, modified)


def request_headers(validators: Validators) -> tuple[tuple[str, str], ...]:
    """The headers of a conditional request; both where both are known.

    >>> request_headers(Validators(b'W/"a', b"yesterday"))
    (('If-None-Match', 'W/"a'), ('If-Modified-Since', 'yesterday'))
    """
    pairs = (("If-None-Match", validators.etag), ("If-Modified-Since", validators.last_modified))
    return tuple((name, value.decode("utf-8")) for name, value in pairs if value is not None)


def is_not_modified(sent: Validators, answered: Validators) -> bool:
    """Whether a 304 may be believed: a validator was sent, and the 304 does not name another one (RFC 9110, 15.4.5)."""
    if not sent:
        return False
    return answered.etag is None or sent.etag is None or _opaque(answered.etag) == _opaque(sent.etag)


def fresh_for_s(headers: Headers, now: float) -> float:
    """Seconds for which the server asks not to come back: max-age less Age, else Expires; at most a day.

    Of what came several times the first counts (RFC 9111, 4.2.1), but any `no-store` or `no-cache`.

    >>> fresh_for_s([(b"Cache-Control", b"public, max-age=600"), (b"Age", b"60")], now=0.0)
    540.0
    """
    found: dict[bytes, str] = {}
    controls: list[str] = []
    for raw_name, value in headers:
        name, text = raw_name.lower(), value.decode("latin-1")
        found.setdefault(name, text)
        if name == b"cache-control":
            controls.append(text)
    control = ", ".join(controls)
    if _NO_LIFETIME.search(control):
        return 0.0
    lifetime = _LIFETIME.search(control)
    if lifetime is not None:
        asked_s = _whole_seconds(lifetime[1]) - _whole_seconds(found.get(b"age", "0").partition(",")[0])
    else:
        expires_at = http_date(found.get(b"expires", ""), now)
        sent_at = http_date(found.get(b"date", ""), now)
        asked_s = 0.0 if expires_at is None else expires_at - (now if sent_at is None else sent_at)
    return min(max(asked_s, 0.0), _MAX_FRESH_S)


@dataclass(frozen=True, slots=True)
class ValidatorTrust:
    """What is known of a page's validators; a value that the store keeps with the page.

    Args:
        trust: the verdict so far.
        since_audit: 304s believed since the last full fetch that was not asked for by the server.
        audit_after: how many 304s are believed before the next audit.
        found_by_audit: changes that only audits found; one under the same Last-Modified counts twice.
        found_by_answer: changes that conditional requests found.
        idle_answers: conditional requests answered with 200 and the same text, in a row.
        full_fetches: fetches without condition since the verdict `blind`.
    """

    trust: Trust = "unknown"
    since_audit: int = 0
    audit_after: int = _FIRST_AUDIT_AFTER
    found_by_audit: int = 0
    found_by_answer: int = 0
    idle_answers: int = 0
    full_fetches: int = 0


def should_send(trust: ValidatorTrust, validators: Validators) -> bool:
    """Whether the next request carries the validators: they exist, are not known to lie, and no audit is due."""
    return bool(validators) and trust.trust != "blind" and not should_audit(trust)


def should_audit(trust: ValidatorTrust) -> bool:
    """Whether the 304s believed so far are due to be checked by a request without condition."""
    return trust.since_audit >= trust.audit_after


def learn_not_modified(trust: ValidatorTrust) -> ValidatorTrust:
    """After a believed 304."""
    verdict: Trust = "unknown" if trust.trust == "noisy" else trust.trust
    return replace(trust, trust=verdict, since_audit=trust.since_audit + 1, idle_answers=0)


@dataclass(frozen=True, slots=True)
class FullAnswer:
    """A 200 for a page of which a copy is at hand.

    Args:
        was_conditional: whether the request carried validators.
        text_changed: whether the text differs from the copy's.
        same_validators: the validators of the copy, if the answer has the same; none if it has others.
    """

    was_conditional: bool
    text_changed: bool
    same_validators: Validators = NO_VALIDATORS


def learn_full(trust: ValidatorTrust, answer: FullAnswer) -> ValidatorTrust:
    """After a 200.

    Text that changed under the same ETag makes the server `blind` immediately. Last-Modified counts whole seconds, so
    that two changes within one second share a value on an honest server: under Last-Modified alone the second such
    case makes it `blind`. So does the third change that only audits find: with an honest server most changes show
    without an audit. A conditional request that finds a change under new validators clears both counts.
    """
    if trust.trust == "blind":
        seen = trust.full_fetches + 1
        return ValidatorTrust() if seen >= _FULL_FETCHES_UNTIL_RETRIAL else replace(trust, full_fetches=seen)
    if answer.text_changed and answer.same_validators:
        if answer.same_validators.etag is not None:
            return ValidatorTrust(trust="blind")
        return _found_late(trust, _WEIGHT_OF_SAME_SECOND)
    return _after_conditional(trust, answer) if answer.was_conditional else _after_audit(trust, answer)


def _after_conditional(trust: ValidatorTrust, answer: FullAnswer) -> ValidatorTrust:
    if answer.text_changed:
        verdict: Trust = "honest" if trust.trust in ("unknown", "honest") else trust.trust
        return replace(
            trust,
            trust=verdict,
            since_audit=0,
            idle_answers=0,
            found_by_answer=trust.found_by_answer + 1,
            found_by_audit=0,
        )
    idle = trust.idle_answers + 1
    return replace(
        trust, trust="noisy" if idle >= _NOISE_FOR_A_VERDICT else trust.trust, since_audit=0, idle_answers=idle
    )


def _after_audit(trust: ValidatorTrust, answer: FullAnswer) -> ValidatorTrust:
    if not should_audit(trust):
        return trust
    if not answer.text_changed:
        later = min(2 * trust.audit_after, _RAREST_AUDIT_AFTER)
        return replace(trust, trust="honest", since_audit=0, audit_after=later)
    return _found_late(trust)


def _found_late(trust: ValidatorTrust, weight: int = 1) -> ValidatorTrust:
    """After a change that the validators did not show."""
    found = trust.found_by_audit + weight
    if found >= _LIES_BY_AUDIT:
        return ValidatorTrust(trust="blind")
    return replace(trust, since_audit=0, audit_after=_FIRST_AUDIT_AFTER, found_by_audit=found)


def _only(headers: Headers, wanted: bytes) -> bytes | None:
    values = {value for name, value in headers if name.lower() == wanted}
    value = values.pop() if len(values) == 1 else b""
    if not 0 < len(value) <= _LONGEST_VALIDATOR_BYTES or _CONTROL.search(value):
        return None
    try:
        value.decode("utf-8")  # the only form in which a header can be sent unaltered
    except UnicodeDecodeError:
        return None
    return value


def _opaque(etag: bytes) -> bytes:
    return etag.removeprefix(b"W/")


def _whole_seconds(digits: str) -> float:
    plain = digits.strip()
    if not (plain.isascii() and plain.isdigit()):
        return 0.0
    return float(plain) if len(plain) <= 15 else 1e15
