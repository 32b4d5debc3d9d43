r"""The address of a page: WHATWG parsing, and refusal of what two parsers could read in two ways.

`read_address` takes one absolute http or https URL, `join_address` a link found on a page. Both give an
`Address` or a `Refused` that names the rule; nothing here raises on foreign text. ada is the only parser: what it
writes (`Address.url`) is what is stored, compared and sent.

Rules, in the order in which they are tried: `too-long`, `whitespace`, `control-character`, `half-character`,
`backslash`, `encoded-nul`, `no-scheme`, `scheme`, `slashes`, `empty-host`, `userinfo`, `zone-id`, `percent-host`,
`invisible-character`, `port`, `malformed`, `disguised-address`, and those of `url/hostname.py`.

    >>> read_address("HTTPS://Example.COM:443/a/../b?x=1#top").url
    'https://example.com/b?x=1'
    >>> read_address("http://169.254.169.254:8888\\@example.com/").rule
    'backslash'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import ada_url

from recrawl.errors import InvalidInput
from recrawl.web.refused import Refused, safe_text
from recrawl.web.url.hostname import ANY_NAME, check_host_name, plain_name

DEFAULT_MAX_LENGTH = 2083
LARGEST_MAX_LENGTH = 4096
_DEFAULT_PORTS = {"http": 80, "https": 443}

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_ABSOLUTE = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*):(?P<slashes>/*)(?P<authority>[^/?#]*)")
_WRITTEN = re.compile(r"(?P<scheme>https?)://(?P<host>\[[^\]]*\]|[^/:]*)(?::(?P<port>[0-9]+))?(?P<target>/[^#]*)")
_PORT = re.compile(r"[0-9]{0,5}")
# What IDNA drops without a trace; the two joiners are left to the parser, which knows where they are legal.
_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e"
                        "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]")  # fmt: skip
_HTML_SPACE = "\t\n\f\r "
# What neither the parser nor the canonical form alters: these characters, and escapes in upper case of what must be
# escaped. A segment that begins with a dot is left to the parser.
_SAFE = r"A-Za-z0-9_~!$&()*+,;=@\-"
_KEPT_ESCAPE = r"%(?!00)(?:[018-9A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF])"
_SEGMENT = rf"(?!\.)(?:[{_SAFE}.]++|{_KEPT_ESCAPE})*+"
PLAIN_TARGET = re.compile(rf"((?:/{_SEGMENT})++)(\?(?:[{_SAFE}./?]++|{_KEPT_ESCAPE})*+)?((?:#[!-$&-\[\]-~]*)?)")
"""Path, query and fragment of most addresses: what the parser would write for them is known beforehand."""
_AFTER_SCHEME = len("https://")


@dataclass(frozen=True, slots=True)
class AddressRules:
    """What a user may widen.

    Args:
        max_length: characters of an address, at most 4096.
        local_names: host names without a public domain that are meant to be crawled, such as `wiki` or
            `*.corp.internal`; the gate still asks for a named network.
    """

    max_length: int = DEFAULT_MAX_LENGTH
    local_names: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not 1 <= self.max_length <= LARGEST_MAX_LENGTH:
            raise InvalidInput(f"is {self.max_length}, but must be 1 to {LARGEST_MAX_LENGTH}", field="max_length")


DEFAULT_RULES = AddressRules()
STORED_RULES = AddressRules(local_names=frozenset({ANY_NAME}))
"""To read addresses that were let in before, by rules that may have been others; a fetch asks the rules of today."""


@dataclass(frozen=True, slots=True)
class Address:
    """One http or https address without a fragment, user name or password.

    Args:
        url: the whole address, ASCII, as it is stored and sent.
        scheme: `http` or `https`.
        host: lower-case ASCII name without a final dot, or an IP address without brackets.
        port: the port, also where the address leaves it out.
        target: path and query, as it is sent.
        is_ip: whether the host is an IP address.
    """

    url: str
    scheme: str
    host: str
    port: int
    target: str
    is_ip: bool = False

    @property
    def authority(self) -> str:
        """Host and port as the Host header writes them: no default port, brackets around IPv6."""
        return self.origin[len(self.scheme) + len("://") :]

    @property
    def origin(self) -> str:
        """Scheme, host and port: credentials never cross from one origin to another."""
        return self.url[: len(self.url) - len(self.target)]

    def with_target(self, target: str) -> Address:
        """The same origin with another path and query, which the caller vouches for."""
        return Address(self.origin + target, self.scheme, self.host, self.port, target, self.is_ip)

    @staticmethod
    def of(scheme: str, host: str, port: int, target: str, is_ip: bool) -> Address:
        """Build an Address from parts that are already validated."""
        shown_host = f"[{host}]" if ":" in host else host
        authority = shown_host if port == _DEFAULT_PORTS[scheme] else f"{shown_host}:{port}"
        return Address(f"{scheme}://{authority}{target}", scheme, host, port, target, is_ip)


def read_address(text: str, rules: AddressRules = DEFAULT_RULES) -> Address | Refused:
    """One absolute address, or the rule that refuses it. O(length)."""
    cut = text.find("/", _AFTER_SCHEME)
    origin = plain_origin(text[:cut], rules) if cut > 0 and len(text) <= rules.max_length else None
    target = None if origin is None else PLAIN_TARGET.fullmatch(text, cut)
    if origin is None or target is None:
        return _read(text, rules)
    end = target.start(3)
    return Address(text[:end], origin.scheme, origin.host, origin.port, text[cut:end], origin.is_ip)


@lru_cache(maxsize=1024)
def plain_origin(origin: str, rules: AddressRules) -> Address | None:
    """The main page of an origin that is written as the parser writes it; None for other texts."""
    address = _read(origin + "/", rules) if len(origin) < rules.max_length else None
    return address if isinstance(address, Address) and (address.target, address.url) == ("/", origin + "/") else None


def join_address(base: Address, link: str, rules: AddressRules = DEFAULT_RULES) -> Address | Refused:
    """The address that a link on the page `base` points to, or the rule that refuses it. O(length).

    White space around the link is dropped, as HTML asks; everything else is held to the rules of `read_address`.

    >>> base = read_address("https://example.com/news/today")
    >>> join_address(base, " ../about#team ").url
    'https://example.com/about'
    >>> join_address(base, "//other.example/x").url
    'https://other.example/x'
    >>> join_address(base, "javascript:alert(1)").rule
    'scheme'
    """
    link = link.strip(_HTML_SPACE)
    if _SCHEME.match(link):
        return read_address(link, rules)
    if link.startswith("//"):
        return read_address(f"{base.scheme}:{link}", rules)
    target = plain_target(base, link, rules)
    if target is not None:
        return base.with_target(target)
    return _check_characters(link, rules) or _joined(base, link, rules)


def plain_target(base: Address, link: str, rules: AddressRules) -> str | None:
    """Path and query of a plain link to the same host: a path, a name beside the page, or folders up.

    None for all other links, which are the parser's: of other hosts, mere fragments, with white space around them.
    """
    if link[:1] in ("", "#") or link[:2] == "//" or len(base.url) + len(link) > rules.max_length:
        return None
    if link[0] != "/":
        path = base.target.partition("?")[0]
        folder = path if link[0] == "?" else path[: path.rfind("/") + 1]
        while link.startswith("../"):
            link, folder = link[3:], folder[: folder.rfind("/", 0, -1) + 1] or "/"
        link = folder + link
    match = PLAIN_TARGET.fullmatch(link)
    return None if match is None else link[: match.start(3)]


def address_rules(local_names: Iterable[str] = (), *, field: str = "local_names") -> AddressRules:
    """Rules from settings.

    Raises:
        InvalidInput: for what can be no host name.

    >>> read_address("http://wiki/", address_rules(["WIKI"])).url
    'http://wiki/'
    """
    return AddressRules(local_names=frozenset(plain_name(name, field) for name in local_names))


def origins(texts: Iterable[str], rules: AddressRules, *, field: str) -> frozenset[str]:
    """Origins of https that a user wrote, such as `https://wiki:8443`.

    Raises:
        InvalidInput: for what is no address, another scheme, or has a path.
    """
    found = set()
    for text in texts:
        address = address_or_raise(text, field=field, rules=rules)
        if address.scheme != "https" or address.target != "/":
            problem = f"holds {safe_text(text)}; write an origin alone, such as https://wiki.example.com:8443"
            raise InvalidInput(problem, field=field)
        found.add(address.origin)
    return frozenset(found)


def address_or_raise(text: str, *, field: str, rules: AddressRules = DEFAULT_RULES) -> Address:
    """For what a user wrote: the address, or `InvalidInput` with the sentence of the refusal.

    Raises:
        InvalidInput: if a rule refuses the address.
    """
    address = read_address(text, rules)
    if isinstance(address, Refused):
        raise InvalidInput(f"holds an address that cannot be used: {address.sentence}", field=field)
    return address


def _check_characters(text: str, rules: AddressRules) -> Refused | None:
    if len(text) > rules.max_length:
        return _too_long(text, rules)
    return _first_broken(text, text, _CHARACTER_RULES)


def _check_shape(match: re.Match[str] | None) -> tuple[str, str] | None:
    if match is None:
        return "no-scheme", "it must begin with http:// or https://"
    if match["scheme"].lower() not in _DEFAULT_PORTS:
        return "scheme", "only http and https addresses are fetched"
    if len(match["slashes"]) < 2:
        return "slashes", "two slashes must follow the scheme"
    if len(match["slashes"]) > 2 or not match["authority"]:
        return "empty-host", "no host follows the two slashes"
    return None


def _check_authority(text: str, authority: str) -> Refused | None:
    return _first_broken(text, authority, _AUTHORITY_RULES)


def _first_broken(text: str, part: str, rules: tuple[Rule, ...]) -> Refused | None:
    for rule, is_broken, reason in rules:
        if is_broken(part):
            return _refuse(text, rule, reason)
    return None


def _has_half_character(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def _has_backslash(text: str) -> bool:
    return "\\" in text and "\\" in re.split(r"[?#]", text, maxsplit=1)[0]


def _has_bad_port(authority: str) -> bool:
    port = _split_port(authority)[1]
    return not _PORT.fullmatch(port) or (port != "" and not 1 <= int(port) <= 65535)


Rule = tuple[str, Callable[[str], object], str]
_CHARACTER_RULES: tuple[Rule, ...] = (
    ("whitespace", lambda text: text.strip() != text, "white space stands before or after it; remove it"),
    ("control-character", _CONTROL.search, "it holds a tab, a line break or another control character"),
    ("half-character", _has_half_character, "it holds half a character"),
    ("backslash", _has_backslash, "programs read a backslash in different ways; write a slash"),
    ("encoded-nul", lambda text: "%00" in text, "it holds %00, which no page needs"),
)
_AUTHORITY_RULES: tuple[Rule, ...] = (
    ("userinfo", lambda part: "@" in part, "it holds a user name or password; set credentials for the host instead"),
    ("zone-id", lambda part: "%" in part and part[0] == "[", "an address with a zone reaches only the local link"),
    ("percent-host", lambda part: "%" in part, "the host is percent-encoded; write it plainly"),
    ("invisible-character", _INVISIBLE.search, "the host holds a character that cannot be seen"),
    ("empty-host", lambda part: not _split_port(part)[0], "no host follows the two slashes"),
    ("port", _has_bad_port, "the port must be a number from 1 to 65535"),
)


def _split_port(authority: str) -> tuple[str, str]:
    if authority.startswith("["):
        host, _, port = authority.partition("]")
        return host, port.removeprefix(":")
    host, _, port = authority.partition(":")
    return host, port


def _read(text: str, rules: AddressRules) -> Address | Refused:
    refused = _check_characters(text, rules)
    if refused is not None:
        return refused
    match = _ABSOLUTE.match(text)
    broken = _check_shape(match)
    if broken is not None:
        return _refuse(text, *broken)
    assert match is not None
    return _check_authority(text, match["authority"]) or _parse(text, match["authority"], rules)


def _parse(text: str, authority: str, rules: AddressRules) -> Address | Refused:
    try:
        written = _WRITTEN.match(ada_url.normalize_url(text))
    except ValueError:
        written = None
    if written is None:
        return _refuse(text, "malformed", "it cannot be read as an address; check host and port")
    scheme, host, port, target = written.groups()
    is_ip = host[0] == "[" or host.rpartition(".")[2].isdigit()
    if is_ip:
        if host[0] != "[" and _split_port(authority)[0] != host:
            return _refuse(text, "disguised-address", f"the host is another spelling of {host}; write it that way")
        host = host.strip("[]")
    else:
        host = host.removesuffix(".")
        broken = check_host_name(host, rules.local_names)
        if broken is not None:
            return _refuse(text, *broken)
    address = Address.of(scheme, host, int(port or _DEFAULT_PORTS[scheme]), target, is_ip)
    return address if len(address.url) <= rules.max_length else _too_long(text, rules)


def _joined(base: Address, link: str, rules: AddressRules) -> Address | Refused:
    try:
        written = _WRITTEN.match(ada_url.join_url(base.url, link))
    except ValueError:
        written = None
    if written is None:
        return _refuse(link, "malformed", "it cannot be read as a link")
    joined = base.with_target(written["target"])
    return joined if len(joined.url) <= rules.max_length else _too_long(link, rules)


def _too_long(text: str, rules: AddressRules) -> Refused:
    return _refuse(text, "too-long", f"it is longer than {rules.max_length} characters")


def _refuse(text: object, rule: str, reason: str) -> Refused:
    return Refused(rule, safe_text(text), reason)
