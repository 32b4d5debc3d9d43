"""Name look-ups for the transport: the names of the settings first, then the system, then only what the gate allows.

The gate in `egress.py` still decides on each address that is dialled. Answers it would refuse are left out here, so
that a name with no address left fails with the reason.
"""

from __future__ import annotations

import socket
from ipaddress import ip_address

from aiohttp.abc import AbstractResolver, ResolveResult

from recrawl.web.egress import EgressPolicy, EgressRefused, check_address, mapped_address
from recrawl.web.refusal import Refused, shown

_MOST_ANSWERS = 16


class GuardedResolver(AbstractResolver):
    """For aiohttp's `TCPConnector(resolver=...)`.

    Args:
        policy: the gate's policy, with its map of names.
        inner: who looks up every other name; the resolver closes it when it is closed.
    """

    def __init__(self, policy: EgressPolicy, inner: AbstractResolver) -> None:
        self._policy = policy
        self._inner = inner

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """At most 16 addresses of a name that the gate allows.

        Raises:
            EgressRefused: if the name has addresses and the gate allows none of them.
        """
        mapped = mapped_address(host.lower().removesuffix("."), self._policy)
        answers = [_answer(host, mapped, port)] if mapped is not None else await self._look_up(host, port, family)
        refused: Refused | None = None
        allowed: list[ResolveResult] = []
        for answer in answers[:_MOST_ANSWERS]:
            decision = check_address(answer["host"], port, self._policy)
            if isinstance(decision, Refused):
                refused = refused or Refused(decision.rule, f"{shown(host)} at {decision.subject}", decision.reason)
            else:
                allowed.append(answer)
        if refused is not None and not allowed:
            raise EgressRefused(refused)
        return allowed

    async def _look_up(self, host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
        return await self._inner.resolve(host, port, family)

    async def close(self) -> None:
        """Close the resolver behind this one."""
        await self._inner.close()


def _answer(host: str, ip: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ip_address(ip).version == 6 else socket.AF_INET
    return ResolveResult(hostname=host, host=ip, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)
