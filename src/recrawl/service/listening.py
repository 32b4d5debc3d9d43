"""Where the service listens, who may call it what, and which proxies say who asks: read and checked. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from recrawl.errors import InvalidInput
from recrawl.tracker.settings.settings import LISTEN

PORT = int(LISTEN.rpartition(":")[2])
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_MAPPED_BITS = 96  # of an IPv6 address before the IPv4 address that is mapped into it
_NAME = re.compile(r"(?!-)[a-z0-9.-]{1,253}|\[[0-9a-f:.]{2,45}\]")


@dataclass(frozen=True, slots=True)
class Listening:
    """Where, and how.

    Args:
        host: an address or name to bind.
        port: 0 for any that is free.
        names: by which clients may call it in their `Host` header, beside those of this machine itself.
        behind_tls: a proxy before it speaks TLS, so that tokens do not travel in the open.
        fixed: whether the port was asked for; if not and it is taken, another one does as well.
        proxies: networks of proxies that are believed when they say who asks.
    """

    host: str = "127.0.0.1"
    port: int = PORT
    names: tuple[str, ...] = ()
    behind_tls: bool = False
    fixed: bool = False
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()

    @property
    def allowed_names(self) -> frozenset[str]:
        """Names in `Host` that are answered; others may be a name that was bent to this machine (rebinding)."""
        return frozenset(name.lower() for name in self.names) | (_LOOPBACK_NAMES if self.is_loopback else frozenset())

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    def client_of(self, peer: str, forwarded: str) -> str:
        """The address of the client behind trusted proxies.

        Args:
            peer: the address that is connected.
            forwarded: the `X-Forwarded-For` header, to which each proxy appends the address that it was asked from.

        Only what a trusted proxy appended counts, so the header is read from its end up to the first address that is
        no trusted proxy; what stands before it may be made up by the client. An entry that is no address counts as the
        proxy that appended it.
        """
        near = _address(peer)
        if near is None:
            return peer
        for entry in reversed(forwarded.split(",")):
            if not any(near in network for network in self.proxies):
                break
            far = _address(entry)
            if far is None:
                break
            near = far
        return str(near)


def network_of(client: str) -> str:
    """Return what one client may have many addresses of: an IPv6 address as its /64 network; IPv4 as it is.

    >>> network_of("2001:db8::1:2:3:4"), network_of("192.0.2.1")
    ('2001:db8::/64', '192.0.2.1')
    """
    address = _address(client)
    return str(IPv6Network((address, 64), strict=False)) if isinstance(address, IPv6Address) else client


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """An address with or without a port, IPv4 inside IPv6 as IPv4; None for other texts."""
    host, port = text.strip(" \t"), "0"
    if host.startswith("["):
        host, _, port = host[1:].partition("]")
        port = port.removeprefix(":") or "0"
    elif host.count(":") == 1:
        host, _, port = host.partition(":")
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    if not (port.isascii() and port.isdecimal()):
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_loopback(host: str) -> bool:
    """Whether an address to bind is of this machine alone."""
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return host.lower() == "localhost"
    # Python 3.13 calls ::ffff:127.0.0.1 loopback, earlier versions do not: refuse it on all.
    return address.is_loopback and getattr(address, "ipv4_mapped", None) is None


def read_listening(
    text: str,
    names: tuple[str, ...] = (),
    *,
    behind_tls: bool = False,
    fixed: bool = True,
    proxies: Sequence[str] = (),
) -> Listening | None:
    """Where to listen, from `HOST:PORT`, `PORT` or `off`; None for `off`.

    A bind that others can reach is refused unless TLS is before it and the names are known by which it is called.

    >>> read_listening("[::1]:0").port
    0
    """
    if text.strip().lower() == "off":
        return None
    host, separator, port = text.strip().rpartition(":")
    if not separator:
        host = "127.0.0.1"
    host = host.strip("[]")
    if not host or not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise InvalidInput(f"is {text!r}, but must be HOST:PORT such as 127.0.0.1:{PORT}, or off", field="listen")
    for name in names:
        if not _NAME.fullmatch(name.lower()):
            raise InvalidInput(f"is {name!r}, but must be the name of a host, without a port", field="service.names")
    if not is_loopback(host) and not behind_tls:
        raise InvalidInput(
            f"is {text!r}, which others can reach, and tokens would travel in the open: listen on 127.0.0.1, or put a "
            "proxy that speaks TLS before it and say `behind-tls = true` under [service]",
            field="listen",
        )
    if not is_loopback(host) and not names:
        raise InvalidInput(
            f"is {text!r}, which others can reach: give the names by which they do, `names` under [service]",
            field="listen",
        )
    return Listening(host, int(port), names, behind_tls, fixed, tuple(map(_read_proxy, proxies)))


def _read_proxy(text: str) -> IPv4Network | IPv6Network:
    try:
        network = ip_network(text)
    except ValueError:
        raise InvalidInput(
            f"is {text!r}, but must be an address or a network, such as 127.0.0.1 or 10.0.0.0/24",
            field="service.trusted-proxies",
        ) from None
    if isinstance(network, IPv6Network) and network.prefixlen >= _MAPPED_BITS and network.network_address.ipv4_mapped:
        # Clients are told apart by their IPv4 address, also where the socket is of IPv6.
        network = IPv4Network((network.network_address.ipv4_mapped, network.prefixlen - _MAPPED_BITS))
    if not network.prefixlen:
        raise InvalidInput(
            f"is {text!r}, which would let every client choose its address: name the proxies alone",
            field="service.trusted-proxies",
        )
    return network
