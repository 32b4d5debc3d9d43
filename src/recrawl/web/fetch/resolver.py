"""Name look-ups for the transport: the names of the settings first, then the system, then only what the gate allows.

The gate in `egress.py` still decides on each address that is dialled. Answers it would refuse are left out here, so
that a name with no address left fails with the reason. The system is asked by `SystemNames`, on threads of its own:
a name service that never answers can hold up other names for a few seconds, and nothing else at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from ipaddress import ip_address

from aiohttp.abc import AbstractResolver, ResolveResult

from recrawl.errors import InvalidInput
from recrawl.web.fetch.egress import AddressInfo, EgressPolicy, EgressRefused, check_address, mapped_address
from recrawl.web.refused import Refused, safe_text

_MOST_ANSWERS = 16

LookUp = Callable[[str, int, int], list[AddressInfo]]


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
        """At most 16 addresses of a name that the gate allows, and at least one.

        Raises:
            EgressRefused: if the name has addresses and the gate allows none of them.
            gaierror: if the name has no address.
        """
        mapped = mapped_address(host.lower().removesuffix("."), self._policy)
        answers = [_answer(host, mapped, port)] if mapped is not None else await self._look_up(host, port, family)
        refused: Refused | None = None
        allowed: list[ResolveResult] = []
        for answer in answers[:_MOST_ANSWERS]:
            decision = check_address(answer["host"], port, self._policy)
            if decision is not None:
                refused = refused or Refused(decision.rule, f"{safe_text(host)} at {decision.subject}", decision.reason)
            else:
                allowed.append(answer)
        if allowed:
            return allowed
        if refused is not None:
            raise EgressRefused(refused)
        raise socket.gaierror(socket.EAI_NONAME, "the name has no address")

    async def _look_up(self, host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
        return await self._inner.resolve(host, port, family)

    async def close(self) -> None:
        """Close the resolver behind this one."""
        await self._inner.close()


def _system(host: str, port: int, family: int) -> list[AddressInfo]:
    return socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)


class SystemNames(AbstractResolver):
    """Run each DNS lookup in a daemon thread, so that a hung lookup blocks neither the loop nor process exit.

    Args:
        most_at_once: look-ups, and so threads, at once; others wait for one to end, within their own deadline.
        deadline_s: seconds until a look-up is given up, the wait for a thread included.
        look_up: blocks until a name is looked up, as `socket.getaddrinfo` does.
    """

    def __init__(self, most_at_once: int = 64, deadline_s: float = 10.0, look_up: LookUp = _system) -> None:
        if most_at_once < 1:
            raise InvalidInput(f"is {most_at_once}, but must be at least 1", field="most_at_once")
        if not deadline_s > 0.0:
            raise InvalidInput(f"is {deadline_s}, but must be above 0", field="deadline_s")
        self._free = asyncio.Semaphore(most_at_once)
        self._deadline_s = deadline_s
        self._system = look_up

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a name, in the system's order.

        Raises:
            gaierror: if the system finds none, or does not answer in time.
        """
        infos: list[AddressInfo] | None = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._deadline_s):
                await self._free.acquire()
                infos = await self._on_a_thread(host, port, family)
        if infos is None:
            raise socket.gaierror(socket.EAI_AGAIN, "the name service did not answer in time")
        # A zone in the fourth place reaches only the local link; the gate refuses such addresses by their text.
        return [_answer(host, _with_zone(dialled), port) for _, _, _, _, dialled in infos]

    def _on_a_thread(self, host: str, port: int, family: int) -> asyncio.Future[list[AddressInfo]]:
        """Start a look-up. Its thread is given back when it ends, however long after the deadline that is."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[list[AddressInfo]] = loop.create_future()

        def end(infos: list[AddressInfo], error: Exception | None) -> None:
            self._free.release()
            if found.done():
                return
            if error is None:
                found.set_result(infos)
            else:
                found.set_exception(error)

        def work() -> None:
            infos: list[AddressInfo] = []
            failed: Exception | None = None
            try:
                infos = self._system(host, port, family)
            except Exception as error:
                failed = error
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
                loop.call_soon_threadsafe(end, infos, failed)

        try:
            threading.Thread(target=work, name="recrawl-names", daemon=True).start()
        except RuntimeError:  # the system gives out no more threads
            self._free.release()
            raise socket.gaierror(socket.EAI_AGAIN, "no thread is free to look up the name") from None
        return found

    async def close(self) -> None:
        """Nothing to do: threads still under way end by themselves."""


def _with_zone(dialled: tuple[object, ...]) -> str:
    return f"{dialled[0]}%{dialled[3]}" if len(dialled) == 4 and dialled[3] else str(dialled[0])


def _answer(host: str, ip: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ip_address(ip).version == 6 else socket.AF_INET
    return ResolveResult(hostname=host, host=ip, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)
