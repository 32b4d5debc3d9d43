"""A name service that lies as it is told: an answer for each look-up, faults, and a flip from public to private."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address
from typing import Literal

from aiohttp.abc import AbstractResolver, ResolveResult

NameFault = Literal["missing", "failed", "looped", "silent", "empty"]
NameAnswer = NameFault | list[str]

_FAULTS: dict[NameFault, tuple[int, str]] = {
    "missing": (socket.EAI_NONAME, "Name or service not known"),
    "failed": (socket.EAI_AGAIN, "Temporary failure in name resolution"),
    "looped": (socket.EAI_FAIL, "Non-recoverable failure in name resolution"),
}


class ScriptedNames(AbstractResolver):
    """For a transport's `resolver`.

    `names.on("a.test", ["93.184.216.34"], ["127.0.0.1"])` answers the first look-up with one address, every later
    one with another. A fault stands in place of a list: `missing` (no such name), `failed` (the service is down),
    `looped` (a chain of names that ends nowhere), `silent` (no answer ever), `empty` (an answer without addresses).
    Unknown names are missing.
    """

    def __init__(self) -> None:
        self._answers: dict[str, list[NameAnswer]] = {}
        self.log: list[str] = []
        self.closed = False

    def on(self, host: str, *answers: NameAnswer) -> None:
        """Answer look-ups of a name, one after the other; the last answer is repeated."""
        self._answers[host] = list(answers)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The next answer for a name, of whatever family it is."""
        del family
        self.log.append(host)
        left = self._answers.get(host, ["missing"])
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, list):
            return [_result(host, ip, port) for ip in answer]
        if answer == "silent":
            await asyncio.Event().wait()
        if answer == "empty":
            return []
        raise socket.gaierror(*_FAULTS[answer])

    async def close(self) -> None:
        """Note that it was closed."""
        self.closed = True


def _result(host: str, ip: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ip_address(ip).version == 6 else socket.AF_INET
    return ResolveResult(hostname=host, host=ip, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)
