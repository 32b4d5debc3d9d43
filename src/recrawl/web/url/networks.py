"""Networks that no crawl may reach, and the IPv4 addresses hidden inside IPv6 ones.

The list is explicit because `ipaddress` calls several of these networks global (multicast, NAT64, 6to4, the old
IPv4-compatible form, site-local, 192.88.99.0/24), and because one cloud answers on a public address. Of IPv6 only
2000::/3 is given out for the public internet (RFC 4291); all else is forbidden, listed or not. A network is
opened by name, in the settings of `egress.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

Ip = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Addresses where clouds hand out credentials: a wide opt-in never opens them, an exact one does.
METADATA_ADDRESSES: tuple[tuple[str, str], ...] = (
    ("169.254.169.254/32", "cloud metadata"),
    ("169.254.170.2/32", "container credentials"),
    ("169.254.170.23/32", "container credentials (AWS EKS)"),
    ("100.100.100.200/32", "cloud metadata (Alibaba)"),
    ("192.0.0.192/32", "cloud metadata (Oracle)"),
    ("168.63.129.16/32", "cloud metadata (Azure)"),
    ("fd00:ec2::254/128", "cloud metadata (AWS)"),
    ("fd00:ec2::23/128", "container credentials (AWS EKS)"),
    ("fd20:ce::254/128", "cloud metadata (Google)"),
)

FORBIDDEN_NETWORKS: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "this network"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "carrier-grade NAT"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "protocol assignments"),
    ("192.0.2.0/24", "documentation"),
    ("192.88.99.0/24", "6to4 relay"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "benchmarking"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    ("255.255.255.255/32", "broadcast"),
    ("240.0.0.0/4", "reserved"),
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("::ffff:0:0/96", "IPv4-mapped"),
    ("::ffff:0:0:0/96", "IPv4-translated"),
    ("::/96", "IPv4-compatible"),
    ("64:ff9b::/96", "NAT64"),
    ("64:ff9b:1::/48", "local NAT64"),
    ("100::/64", "discard"),
    ("100:0:0:1::/64", "dummy prefix"),
    ("2001::/32", "Teredo"),
    ("2001:2::/48", "benchmarking"),
    ("2001:db8::/32", "documentation"),
    ("2001:10::/28", "ORCHID"),
    ("2001:20::/28", "ORCHIDv2"),
    ("2002::/16", "6to4"),
    ("3fff::/20", "documentation"),
    ("5f00::/16", "segment routing"),
    ("fc00::/7", "unique local"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
    ("ff00::/8", "multicast"),
)

_METADATA: tuple[tuple[Network, str], ...] = tuple((ip_network(text), kind) for text, kind in METADATA_ADDRESSES)
_FORBIDDEN: tuple[tuple[Network, str], ...] = _METADATA + tuple(
    (ip_network(text), kind) for text, kind in FORBIDDEN_NETWORKS
)
_V4 = tuple((int(network.network_address), int(network.netmask), f"{kind} ({network})")
            for network, kind in _FORBIDDEN if network.version == 4)  # fmt: skip
_V6 = tuple((int(network.network_address), int(network.netmask), f"{kind} ({network})")
            for network, kind in _FORBIDDEN if network.version == 6)  # fmt: skip
_METADATA_IPS: frozenset[Ip] = frozenset(network.network_address for network, _ in _METADATA)

_PUBLIC_V6 = 0b001  # the first three bits of 2000::/3
_ISATAP_MARKS = (0x00005EFE, 0x02005EFE)


def forbidden_network(ip: Ip) -> str | None:
    """The forbidden network that holds this very address, by its name, or None. O(length of the list).

    >>> from ipaddress import ip_address
    >>> forbidden_network(ip_address("100.100.1.1")), forbidden_network(ip_address("1.1.1.1"))
    ('carrier-grade NAT (100.64.0.0/10)', None)
    """
    number = int(ip)
    for network, mask, name in _V4 if ip.version == 4 else _V6:
        if number & mask == network:
            return name
    if ip.version == 6 and number >> 125 != _PUBLIC_V6:
        return "outside of the public internet (2000::/3)"
    return None


def is_metadata(ip: Ip) -> bool:
    """Whether a cloud hands out credentials at this address."""
    return ip in _METADATA_IPS


def embedded_ipv4(ip: Ip) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses that an IPv6 address carries and that a packet to it may end at.

    Mapped, translated, compatible, both NAT64 prefixes (RFC 6052), 6to4, Teredo (server and client) and ISATAP.

    >>> from ipaddress import ip_address
    >>> embedded_ipv4(ip_address("2002:7f00:1::"))
    (IPv4Address('127.0.0.1'),)
    """
    if ip.version == 4:
        return ()
    number = int(ip)
    for network, read in _CARRIERS:
        if ip in network:
            return read(number)
    return _low_bits(number) if number >> 32 & 0xFFFFFFFF in _ISATAP_MARKS else ()


def _low_bits(number: int) -> tuple[IPv4Address, ...]:
    return (IPv4Address(number & 0xFFFFFFFF),)


def _after_prefix_2002(number: int) -> tuple[IPv4Address, ...]:
    return (IPv4Address(number >> 80 & 0xFFFFFFFF),)


def _server_and_client(number: int) -> tuple[IPv4Address, ...]:
    """Teredo: the server plainly, the client with every bit turned."""
    return IPv4Address(number >> 64 & 0xFFFFFFFF), IPv4Address(~number & 0xFFFFFFFF)


def _rfc6052(number: int) -> tuple[IPv4Address, ...]:
    """What follows prefixes of 48, 56, 64 and 96 bits: only the operator knows which. Bits 64 to 71 do not count."""
    bits = f"{number:0128b}"
    without_gap = bits[:64] + bits[72:]
    read = [int(without_gap[start : start + 32], 2) for start in (48, 56, 64)] + [number & 0xFFFFFFFF]
    # A reading in 0.0.0.0/8 comes from the zeros of a longer prefix and says nothing.
    likely = [address for address in read if address >> 24] or read[-1:]
    return tuple(IPv4Address(address) for address in dict.fromkeys(likely))


_CARRIERS: tuple[tuple[IPv6Network, Callable[[int], tuple[IPv4Address, ...]]], ...] = (
    (IPv6Network("::ffff:0:0/96"), _low_bits),
    (IPv6Network("::ffff:0:0:0/96"), _low_bits),
    (IPv6Network("::/96"), _low_bits),
    (IPv6Network("64:ff9b::/96"), _low_bits),
    (IPv6Network("64:ff9b:1::/48"), _rfc6052),
    (IPv6Network("2002::/16"), _after_prefix_2002),
    (IPv6Network("2001::/32"), _server_and_client),
)
