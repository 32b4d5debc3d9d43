"""ETag and Last-Modified, true and lying, and the 304 that follows from them."""

from __future__ import annotations

from typing import NamedTuple

from recrawl.lab.livingweb.answer import Request, http_date
from recrawl.lab.livingweb.behaviour import HostProfile
from recrawl.lab.livingweb.chance import mix
from recrawl.lab.livingweb.laws import GRID


class Shown(NamedTuple):
    """What validators are made from.

    Args:
        page: its number.
        version: real changes so far.
        design: redesigns of the host so far.
        born: Unix seconds.
        modified: when its bytes last changed, noise aside.
        noisy: whether no two answers need be the same.
    """

    page: int
    version: int
    design: int
    born: float
    modified: float
    noisy: bool


class Validators(NamedTuple):
    """The values sent; None for one that the host does not send."""

    etag: bytes | None
    modified: bytes | None

    def lines(self) -> bytes:
        """Header lines."""
        etag = b"" if self.etag is None else b"ETag: %b\r\n" % self.etag
        return etag if self.modified is None else b"%bLast-Modified: %b\r\n" % (etag, self.modified)


def validators(profile: HostProfile, shown: Shown, now: float) -> Validators:
    """What a host says of a page now."""
    return Validators(_etag(profile, shown, now), _modified(profile, shown, now))


def is_not_modified(request: Request, sent: Validators) -> bool:
    """Whether the answer is 304; If-None-Match goes before If-Modified-Since."""
    if request.if_none_match is not None and sent.etag is not None:
        wanted = [tag.strip().removeprefix(b"W/") for tag in request.if_none_match.split(b",")]
        return sent.etag.removeprefix(b"W/") in wanted
    return sent.modified is not None and request.if_modified_since == sent.modified


def _etag(profile: HostProfile, shown: Shown, now: float) -> bytes | None:
    if profile.etag == "none":
        return None
    if profile.etag == "frozen":
        return b'"%x"' % shown.page
    if profile.etag == "restless":
        return b'"%016x"' % mix(shown.page, int(now * GRID))
    return b'%b"%x-%x-%x"' % (b"W/" if shown.noisy else b"", shown.page, shown.version, shown.design)


def _modified(profile: HostProfile, shown: Shown, now: float) -> bytes | None:
    if profile.modified == "none":
        return None
    if profile.modified == "frozen":
        return http_date(int(shown.born))
    if profile.modified == "always-now":
        return http_date(int(now))
    # A second change may follow within the second of the first: until it is over, the truth is to say nothing.
    return None if int(shown.modified) == int(now) else http_date(int(shown.modified))
