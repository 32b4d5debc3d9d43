"""How far discovery goes: which addresses found on a site belong to what the user asked to follow. Pure."""

from __future__ import annotations

from recrawl.tracker.admission import fits
from recrawl.tracker.settings.settings import DiscoveryRules
from recrawl.web.address import Address
from recrawl.web.canonical import registered_domain

_NO_PAGES = frozenset((
    "jpg", "jpeg", "png", "gif", "webp", "avif", "svg", "ico", "bmp", "tif", "tiff", "css", "js", "mjs", "map", "woff",
    "woff2", "ttf", "otf", "eot", "mp3", "mp4", "m4a", "m4v", "ogg", "ogv", "wav", "webm", "mov", "avi", "mkv", "zip",
    "gz", "tgz", "bz2", "xz", "7z", "rar", "tar", "dmg", "exe", "msi", "deb", "rpm", "apk", "iso", "bin", "swf",
))  # fmt: skip


def outside(address: Address, root: str, depth: int, rules: DiscoveryRules) -> str | None:
    """The rule by which an address is not followed, None if it is. O(patterns · length).

    Args:
        address: in canonical form.
        root: `root_of` the page that the user named and that all this began with.
        depth: links from that page.
        rules: of the user.

    >>> from recrawl.web.address import read_address
    >>> outside(read_address("https://www.example.com/a"), "example.com", 1, DiscoveryRules())
    >>> outside(read_address("https://other.example.com/a"), "example.com", 1, DiscoveryRules())
    'out-of-scope'
    """
    if depth > rules.depth:
        return "too-deep"
    if not belongs(address, root, rules):
        return "out-of-scope"
    if rules.include and not any(fits(address.url, pattern) for pattern in rules.include):
        return "not-included"
    if any(fits(address.url, pattern) for pattern in rules.exclude):
        return "excluded"
    if is_no_page(address):
        return "no-page"
    return None


def root_of(address: Address) -> str:
    """What addresses of the same host have in common: name and port, with or without `www.` in front."""
    return address.authority.removeprefix("www.")


def is_no_page(address: Address) -> bool:
    """Whether an address says by its ending that it is an image, a script, an archive: nothing to read."""
    name = address.target.partition("?")[0].rpartition("/")[2]
    return "." in name and name.rpartition(".")[2].lower() in _NO_PAGES


def signature(rules: DiscoveryRules) -> str:
    """What decides which addresses are taken: when it changes, what was refused is looked at again."""
    return repr((rules.scope, rules.include, rules.exclude, rules.depth, rules.caps, rules.oldest_s))


def belongs(address: Address, root: str, rules: DiscoveryRules) -> bool:
    """Whether an address is of the site that the user asked to follow, whatever its path."""
    if rules.scope == "patterns":
        return True  # they are asked next
    if rules.scope == "site":
        return registered_domain(address.host) == registered_domain(root.partition(":")[0])
    return root_of(address) == root
