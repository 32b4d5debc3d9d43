"""Signatures of webhooks as in the Standard Webhooks specification: HMAC-SHA256 over id, time and body. Pure.

The webhook sink signs with it, `push/signed_ping.py` compares what others signed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from recrawl.errors import InvalidInput

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
