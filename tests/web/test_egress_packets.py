"""No packet to a forbidden address: no socket is even made, whether it is written, looked up or redirected to."""

from __future__ import annotations

import socket
from ipaddress import ip_address

import pytest
from hostile_ground import PATIENT, AllAllowed, address, fetch, guarded, settings_for
from socket_watch import sockets_made

from recrawl.lab.livingweb.hostile import HostileWeb, ScriptedNames, answers, page, redirects
from recrawl.web.fetch.egress import egress_policy
from recrawl.web.fetch.protocol import FetchJob, FetchResult
from recrawl.web.fetch.settings import FetchSettings, user_agent
from recrawl.web.fetch.transport import Transport
from recrawl.web.url.address import Address, read_address

AGENT = user_agent("https://example.org/bot")
FORBIDDEN = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "169.254.170.2", "100.64.0.1", "100.100.100.200", "192.0.0.192", "192.88.99.1", "198.18.0.1",
    "192.0.2.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "168.63.129.16",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1",
    "2002:7f00:1::", "2001::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "3fff::1", "5f00::1",
    "100::1", "2001:db8::1",
]  # fmt: skip
REDIRECTS = [301, 302, 303, 307, 308]


def _url(ip: str, port: int = 80) -> str:
    return f"http://[{ip}]:{port}/" if ":" in ip else f"http://{ip}:{port}/"


async def _fetched(urls: list[str], names: ScriptedNames) -> list[FetchResult]:
    async with Transport(FetchSettings(AGENT, PATIENT), resolver=names) as transport:
        return [await fetch(transport, url) for url in urls]


def _are_refused(results: list[FetchResult]) -> bool:
    return all(
        (result.outcome, result.fault, result.requests) == ("refused", "refused", 0)
        and "refused by the rule forbidden-network" in result.reason
        for result in results
    )


@pytest.mark.parametrize("channel", ["page", "robots", "sitemap", "feed"])
def test_a_forbidden_address_that_is_written_makes_no_socket(channel: str) -> None:
    async def main() -> list[FetchResult]:
        async with Transport(FetchSettings(AGENT, PATIENT), resolver=ScriptedNames()) as transport:
            jobs = [FetchJob(address(_url(ip)), channel=channel) for ip in FORBIDDEN]  # type: ignore[arg-type]
            return [await transport.fetch(job) for job in jobs]

    with sockets_made() as made:
        results = guarded(main())
    assert _are_refused(results)
    assert [ip_address(result.address.host) for result in results] == [ip_address(ip) for ip in FORBIDDEN]
    assert made == []


@pytest.mark.parametrize("mixed", [False, True])
def test_a_forbidden_address_that_is_looked_up_makes_no_socket(mixed: bool) -> None:
    names = ScriptedNames()
    for number, ip in enumerate(FORBIDDEN):
        others = ["::1", "10.0.0.1"] if mixed else []
        names.on(f"n{number}.example", [ip, *others])
    with sockets_made() as made:
        results = guarded(_fetched([f"http://n{number}.example/" for number in range(len(FORBIDDEN))], names))
    assert [result.outcome for result in results] == ["refused"] * len(FORBIDDEN)
    assert all("forbidden-network" in result.reason for result in results)
    assert len(names.log) == len(FORBIDDEN)
    assert made == []


def test_the_watch_sees_the_socket_of_a_connection_that_is_allowed() -> None:
    async def main() -> FetchResult:
        async with HostileWeb() as web:
            with sockets_made() as made:
                async with Transport(settings_for(web), keeper=AllAllowed()) as transport:
                    result = await fetch(transport, web.url("/"))
                assert socket.AF_INET in made
            return result

    assert guarded(main()).outcome == "missing"


@pytest.mark.parametrize("status", REDIRECTS)
@pytest.mark.parametrize("by_name", [False, True])
def test_a_redirect_to_a_forbidden_address_makes_no_socket(status: int, by_name: bool) -> None:
    """On the first hop and on the second."""

    async def main() -> tuple[list[FetchResult], list[FetchResult], list[int]]:
        async with HostileWeb() as web:
            names = ScriptedNames()
            for number, ip in enumerate(FORBIDDEN):
                names.on(f"n{number}.example", [ip])
                target = f"http://n{number}.example/secret" if by_name else _url(ip) + "secret"
                web.on(f"/{number}", redirects(status, target))
                web.on(f"/far/{number}", redirects(status, f"/{number}"))
            async with Transport(settings_for(web), resolver=names) as transport:
                await fetch(transport, web.url("/warm-up"))
                with sockets_made() as made:
                    one = [await fetch(transport, web.url(f"/{number}")) for number in range(len(FORBIDDEN))]
                    two = [await fetch(transport, web.url(f"/far/{number}")) for number in range(len(FORBIDDEN))]
                return one, two, list(made)

    one, two, made = guarded(main())
    assert [(result.outcome, result.requests, len(result.hops)) for result in one] == [("refused", 1, 1)] * len(one)
    assert [(result.outcome, result.requests, len(result.hops)) for result in two] == [("refused", 2, 2)] * len(two)
    assert made == []


@pytest.mark.parametrize("status", REDIRECTS)
@pytest.mark.parametrize(
    "location",
    ["file:///etc/passwd", "data:text/html,x", "ftp://example.com/", "gopher://example.com/", "javascript:x"],
)
def test_a_redirect_to_another_scheme_goes_nowhere(status: int, location: str) -> None:
    async def main() -> FetchResult:
        async with HostileWeb() as web:
            web.on("/", redirects(status, location))
            async with Transport(settings_for(web), keeper=AllAllowed()) as transport:
                return await fetch(transport, web.url("/"))

    result = guarded(main())
    assert (result.outcome, result.fault, result.requests) == ("refused", "refused", 1)
    assert "rule scheme" in result.reason


@pytest.mark.parametrize(
    "location",
    ["/a%0d%0aX-Evil:%20yes", "/a%0AHost:%20evil.example", "/a\u2028X-Evil: yes", "/a?b=%0d%0a%0d%0aGET%20/x"],
)
def test_a_redirect_cannot_put_a_line_into_the_next_request(location: str) -> None:
    async def main() -> HostileWeb:
        async with HostileWeb() as web:
            web.on("/", redirects(302, location))
            async with Transport(settings_for(web), keeper=AllAllowed()) as transport:
                await fetch(transport, web.url("/"))
            return web

    asked = guarded(main()).log
    assert len(asked) == 2
    assert not {"x-evil"} & set(asked[1].headers)
    assert asked[1].headers["host"] == asked[0].headers["host"]
    assert asked[1].raw.count(b"\r\n\r\n") == 1
    assert set(asked[1].headers) == set(asked[0].headers)


def test_a_name_that_turns_private_while_its_connection_is_kept_is_refused_at_the_next_dial() -> None:
    async def main() -> tuple[list[FetchResult], HostileWeb]:
        async with HostileWeb() as web, HostileWeb(ip="127.0.0.2", port=web.port) as shut:
            names = ScriptedNames()
            names.on("flip.example", ["127.0.0.1"], ["127.0.0.2"])
            web.on("/keep", answers(page(b"open")))
            web.on("/close", answers(page(b"open", [("Connection", "close")])))
            results = []
            async with Transport(settings_for(web), keeper=AllAllowed(), resolver=names) as transport:
                # A kept connection leads where it was checked to lead; the next one is checked again.
                results += [
                    await fetch(transport, web.url(path, "flip.example")) for path in ("/keep", "/keep", "/close")
                ]
                transport.pool.connector.clear_dns_cache()  # as after its minute
                results.append(await fetch(transport, web.url("/keep", "flip.example")))
            return results, shut

    results, shut = guarded(main())
    assert [result.outcome for result in results] == ["ok", "ok", "ok", "refused"]
    assert shut.connections == 0


@pytest.mark.parametrize("port", [0, 22, 25, 3306, 5432, 6379, 8080, 9200, 11211, 27017])
def test_ports_of_other_services_and_of_the_crawler_itself_are_refused(port: int) -> None:
    policy = egress_policy(own_hosts=["crawler.example", "*.crawler.example"])
    names = ScriptedNames()

    async def main() -> list[FetchResult]:
        async with Transport(FetchSettings(AGENT, PATIENT, policy), resolver=names) as transport:
            urls = [f"http://93.184.216.34:{port}/", f"http://public.example:{port}/", "http://api.crawler.example/"]
            readable = [read for read in map(read_address, urls) if isinstance(read, Address)]
            assert len(readable) == (1 if port == 0 else 3)
            return [await transport.fetch(FetchJob(each)) for each in readable]

    with sockets_made() as made:
        results = guarded(main())
    assert {result.outcome for result in results} == {"refused"}
    assert (names.log, made) == ([], [])
