"""The edge: how many connections stay open, and the name look-ups of the system."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable

import pytest
from hostile_ground import PATIENT, AllAllowed, fetch, guarded, settings_for

from patience import PATIENCE_S
from recrawl.errors import InvalidInput
from recrawl.lab.livingweb.hostile import HostileWeb, ScriptedNames, Visit, answers, page
from recrawl.web.fetch.egress import AddressInfo, EgressPolicy, EgressRefused
from recrawl.web.fetch.faults import fault_of
from recrawl.web.fetch.protocol import FetchResult
from recrawl.web.fetch.resolver import GuardedResolver, SystemNames
from recrawl.web.fetch.settings import FetchSettings, user_agent
from recrawl.web.fetch.transport import Transport

AGENT = user_agent("https://example.org/bot")


def test_no_more_connections_stay_open_than_the_bound_however_many_hosts_are_asked() -> None:
    async def main() -> tuple[int, int, list[FetchResult]]:
        async with HostileWeb() as web:
            here = {"now": 0, "most": 0}

            async def script(visit: Visit) -> None:
                here["now"] += 1
                here["most"] = max(here["most"], here["now"])
                await visit.send(page(b"x"))
                try:
                    await visit.until_gone()
                finally:
                    here["now"] -= 1

            web.on("/", script)
            async with Transport(settings_for(web), keeper=AllAllowed(), most_fetches=4) as transport:
                results = [await fetch(transport, web.url("/", f"host{number}.hostile.test")) for number in range(60)]
            return web.connections, here["most"], results

    connections, most, results = guarded(main())
    assert {result.body for result in results} == {b"x"}
    assert connections == 60
    assert most <= 4 + 4 + 2  # in use, kept, and those whose end the server has not seen yet


def test_a_kept_connection_is_used_again() -> None:
    async def main() -> HostileWeb:
        async with HostileWeb() as web:
            web.on("/", answers(page(b"x")))
            async with Transport(settings_for(web), keeper=AllAllowed(), most_fetches=1) as transport:
                for _ in range(5):
                    await fetch(transport, web.url("/"))
            return web

    assert guarded(main()).connections == 1


def test_a_process_without_files_to_open_says_so() -> None:
    fault = fault_of(OSError(24, "Too many open files"))
    assert "open no more files" in fault.detail


def _found(ip: str) -> list[AddressInfo]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 80))]


class Slow:
    """Look-ups that wait until they are let go, and how many wait at once."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.lock = threading.Lock()
        self.now = self.most = 0

    def __call__(self, host: str, _port: int, _family: int) -> list[AddressInfo]:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        if host.startswith("slow"):
            assert self.go.wait(30.0)
        with self.lock:
            self.now -= 1
        return _found("93.184.216.34")


def test_look_ups_run_at_once_up_to_their_bound_and_not_on_the_threads_of_the_loop() -> None:
    slow = Slow()

    async def main() -> tuple[list[str], str]:
        names = SystemNames(most_at_once=8, deadline_s=PATIENCE_S, look_up=slow)
        asked = [asyncio.create_task(names.resolve(f"slow{number}.example", 80)) for number in range(20)]
        while slow.now < 8:
            await asyncio.sleep(0.001)
        # The loop's own threads are free: what is given to them comes back at once.
        threads = await asyncio.get_running_loop().run_in_executor(None, lambda: threading.current_thread().name)
        slow.go.set()
        return [(await task)[0]["host"] for task in asked], threads

    hosts, thread = guarded(main())
    assert hosts == ["93.184.216.34"] * 20
    assert slow.most == 8
    assert "recrawl" not in thread


def test_a_name_service_that_never_answers_is_given_up_and_its_threads_come_back() -> None:
    slow = Slow()

    async def main() -> tuple[list[BaseException], str]:
        names = SystemNames(most_at_once=2, deadline_s=0.05, look_up=slow)
        stuck = await asyncio.gather(*(names.resolve(f"slow{n}.example", 80) for n in range(5)), return_exceptions=True)
        slow.go.set()
        while slow.now:
            await asyncio.sleep(0.001)
        names._deadline_s = PATIENCE_S
        found = await names.resolve("fast.example", 80)
        return [error for error in stuck if isinstance(error, BaseException)], found[0]["host"]

    errors, host = guarded(main())
    assert [fault_of(error).kind for error in errors] == ["dns-failed"] * 5
    assert slow.most == 2
    assert host == "93.184.216.34"


def _missing(_host: str, _port: int, _family: int) -> list[AddressInfo]:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def _none(_host: str, _port: int, _family: int) -> list[AddressInfo]:
    return []


def _zoned(_host: str, _port: int, _family: int) -> list[AddressInfo]:
    return [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fe80::1", 80, 0, 3))]


@pytest.mark.parametrize(("look_up", "kind"), [(_missing, "dns-missing"), (_none, "dns-missing"), (_zoned, "refused")])
def test_what_the_system_finds_is_an_address_or_a_fault(
    look_up: Callable[[str, int, int], list[AddressInfo]], kind: str
) -> None:
    async def main() -> None:
        await GuardedResolver(EgressPolicy(), SystemNames(look_up=look_up)).resolve("some.example", 80)

    with pytest.raises((socket.gaierror, EgressRefused)) as caught:
        guarded(main())
    assert fault_of(caught.value).kind == kind


def test_a_name_without_addresses_is_missing_to_a_fetch_too_and_to_every_later_one() -> None:
    async def main() -> list[FetchResult]:
        names = ScriptedNames()
        names.on("some.example", "empty")
        async with Transport(FetchSettings(AGENT, PATIENT), keeper=AllAllowed(), resolver=names) as transport:
            return [await fetch(transport, "http://some.example/") for _ in range(3)]

    assert [(result.outcome, result.fault) for result in guarded(main())] == [("network-error", "dns-missing")] * 3


def test_the_system_itself_is_asked() -> None:
    async def main() -> list[str]:
        return [answer["host"] for answer in await SystemNames().resolve("localhost", 80, socket.AF_INET)]

    assert guarded(main()) == ["127.0.0.1"]


def test_bounds_of_look_ups_must_make_sense() -> None:
    with pytest.raises(InvalidInput, match="most_at_once is 0"):
        SystemNames(most_at_once=0)
    with pytest.raises(InvalidInput, match="deadline_s is 0"):
        SystemNames(deadline_s=0.0)
