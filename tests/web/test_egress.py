"""The gate: which addresses may be dialled, however they are written, whoever asks."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address, ip_network

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from recrawl.errors import InvalidInput
from recrawl.web.fetch.egress import (
    EgressPolicy,
    EgressRefused,
    check_address,
    check_target,
    egress_policy,
    mapped_address,
    socket_factory,
)
from recrawl.web.fetch.resolver import GuardedResolver
from recrawl.web.refused import Refused
from recrawl.web.url.address import Address, read_address
from recrawl.web.url.networks import FORBIDDEN_NETWORKS, METADATA_ADDRESSES, embedded_ipv4

FORBIDDEN = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "169.254.170.2", "100.64.0.1", "100.100.100.200", "192.0.0.1", "192.0.0.192", "192.88.99.1",
    "198.18.0.1", "198.19.255.255", "192.0.2.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255",
    "240.0.0.1", "255.255.255.255", "168.63.129.16",
    "::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:8.8.8.8", "64:ff9b::7f00:1",
    "64:ff9b::8.8.8.8", "64:ff9b:1::1", "2002:7f00:1::", "2002:808:808::", "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2", "fc00::1", "fd00:ec2::254", "fe80::1",
    "fec0::1", "ff02::1", "3fff::1", "5f00::1", "100::1", "2001:db8::1",
    "::ffff:0:7f00:1", "::ffff:0:8.8.8.8", "100:0:0:1::1", "1::1", "1fff:ffff::1", "4000::1", "a000::1", "ffff::1",
    "169.254.170.23", "fd00:ec2::23", "fd20:ce::254",
]  # fmt: skip
PUBLIC = ["8.8.8.8", "1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001::1"]
LIVING = egress_policy(allow={"living": "127.0.0.1/32:8081"}, resolve={"*.living.test": "127.0.0.1"})


def _address(url: str) -> Address:
    address = read_address(url)
    assert isinstance(address, Address), address
    return address


@pytest.mark.parametrize("ip", FORBIDDEN)
@pytest.mark.parametrize("port", [80, 443])
def test_a_forbidden_address_is_refused_and_the_network_named(ip: str, port: int) -> None:
    refused = check_address(ip, port, EgressPolicy())
    assert isinstance(refused, Refused)
    assert refused.rule == "forbidden-network"
    assert "the network is " in refused.sentence


@pytest.mark.parametrize("ip", PUBLIC)
def test_a_public_address_is_allowed_on_the_ports_of_the_web_alone(ip: str) -> None:
    assert check_address(ip, 80, EgressPolicy()) is None
    assert check_address(ip_address(ip), 443, EgressPolicy()) is None
    for port in (0, 22, 25, 3306, 5432, 6379, 8080, 65536, -1):
        refused = check_address(ip, port, EgressPolicy())
        assert isinstance(refused, Refused)
        assert refused.rule == "port"


@pytest.mark.parametrize(("text", "_kind"), FORBIDDEN_NETWORKS + METADATA_ADDRESSES)
def test_every_listed_network_is_refused_from_its_first_to_its_last_address(text: str, _kind: str) -> None:
    network = ip_network(text)
    for ip in (network[0], network[-1]):
        assert isinstance(check_address(ip, 80, EgressPolicy()), Refused)


@pytest.mark.parametrize("text", ["fe80::1%eth0", "2606:4700::1111%1"])
def test_an_address_with_a_zone_is_refused(text: str) -> None:
    refused = check_address(text, 80, EgressPolicy())
    assert isinstance(refused, Refused)
    assert refused.rule == "zone-id"


@pytest.mark.parametrize(
    "text", ["127.1", "0x7f000001", "2130706433", "0177.0.0.1", "localhost", "", "1.2.3.4/8", "[::1]"]
)
def test_what_is_no_plain_address_is_refused(text: str) -> None:
    refused = check_address(text, 80, EgressPolicy())
    assert isinstance(refused, Refused)
    assert refused.rule == "not-an-address"


@pytest.mark.parametrize("ip", ["2001:1::9", "2001:100::1", "2001:1ff::1"])
def test_what_python_does_not_call_global_is_refused_as_a_second_check(ip: str) -> None:
    refused = check_address(ip, 80, EgressPolicy())
    assert isinstance(refused, Refused)
    assert refused.rule == "not-global"


@pytest.mark.parametrize(
    ("ip", "hidden"),
    [
        ("::ffff:10.1.2.3", ["10.1.2.3"]),
        ("::ffff:0:10.1.2.3", ["10.1.2.3"]),
        ("::10.1.2.3", ["10.1.2.3"]),
        ("64:ff9b::a01:203", ["10.1.2.3"]),
        ("64:ff9b:1::a01:203", ["10.1.2.3"]),
        ("64:ff9b:1:a01:2:300::", ["10.1.2.3", "1.2.3.0", "2.3.0.0"]),
        ("2002:a01:203::1", ["10.1.2.3"]),
        ("2001:0:808:808::f5fe:fdfc", ["8.8.8.8", "10.1.2.3"]),
        ("2606:4700::5efe:a01:203", ["10.1.2.3"]),
        ("2606:4700::1", []),
        ("10.1.2.3", []),
    ],
)
def test_ipv4_addresses_inside_ipv6_ones_are_found(ip: str, hidden: list[str]) -> None:
    assert [str(inner) for inner in embedded_ipv4(ip_address(ip))] == hidden


def test_a_tunnel_address_on_a_public_network_is_refused_for_what_it_carries() -> None:
    refused = check_address("2606:4700::5efe:a01:203", 80, EgressPolicy())
    assert isinstance(refused, Refused)
    assert "it carries 10.1.2.3" in refused.sentence


def test_a_named_network_opens_its_addresses_on_its_ports_alone() -> None:
    assert check_address("127.0.0.1", 8081, LIVING) is None
    assert isinstance(check_address("127.0.0.1", 80, LIVING), Refused)
    assert isinstance(check_address("127.0.0.2", 8081, LIVING), Refused)
    assert isinstance(check_address("8.8.8.8", 8081, LIVING), Refused)
    assert check_address("8.8.8.8", 443, LIVING) is None


def test_a_named_network_without_ports_opens_on_the_ports_of_the_policy() -> None:
    policy = egress_policy(allow={"wiki": "10.1.0.0/16"}, ports=[80, 8080])
    assert check_address("10.1.2.3", 8080, policy) is None
    assert isinstance(check_address("10.1.2.3", 443, policy), Refused)
    assert isinstance(check_address("10.2.0.1", 80, policy), Refused)


def test_ports_can_be_lists_and_ranges_and_ipv6_networks_stand_in_brackets() -> None:
    policy = egress_policy(allow={"lab": "[fd12:3::/48]:80,8000-8002", "other": "fd99::/64"})
    assert check_address("fd12:3::5", 8002, policy) is None
    assert isinstance(check_address("fd12:3::5", 8003, policy), Refused)
    assert check_address("fd99::1", 443, policy) is None


def test_a_wide_network_never_opens_the_metadata_of_a_cloud() -> None:
    wide = egress_policy(allow={"links": "169.254.0.0/16", "cgn": "100.64.0.0/10", "local": "fc00::/7"})
    for text, _ in METADATA_ADDRESSES:
        network = ip_network(text)
        assert isinstance(check_address(network[0], 80, wide), Refused)
        assert check_address(network[0], 80, egress_policy(allow={"metadata": text})) is None
    assert check_address("169.254.1.1", 80, wide) is None


def test_an_opened_translation_prefix_still_refuses_what_is_private_behind_it() -> None:
    policy = egress_policy(allow={"nat64": "64:ff9b::/96", "local": "64:ff9b:1::/48"})
    assert check_address("64:ff9b::8.8.8.8", 80, policy) is None
    assert check_address("64:ff9b:1::8.8.8.8", 80, policy) is None
    assert isinstance(check_address("64:ff9b::10.0.0.1", 80, policy), Refused)
    assert isinstance(check_address("64:ff9b:1::10.0.0.1", 80, policy), Refused)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"allow": {"x": "everything"}}, "write a network and its ports"),
        ({"allow": {"x": "0.0.0.0/0"}}, "most of the internet"),
        ({"allow": {"x": "::/0"}}, "most of the internet"),
        ({"allow": {"x": "10.0.0.1/8"}}, "write a network and its ports"),
        ({"allow": {"x": "10.0.0.0/8:http"}}, "write numbers from 1 to 65535"),
        ({"allow": {"x": "10.0.0.0/8:0"}}, "write numbers from 1 to 65535"),
        ({"allow": {"x": "10.0.0.0/8:90-80"}}, "write numbers from 1 to 65535"),
        ({"ports": [0]}, "a port is a number"),
        ({"ports": ["80"]}, "a port is a number"),
        ({"resolve": {"a.test": "localhost"}}, "must be an IP address"),
    ],
)
def test_a_setting_that_cannot_be_read_is_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        egress_policy(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://127.0.0.1/", "port"),
        ("http://127.0.0.2/", "forbidden-network"),
        ("http://[::1]/", "forbidden-network"),
        ("http://[::ffff:7f00:1]/", "forbidden-network"),
        ("http://169.254.169.254/latest/meta-data/", "forbidden-network"),
        ("http://example.com:22/", "port"),
        ("http://example.com:5432/", "port"),
        ("http://crawler.example.org/", "own-host"),
        ("http://api.crawler.example.org/", "own-host"),
        ("http://a.living.test/", "port"),
    ],
)
def test_a_hop_is_refused_before_any_name_is_looked_up(url: str, rule: str) -> None:
    policy = egress_policy(
        allow={"living": "127.0.0.1/32:8081"},
        own_hosts=["Crawler.example.org.", "*.crawler.example.org"],
        resolve={"*.living.test": "127.0.0.1"},
    )
    refused = check_target(_address(url), policy)
    assert isinstance(refused, Refused)
    assert refused.rule == rule


def test_a_hop_to_the_web_or_an_opened_network_passes_the_early_check() -> None:
    assert check_target(_address("https://example.com/"), LIVING) is None
    assert check_target(_address("http://site7.living.test:8081/"), LIVING) is None
    assert check_target(_address("http://example.com:8081/"), LIVING) is None


def test_names_of_the_settings_stand_for_their_address() -> None:
    assert mapped_address("a.living.test", LIVING) == "127.0.0.1"
    assert mapped_address("living.test", LIVING) is None
    assert mapped_address("evil-living.test", LIVING) is None


def test_the_socket_factory_decides_on_the_address_that_is_dialled() -> None:
    make = socket_factory(LIVING)
    tcp = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
    with make((*tcp, ("127.0.0.1", 8081))) as made:
        assert made.family == socket.AF_INET
    for dialled in (("127.0.0.1", 8082), ("10.0.0.1", 80)):
        with pytest.raises(EgressRefused) as caught:
            make((*tcp, dialled))
        assert isinstance(caught.value, OSError)
        assert caught.value.refused.rule in ("port", "forbidden-network")
        assert caught.value.refused.sentence in str(caught.value)


@pytest.mark.parametrize(
    "info",
    [
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 80, 0, 0)),
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2606:4700::1111", 80, 0, 3)),
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::ffff:127.0.0.1", 8081, 0, 0)),
        (socket.AF_UNIX, socket.SOCK_STREAM, 0, "", ("/run/docker.sock", 80)),
        (socket.AF_INET, socket.SOCK_DGRAM, 17, "", ("8.8.8.8", 80)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("example.com", 80)),
    ],
)
def test_the_socket_factory_makes_no_socket_for_anything_else(
    info: tuple[int, int, int, str, tuple[object, ...]],
) -> None:
    with pytest.raises(EgressRefused):
        socket_factory(LIVING)(info)


class FlippingNames(AbstractResolver):
    """A name server under the test's control: the n-th question for a name gets its n-th answer."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002 - aiohttp's name
    ) -> list[ResolveResult]:
        self.asked.append(host)
        turns = self.answers[host.split(".", maxsplit=1)[0]]
        ips = turns.pop(0) if len(turns) > 1 else turns[0]
        kinds = {4: socket.AF_INET, 6: socket.AF_INET6}
        return [
            ResolveResult(hostname=host, host=ip, port=port, family=kinds[ip_address(ip).version], proto=6, flags=0)
            for ip in ips
        ]

    async def close(self) -> None:
        """Nothing is open."""


class Connections:
    """A server on loopback that counts who comes and answers all the same."""

    def __init__(self) -> None:
        self.count = 0
        self.port = 0

    async def __aenter__(self) -> Connections:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.count += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()


async def _status(url: str, policy: EgressPolicy, resolver: AbstractResolver) -> int:
    connector = aiohttp.TCPConnector(
        resolver=resolver, socket_factory=socket_factory(policy), use_dns_cache=False, force_close=True
    )
    async with aiohttp.ClientSession(connector=connector, trust_env=False) as session, session.get(url) as response:
        return response.status


async def _refusal(url: str, policy: EgressPolicy, resolver: AbstractResolver) -> str:
    with pytest.raises(aiohttp.ClientConnectorError) as caught:
        await _status(url, policy, resolver)
    return str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::ffff:127.0.0.1]", "name.example"])
def test_no_connection_reaches_loopback_by_literal_or_by_name(host: str) -> None:
    async def scenario() -> None:
        async with Connections() as server:
            policy = egress_policy(ports=[80, 443, server.port])
            names = FlippingNames(name=[["127.0.0.1"]])
            message = await _refusal(f"http://{host}:{server.port}/", policy, names)
            assert "forbidden-network" in message
            assert server.count == 0

    asyncio.run(scenario())


def test_an_opened_network_is_reached_through_the_names_of_the_settings() -> None:
    async def scenario() -> None:
        async with Connections() as server:
            policy = egress_policy(
                allow={"living": f"127.0.0.1/32:{server.port}"}, resolve={"*.living.test": "127.0.0.1"}
            )
            names = FlippingNames()
            url = f"http://site.living.test:{server.port}/"
            assert await _status(url, policy, GuardedResolver(policy, names)) == 200
            assert server.count == 1
            assert names.asked == []

    asyncio.run(scenario())


def test_a_name_that_turns_private_between_check_and_connect_is_refused_when_dialled() -> None:
    """DNS rebinding: the first answer is public, the second is loopback; the second is the one that counts."""

    async def scenario() -> None:
        async with Connections() as server:
            policy = egress_policy(ports=[80, 443, server.port])
            names = FlippingNames(rebind=[["93.184.216.34"], ["127.0.0.1"]])
            checked = await names.resolve("rebind.example", server.port)
            assert check_address(checked[0]["host"], server.port, policy) is None
            message = await _refusal(f"http://rebind.example:{server.port}/", policy, names)
            assert "forbidden-network" in message
            assert server.count == 0

    asyncio.run(scenario())


def test_of_mixed_answers_only_allowed_ones_are_left_and_at_most_sixteen() -> None:
    async def scenario() -> None:
        names = FlippingNames(
            mixed=[["127.0.0.1", "93.184.216.34", "::1", "2606:4700::1"]],
            bad=[["10.0.0.1", "::1"]],
            many=[[f"8.8.{number // 250}.{number % 250 + 1}" for number in range(1000)]],
        )
        resolver = GuardedResolver(EgressPolicy(), names)
        mixed = await resolver.resolve("mixed.example", 443)
        assert [answer["host"] for answer in mixed] == ["93.184.216.34", "2606:4700::1"]
        with pytest.raises(EgressRefused, match=r"'bad.example' at '10.0.0.1 port 443' is refused"):
            await resolver.resolve("bad.example", 443)
        assert len(await resolver.resolve("many.example", 443)) == 16
        await resolver.close()

    asyncio.run(scenario())
