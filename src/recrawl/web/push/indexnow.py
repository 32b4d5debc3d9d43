r"""IndexNow: a site tells which of its addresses have changed, by POST as JSON or by GET for one.

    ping = read_ping(body)             # POST: {"host", "key", "keyLocation", "urlList"}
    ping = read_ping_query(query)      # GET: ?url=...&key=...&keyLocation=...

Either gives a `Ping` or a `PingProblem`, which names the field at fault and the status that the protocol answers.
Only addresses of the host count, and if the key lies in a folder only those below it; others are left out and
counted. Whether the key is the site's own can be seen by fetching `Ping.key_address`, for which `holds_key` reads the
answer. Nothing here raises on foreign bytes.

    >>> ping = read_ping(b'{"host": "a.example", "key": "0123abcd", "urlList": ["https://a.example/x", "http://b.example/"]}')
    >>> ping.urls.urls, ping.urls.refused
    (('https://a.example/x',), {'other-site': 1})
    >>> read_ping(b'{"host": "a.example", "key": "short", "urlList": []}').field
    'key'
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qs

import msgspec

from recrawl.web.refused import Refused, safe_text
from recrawl.web.url.address import DEFAULT_RULES, Address, AddressRules, read_address
from recrawl.web.url.canonical import UrlList, read_urls

MOST_BYTES = 10_000_000
MOST_URLS = 10_000
LONGEST_QUERY = 16_384
# Of a list of short texts without end, which would need far more memory than its bytes.
_MOST_QUOTES = 4 * MOST_URLS
_KEY = re.compile(r"[A-Za-z0-9-]{8,128}")
_AT_FIELD = re.compile(r"`\$\.(\w+)|field `(\w+)`")
_MOST_PARAMETERS = 20


@dataclass(frozen=True, slots=True)
class PingProblem:
    """Why a ping is refused.

    Args:
        field: the part at fault; `body` for all of it.
        reason: what is wrong, safe to print.
        status: what the protocol answers: 400 for what cannot be read, 413 for too much, 422 for addresses and
            keys that cannot belong together.
    """

    field: str
    reason: str
    status: int = 400

    @property
    def sentence(self) -> str:
        """One sentence for people."""
        return f"{self.field} {self.reason}"


@dataclass(frozen=True, slots=True)
class Ping:
    """A ping that can be used.

    Args:
        host: the site, as addresses spell it, with a port where the ping gives one.
        key: as given; nobody has compared it yet.
        key_address: where the site must hold the key.
        urls: the addresses that are said to have changed.
    """

    host: str
    key: str
    key_address: Address
    urls: UrlList


class _Body(msgspec.Struct, rename="camel"):
    """A POST as the protocol has it."""

    host: str
    key: str
    url_list: list[str]
    key_location: str | None = None


_decoder = msgspec.json.Decoder(_Body)


def read_ping(body: bytes, rules: AddressRules = DEFAULT_RULES) -> Ping | PingProblem:
    """The ping in the body of a POST. O(bytes), at most 10 MB and 10,000 addresses."""
    if len(body) > MOST_BYTES:
        return PingProblem("body", f"is longer than {MOST_BYTES} bytes", 413)
    if body.count(b'"') > _MOST_QUOTES:
        return _too_many()
    try:
        posted = _decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        return _unreadable(str(error))
    if len(posted.url_list) > MOST_URLS:
        return _too_many()
    return _ping(posted, rules)


def read_ping_query(query: str, rules: AddressRules = DEFAULT_RULES) -> Ping | PingProblem:
    """The ping in the query of a GET, without its question mark: one address. O(length)."""
    if len(query) > LONGEST_QUERY:
        return PingProblem("query", f"is longer than {LONGEST_QUERY} characters", 413)
    try:
        given = parse_qs(query, max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        return PingProblem("query", f"has more than {_MOST_PARAMETERS} parameters")
    for name in ("url", "key"):
        if len(given.get(name, ())) != 1:
            return PingProblem(name, "must be given once")
    url = given["url"][0]
    address = read_address(url.strip(), rules)
    if isinstance(address, Refused):
        return PingProblem("url", f"cannot be used: {address.reason}")
    location = given.get("keyLocation", [None])[0]
    return _ping(_Body(address.authority, given["key"][0], [url], location), rules)


def holds_key(body: bytes, key: str) -> bool:
    r"""Whether a file is the key of a site: the key and nothing else, but for white space around it.

    >>> holds_key(b"0123abcd\n", "0123abcd"), holds_key(b"<html>0123abcd", "0123abcd")
    (True, False)
    """
    return len(body) <= 4096 and body.removeprefix(b"\xef\xbb\xbf").strip() == key.encode("utf-8", "replace")


def _ping(posted: _Body, rules: AddressRules) -> Ping | PingProblem:
    site = read_address(f"https://{posted.host.strip()}/", rules)
    if isinstance(site, Refused) or site.target != "/":
        why = "" if isinstance(site, Address) else f": {site.reason}"
        return PingProblem("host", f"is {safe_text(posted.host)}, which is no host name{why}", 422)
    if not _KEY.fullmatch(posted.key):
        return PingProblem("key", "must be 8 to 128 letters, digits and hyphens", 422)
    key_address = _key_address(posted, site, rules)
    if isinstance(key_address, PingProblem):
        return key_address
    folder = key_address.target.partition("?")[0].rpartition("/")[0] + "/"
    urls = read_urls(posted.url_list, _starts(posted.host, site, folder), rules)
    if not urls.urls:
        return PingProblem("urlList", _why_empty(urls), 422)
    return Ping(site.authority, posted.key, key_address, urls)


def _key_address(posted: _Body, site: Address, rules: AddressRules) -> Address | PingProblem:
    if not posted.key_location:
        return site.with_target(f"/{posted.key}.txt")
    address = read_address(posted.key_location.strip(), rules)
    if isinstance(address, Refused):
        return PingProblem("keyLocation", f"cannot be used: {address.reason}", 422)
    if address.host != site.host:
        return PingProblem("keyLocation", f"must be of the host {site.host}", 422)
    return address


def _starts(host: str, site: Address, folder: str) -> tuple[str, ...]:
    """What addresses of the site begin with; without a port in the ping, any port is of the host.

    For a key in a folder only the port of the ping, or the usual one, is known to be meant.
    """
    starts = tuple(f"{scheme}://{site.authority}{folder}" for scheme in ("http", "https"))
    has_port = site.authority != site.host or host.strip().endswith(":443")
    if folder != "/" or has_port or site.is_ip:
        return starts
    return (*starts, f"http://{site.host}:", f"https://{site.host}:")


def _why_empty(urls: UrlList) -> str:
    if not urls.refused:
        return "is empty"
    counts = ", ".join(f"{count} by the rule {rule}" for rule, count in sorted(urls.refused.items()))
    return f"holds no address of the host and below the folder of the key; refused: {counts}"


def _too_many() -> PingProblem:
    return PingProblem("urlList", f"holds more than {MOST_URLS} addresses", 413)


def _unreadable(error: str) -> PingProblem:
    at_field = _AT_FIELD.search(error)
    name = "body" if at_field is None else at_field[1] or at_field[2]
    return PingProblem(name, f"cannot be read: {safe_text(error)}")
