"""The gate: the one place where it is decided which address may be dialled, and where sockets are made.

`check_address` decides on an IP address and a port; `socket_factory` asks it with the address that is about to be
dialled, so that no redirect, DNS answer or other channel gets around it; `check_target` refuses early, before any
name is looked up, and runs on every hop. Refused are the networks of `url/networks.py`, IPv4 addresses hidden in IPv6
ones, whatever `ipaddress` does not call global, ports other than 80 and 443, and the names of the crawler itself.

A network is opened by name, with its ports, never by a switch for all:

    allow = {"living": "127.0.0.1/32:8081", "wiki": "10.1.0.0/16", "lab": "[fd12:3::/48]:80,8000-8010"}
    resolve = {"*.living.test": "127.0.0.1"}

An open network with ports is open on those ports; without, on the ports of the policy. Metadata addresses of clouds
open only to a network that names that one address.
"""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any

from recrawl.errors import InvalidInput, RecrawlError
from recrawl.web.refused import Refused, safe_text
from recrawl.web.url.address import Address
from recrawl.web.url.hostname import matches_name, plain_name
from recrawl.web.url.networks import Ip, Network, embedded_ipv4, forbidden_network, is_metadata

DEFAULT_PORTS = frozenset({80, 443})
_WIDEST = {4: 8, 6: 7}
_BRACKETED = re.compile(r"\[(?P<network>[^\]]*)\](?::(?P<ports>.*))?")
_PLAIN = re.compile(r"(?P<network>[0-9]+(?:\.[0-9]+){3}(?:/[0-9]+)?)(?::(?P<ports>.*))?")
_PORT_RANGE = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")

AddressInfo = tuple[Any, Any, int, str, tuple[Any, ...]]  # as getaddrinfo and aiohttp have it


@dataclass(frozen=True, slots=True)
class NamedNetwork:
    """A network that the user opened: its name, its addresses, its ports (none: those of the policy)."""

    name: str
    network: Network
    ports: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """What may be dialled; made by `egress_policy` from settings."""

    ports: frozenset[int] = DEFAULT_PORTS
    allow: tuple[NamedNetwork, ...] = ()
    own_hosts: frozenset[str] = frozenset()
    resolve: tuple[tuple[str, str], ...] = ()


class EgressRefused(RecrawlError, PermissionError):
    """Raised into the HTTP client when the gate stays shut; `refused` says why."""

    def __init__(self, refused: Refused) -> None:
        self.refused = refused
        super().__init__(errno.EACCES, refused.sentence)


def egress_policy(
    *,
    allow: Mapping[str, str] | None = None,
    ports: Iterable[int] = DEFAULT_PORTS,
    own_hosts: Iterable[str] = (),
    resolve: Mapping[str, str] | None = None,
) -> EgressPolicy:
    """A policy from settings.

    Args:
        allow: name of a network and its addresses with ports, such as `{"living": "127.0.0.1/32:8081"}`.
        ports: ports that may be dialled on the public internet and on opened networks without ports.
        own_hosts: host names of this crawler's own service, which it must not crawl; `*.name` for all below.
        resolve: host names and the IP address they stand for, such as `{"*.living.test": "127.0.0.1"}`.

    Raises:
        InvalidInput: for a setting that cannot be read; the sentence names it.

    >>> policy = egress_policy(allow={"living": "127.0.0.1/32:8081"})
    >>> check_address("127.0.0.1", 8081, policy)
    >>> check_address("127.0.0.1", 80, policy).rule
    'port'
    """
    return EgressPolicy(
        ports=frozenset(_port(port) for port in ports),
        allow=tuple(_named_network(name, text) for name, text in (allow or {}).items()),
        own_hosts=frozenset(plain_name(host, "own_hosts") for host in own_hosts),
        resolve=tuple((plain_name(name, "resolve"), _resolved(name, ip)) for name, ip in (resolve or {}).items()),
    )


def check_address(ip: Ip | str, port: int, policy: EgressPolicy) -> Refused | None:
    """Return why this IP address may not be dialled on this port; None if it may. O(networks).

    >>> check_address("::ffff:10.0.0.1", 80, EgressPolicy()).rule
    'forbidden-network'
    """
    subject = safe_text(f"{ip} port {port}")
    parsed = _parsed_ip(ip)
    if parsed is None:
        return Refused("not-an-address", subject, "it is no plain IP address")
    if getattr(parsed, "scope_id", None):
        return Refused("zone-id", subject, "an address with a zone reaches only the local link")
    opened: NamedNetwork | None = None
    for candidate in (parsed, *embedded_ipv4(parsed)):
        network = _opened_by(candidate, policy)
        if network is None:
            refused = _check_public(candidate, parsed, subject)
            if refused is not None:
                return refused
        opened = opened or network
    ports = opened.ports if opened is not None and opened.ports else policy.ports
    if port not in ports:
        where = "outside" if opened is None else f"in the network {opened.name}"
        return Refused("port", subject, f"{where} only the ports {_listed(ports)} may be dialled")
    return None


def check_target(address: Address, policy: EgressPolicy) -> Refused | None:
    """Check one hop early, before any look-up: own names, ports that no network opens, IP addresses.

    None is no promise: the decision falls when the address is dialled.
    """
    if any(matches_name(address.host, own) for own in policy.own_hosts):
        return Refused("own-host", safe_text(address.url), "it is this crawler's own service")
    mapped = mapped_address(address.host, policy)
    if address.is_ip or mapped is not None:
        return check_address(mapped or address.host, address.port, policy)
    ports = policy.ports.union(*(network.ports for network in policy.allow))
    if address.port not in ports:
        return Refused("port", safe_text(address.url), f"only the ports {_listed(ports)} may be dialled")
    return None


def mapped_address(host: str, policy: EgressPolicy) -> str | None:
    """The IP address that the settings give to a host name; the first matching line counts."""
    return next((ip for pattern, ip in policy.resolve if matches_name(host, pattern)), None)


def socket_factory(policy: EgressPolicy) -> Callable[[AddressInfo], socket.socket]:
    """For aiohttp's `TCPConnector(socket_factory=...)`: a socket for an address that may be dialled.

    The function raises `EgressRefused`, an `OSError`, before any packet; the client reports it as a failed
    connection.
    """

    def make_socket(address_info: AddressInfo) -> socket.socket:
        family, kind, protocol, _, dialled = address_info
        decision = _check_dialled(family, kind, dialled, policy)
        if decision is not None:
            raise EgressRefused(decision)
        return socket.socket(family=family, type=kind, proto=protocol)

    return make_socket


def _check_dialled(family: int, kind: int, dialled: tuple[Any, ...], policy: EgressPolicy) -> Refused | None:
    if family not in (socket.AF_INET, socket.AF_INET6) or kind != socket.SOCK_STREAM:
        return Refused("not-an-address", safe_text(dialled), "only TCP over IP is dialled")
    if len(dialled) == 4 and dialled[3]:
        return Refused("zone-id", safe_text(dialled), "an address with a zone reaches only the local link")
    return check_address(str(dialled[0]), int(dialled[1]), policy)


def _check_public(candidate: Ip, outer: Ip, subject: str) -> Refused | None:
    name = forbidden_network(candidate)
    inside = "" if candidate is outer else f" (it carries {candidate})"
    if name is not None:
        return Refused("forbidden-network", subject, f"the network is {name}{inside}; open it by name to allow it")
    if not candidate.is_global:
        return Refused("not-global", subject, f"the address is not part of the public internet{inside}")
    return None


def _opened_by(ip: Ip, policy: EgressPolicy) -> NamedNetwork | None:
    for named in policy.allow:
        if ip.version != named.network.version or ip not in named.network:
            continue
        if not is_metadata(ip) or named.network.num_addresses == 1:
            return named
    return None


def _parsed_ip(ip: Ip | str) -> Ip | None:
    if not isinstance(ip, str):
        return ip
    try:
        return ip_address(ip)
    except ValueError:
        return None


def _named_network(name: str, text: str) -> NamedNetwork:
    field = f"allow[{name!r}]"
    match = _BRACKETED.fullmatch(text.strip()) or _PLAIN.fullmatch(text.strip())
    try:
        network = ip_network(match["network"] if match else text.strip())
    except ValueError:
        raise InvalidInput(
            f"is {text!r}: write a network and its ports, such as 127.0.0.1/32:8081, 10.1.0.0/16 or [fd12::/48]:80",
            field=field,
        ) from None
    if network.prefixlen < _WIDEST[network.version]:
        raise InvalidInput(f"opens {network}, which is most of the internet; name a smaller network", field=field)
    return NamedNetwork(name, network, _ports(match["ports"] if match else None, field))


def _ports(text: str | None, field: str) -> frozenset[int]:
    if text is None:
        return frozenset()
    ports: set[int] = set()
    for part in text.split(","):
        match = _PORT_RANGE.fullmatch(part.strip())
        if match is None or not 1 <= int(match[1]) <= int(match[2] or match[1]) <= 65535:
            raise InvalidInput(
                f"has the ports {text!r}: write numbers from 1 to 65535, such as 80,8000-8010", field=field
            )
        ports.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(ports)


def _port(port: object) -> int:
    if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= 65535:
        raise InvalidInput(f"holds {port!r}, but a port is a number from 1 to 65535", field="ports")
    return port


def _resolved(name: str, ip: str) -> str:
    parsed = _parsed_ip(ip)
    if parsed is None:
        raise InvalidInput(f"is {ip!r}, but must be an IP address", field=f"resolve[{name!r}]")
    return str(parsed)


def _listed(ports: Iterable[int]) -> str:
    shown_ports = [str(port) for port in sorted(ports)]
    return ", ".join(shown_ports[:8]) + (", ..." if len(shown_ports) > 8 else "")
