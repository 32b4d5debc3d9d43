"""Settings of the service: by which names it is called, and who may send signed hooks. Pure."""

from __future__ import annotations

from dataclasses import dataclass

LISTEN = "127.0.0.1:8472"
"""Where the service listens unless told otherwise: this machine alone can reach it."""


@dataclass(frozen=True, slots=True)
class ServiceRules:
    """How the service is reached.

    Args:
        names: of hosts by which clients call it, beside those of this machine.
        behind_tls: a proxy before it speaks TLS.
        trusted_proxies: addresses or networks of proxies that say who asks.
    """

    names: tuple[str, ...] = ()
    behind_tls: bool = False
    trusted_proxies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HookRule:
    """Who may signal changes by a signed hook.

    Args:
        name: in the address of the hook.
        secret: with which messages are signed.
    """

    name: str
    secret: str
