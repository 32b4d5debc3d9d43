"""The edge: who is dialled, and what happens when a name or a port does not answer."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from hostile_ground import HASTY, PATIENT, AllAllowed, fetch, guarded, settings_for

from recrawl.lab.livingweb.hostile import HostileWeb, NameAnswer, ScriptedNames, answers, page, redirects
from recrawl.outcomes import settles_as
from recrawl.web.fetch.egress import egress_policy
from recrawl.web.fetch.protocol import FetchResult
from recrawl.web.fetch.settings import FetchSettings, user_agent
from recrawl.web.fetch.transport import Transport

AGENT = user_agent("https://example.org/bot")


def test_loopback_is_shut_unless_it_is_opened_by_name() -> None:
    async def main() -> tuple[list[FetchResult], HostileWeb]:
        async with HostileWeb() as web:
            names = ScriptedNames()
            names.on("evil.example", ["127.0.0.1"])
            names.on("mixed.example", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.1"])
            settings = FetchSettings(AGENT, PATIENT, egress_policy(ports=[80, 443, web.port]))
            urls = [f"http://{host}:{web.port}/" for host in ("127.0.0.1", "[::1]", "evil.example", "mixed.example")]
            async with Transport(settings, keeper=AllAllowed(), resolver=names) as transport:
                return [await fetch(transport, url) for url in urls], web

    results, web = guarded(main())
    assert [result.outcome for result in results] == ["refused"] * 4
    assert all("loopback" in result.reason for result in results)
    assert web.connections == 0


def test_of_several_addresses_only_the_allowed_one_is_dialled() -> None:
    async def main() -> tuple[FetchResult, HostileWeb]:
        async with HostileWeb() as web, HostileWeb(ip="127.0.0.2", port=web.port) as shut:
            web.on("/", answers(page(b"open")))
            names = ScriptedNames()
            names.on("both.example", ["127.0.0.2", "127.0.0.1"])
            async with Transport(settings_for(web), keeper=AllAllowed(), resolver=names) as transport:
                return await fetch(transport, web.url("/", "both.example")), shut

    result, shut = guarded(main())
    assert (result.body, shut.connections) == (b"open", 0)


def test_a_name_that_flips_to_a_shut_address_is_refused_when_it_is_dialled() -> None:
    async def main() -> tuple[list[FetchResult], HostileWeb, list[str]]:
        async with HostileWeb() as web, HostileWeb(ip="127.0.0.2", port=web.port) as shut:
            web.on("/", answers(page(b"open", [("Connection", "close")])))
            names = ScriptedNames()
            names.on("flip.example", ["127.0.0.1"], ["127.0.0.2"])
            results = []
            for _ in range(2):  # a new transport each time: nothing is remembered
                async with Transport(settings_for(web), keeper=AllAllowed(), resolver=names) as transport:
                    results += [await fetch(transport, web.url("/", "flip.example")) for _ in range(2)]
            return results, shut, names.log

    results, shut, looked_up = guarded(main())
    assert [result.outcome for result in results] == ["ok", "ok", "refused", "refused"]
    assert "127.0.0.2" in results[2].reason
    assert shut.connections == 0
    assert len(looked_up) >= 2


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_and_no_robots_txt_leads_past_the_gate(status: int) -> None:
    async def main() -> tuple[FetchResult, FetchResult, HostileWeb]:
        async with HostileWeb() as web, HostileWeb(ip="127.0.0.2", port=web.port) as shut:
            names = ScriptedNames()
            names.on("inner.example", ["127.0.0.2"])
            web.on("/literal", redirects(status, f"http://127.0.0.2:{shut.port}/secret"))
            web.on("/name", redirects(status, f"http://inner.example:{shut.port}/secret"))
            async with Transport(settings_for(web), resolver=names) as transport:
                literal, name = [await fetch(transport, web.url(path)) for path in ("/literal", "/name")]
            return literal, name, shut

    literal, name, shut = guarded(main())
    assert (literal.outcome, literal.fault) == ("refused", "refused")
    # The robots.txt of the inner host is asked first, and it is the gate that answers.
    assert (name.outcome, name.fault) == ("refused", "refused")
    assert "refused by the rule" in name.reason
    assert shut.connections == 0


@pytest.mark.parametrize(
    ("answer", "fault"),
    [("missing", "dns-missing"), ("failed", "dns-failed"), ("looped", "dns-failed"), ("silent", "connect-timeout")],
)
def test_a_name_that_cannot_be_looked_up_has_its_fault(answer: NameAnswer, fault: str) -> None:
    async def main() -> FetchResult:
        names = ScriptedNames()
        names.on("some.example", answer)
        settings = FetchSettings(AGENT, HASTY)
        async with Transport(settings, keeper=AllAllowed(), resolver=names) as transport:
            return await fetch(transport, "http://some.example/")

    result = guarded(main())
    assert result.outcome == "network-error"
    assert result.fault in (fault, "timeout" if answer == "silent" else fault)


def test_a_host_that_is_away_is_asked_once_and_all_its_pages_fail_alike() -> None:
    async def main() -> tuple[list[FetchResult], list[str]]:
        names = ScriptedNames()
        async with Transport(FetchSettings(AGENT, PATIENT), resolver=names) as transport:
            return [await fetch(transport, f"http://gone.example/{n}") for n in range(3)], names.log

    results, looked_up = guarded(main())
    assert [(result.outcome, result.fault) for result in results] == [("network-error", "dns-missing")] * 3
    assert len(looked_up) == 1


def test_a_name_without_addresses_is_a_fault() -> None:
    async def main() -> FetchResult:
        names = ScriptedNames()
        names.on("some.example", "empty")
        async with Transport(FetchSettings(AGENT, PATIENT), keeper=AllAllowed(), resolver=names) as transport:
            return await fetch(transport, "http://some.example/")

    assert guarded(main()).outcome == "network-error"


def test_a_thousand_addresses_are_not_all_tried() -> None:
    async def main() -> FetchResult:
        async with HostileWeb() as web:
            names = ScriptedNames()
            names.on("many.example", ["127.0.0.2"] * 1000 + ["127.0.0.1"])
            async with Transport(settings_for(web), keeper=AllAllowed(), resolver=names) as transport:
                return await fetch(transport, web.url("/", "many.example"))

    assert guarded(main()).outcome == "refused"


def test_a_closed_port_is_refused_by_the_other_side() -> None:
    async def main() -> FetchResult:
        async with HostileWeb() as web:
            settings, url = settings_for(web), web.url("/")
        async with Transport(settings, keeper=AllAllowed()) as transport:
            return await fetch(transport, url)

    result = guarded(main())
    assert (result.outcome, result.fault) == ("network-error", "connect-refused")


@pytest.fixture
def black_hole() -> Iterator[int]:
    """A port whose queue is full: connections are neither taken nor turned away."""
    with closing(socket.create_server(("127.0.0.1", 0), backlog=0)) as full:
        port: int = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        yield port
        for each in waiting:
            each.close()


def test_a_connection_that_never_stands_fails_within_its_limit(black_hole: int) -> None:
    async def main() -> FetchResult:
        settings = FetchSettings(
            AGENT, replace(PATIENT, connect_s=0.1), egress_policy(allow={"hole": f"127.0.0.1/32:{black_hole}"})
        )
        async with Transport(settings, keeper=AllAllowed()) as transport:
            return await fetch(transport, f"http://127.0.0.1:{black_hole}/")

    result = guarded(main())
    assert (result.outcome, result.fault) == ("network-error", "connect-timeout")
    assert settles_as(result.outcome) == "failed"  # and not "unchanged"
    assert result.elapsed_s < PATIENT.total_s
