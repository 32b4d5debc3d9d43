r"""Signed webhooks as in the Standard Webhooks specification: HMAC-SHA256 over id, time and body. Pure.

    sent = headers(secret, message_id, timestamp, body)                  what the webhook sink signs
    ping = read_signed_ping(headers, body, [secret], now, memory)        what others tell us of changed addresses

The headers are `webhook-id`, `webhook-timestamp` and `webhook-signature`; the body of a ping is `{"urls": [...]}` and
may name a `kind` of signal. What is refused is a `Refused` with the rule: `headers`, `time`, `signature`, `replay`,
`too-long`, `body`. An id counts as seen only once its signature is right, so strangers cannot fill the memory. A repeat
that the sender makes since it heard no answer is refused as `replay`: answer it as if it had been taken, for it has.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from recrawl.errors import InvalidInput
from recrawl.web.refused import Refused, safe_text
from recrawl.web.url.address import DEFAULT_RULES, AddressRules
from recrawl.web.url.canonical import UrlList, read_urls

_PREFIX = "whsec_"
_SHORTEST, _LONGEST = 24, 64


def read_secret(text: str, field: str) -> bytes:
    """The bytes of a secret written as `whsec_` and base64."""
    try:
        secret = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if not text.startswith(_PREFIX) or not _SHORTEST <= len(secret) <= _LONGEST:
        problem = (
            f"must be whsec_ and {_SHORTEST} to {_LONGEST} bytes in base64, as `recrawl doctor --new-secret` makes one"
        )
        raise InvalidInput(problem, field=field)
    return secret


def new_secret(random: bytes) -> str:
    """A secret from 32 random bytes.

    >>> read_secret(new_secret(bytes(32)), "secret") == bytes(32)
    True
    """
    return _PREFIX + base64.b64encode(random).decode()


def signature(secret: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """The value of the header `webhook-signature`."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()


def headers(secret: bytes | None, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers of a delivery; without a secret it is not signed."""
    known = {"webhook-id": message_id, "webhook-timestamp": str(timestamp)}
    if secret is not None:
        known["webhook-signature"] = signature(secret, message_id, timestamp, body)
    return known


TOLERANCE_S = 300.0
MOST_BYTES = 10_000_000
MOST_URLS = 10_000
DEFAULT_KIND = "webhook"
_MOST_QUOTES = 4 * MOST_URLS
_LONGEST_ID = 256
_LONGEST_SIGNATURES = 2048
_MOST_SIGNATURES = 16
_TIMESTAMP = re.compile(r"[0-9]{1,12}", re.ASCII)
KIND_PATTERN = r"^[a-z][a-z0-9_-]{0,39}$"
"""A name of a kind of signals, for the API, commands, hooks and settings alike."""
_KIND = re.compile(KIND_PATTERN)


def is_kind(name: str) -> bool:
    """Tell whether a text is a name of a kind of signals.

    >>> is_kind("cms_publish-2"), is_kind("CMS")
    (True, False)
    """
    return _KIND.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class SignedPing:
    """A ping from someone who knows the secret.

    Args:
        id: of the message, as its sender gave it.
        kind: of signal; a name that `is_kind`, which may be unknown.
        urls: the addresses that are said to have changed.
    """

    id: str
    kind: str
    urls: UrlList


@dataclass(slots=True)
class ReplayMemory:
    """Ids of messages that came already, for as long as their time would still be taken.

    Args:
        most: ids that are kept; beyond them the oldest is forgotten first.
    """

    most: int = 100_000
    _until: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.most < 1:
            raise InvalidInput(f"is {self.most}, but must be at least 1", field="most")

    @property
    def kept(self) -> int:
        """Ids that are kept now."""
        return len(self._until)

    def is_new(self, message_id: str, now: float) -> bool:
        """Remember an id; False if it is known. O(1), amortised."""
        until = self._until.get(message_id)
        if until is not None and until > now:
            return False
        self._until.pop(message_id, None)
        self._until[message_id] = now + 2 * TOLERANCE_S
        while self._until:  # the oldest first, since all are kept for the same time
            first = next(iter(self._until))
            if len(self._until) <= self.most and self._until[first] > now:
                break
            del self._until[first]
        return True


class _Body(msgspec.Struct):
    urls: list[str]
    kind: str = DEFAULT_KIND


_decoder = msgspec.json.Decoder(_Body)


def read_signed_ping(
    headers: Mapping[str, str],
    body: bytes,
    secrets: Sequence[bytes],
    now: float,
    memory: ReplayMemory,
    rules: AddressRules = DEFAULT_RULES,
) -> SignedPing | Refused:
    """A ping whose signature, time and id are good. O(bytes), raises nothing for any message.

    Args:
        headers: of the message, by names in lower case.
        body: as it came, byte for byte.
        secrets: any of which may have signed, so that one can be replaced by the next.
        now: Unix seconds.
        memory: of ids; the id of a ping that is good is put there.
        rules: which addresses may be named.
    """
    if len(body) > MOST_BYTES:
        return _refuse("too-long", body[:20], f"the body is longer than {MOST_BYTES} bytes")
    message_id = verified_id(headers, body, secrets, now)
    if isinstance(message_id, Refused):
        return message_id
    posted = _posted(body)
    if isinstance(posted, Refused):
        return posted
    if not memory.is_new(message_id, now):
        return _refuse("replay", message_id, "a message with this id has been taken already")
    return SignedPing(message_id, posted.kind, read_urls(posted.urls, None, rules))


def verified_id(headers: Mapping[str, str], body: bytes, secrets: Sequence[bytes], now: float) -> str | Refused:
    """The id of a message that was signed with one of the secrets at about this time, else the rule it breaks."""
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    given = headers.get("webhook-signature", "")
    if not 0 < len(message_id) <= _LONGEST_ID or not message_id.isascii() or "." in message_id:
        return _refuse("headers", message_id, f"webhook-id must be 1 to {_LONGEST_ID} ASCII characters without a dot")
    if not _TIMESTAMP.fullmatch(timestamp):
        return _refuse("headers", timestamp, "webhook-timestamp must be Unix seconds as a whole number")
    if not 0 < len(given) <= _LONGEST_SIGNATURES or not given.isascii():
        return _refuse("headers", given, "webhook-signature must be v1, a comma and base64")
    if abs(now - int(timestamp)) > TOLERANCE_S:
        return _refuse("time", timestamp, f"its time is more than {TOLERANCE_S:g} s from ours; check both clocks")
    claimed = given.split(" ")[:_MOST_SIGNATURES]
    # All are compared, whichever fits, so that the time taken tells nothing.
    fits = [hmac.compare_digest(each, signature(secret, message_id, int(timestamp), body))
            for secret in secrets for each in claimed]  # fmt: skip
    return message_id if any(fits) else _refuse("signature", given, "no signature fits the message and our secret")


def _posted(body: bytes) -> _Body | Refused:
    if body.count(b'"') > _MOST_QUOTES:
        return _refuse("too-long", body[:20], f"urls holds more than {MOST_URLS} addresses")
    try:
        posted = _decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        return _refuse("body", str(error), 'the body must be JSON such as {"urls": ["https://a.example/"]}')
    if len(posted.urls) > MOST_URLS:
        return _refuse("too-long", body[:20], f"urls holds more than {MOST_URLS} addresses")
    if not is_kind(posted.kind):
        return _refuse("body", posted.kind, "kind must be a short name in lower case, such as webhook")
    return posted


def _refuse(rule: str, subject: object, reason: str) -> Refused:
    return Refused(rule, safe_text(subject), reason)
