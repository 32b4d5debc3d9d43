"""Webhooks: what goes over the wire, what comes back as a value, and which targets never see a connection."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from hostile_ground import address, guarded

from recrawl._event_loop import run
from recrawl.errors import InvalidInput, RecrawlError
from recrawl.lab.livingweb.hostile import (
    HostileWeb,
    Script,
    ScriptedNames,
    answers,
    drips,
    gzip_bomb,
    head,
    never_ends,
    page,
    redirects,
    sends_and_hangs_up,
    sends_and_resets,
    sends_and_stalls,
)
from recrawl.web.fetch.egress import EgressPolicy, egress_policy
from recrawl.web.fetch.protocol import Fault
from recrawl.web.fetch.settings import user_agent
from recrawl.web.push.delivery import WebhookAnswer, WebhookLimits, WebhookTransport

TLS = Path(__file__).parent.parent / "livingweb" / "tls"
AGENT = user_agent("https://example.org/bot", version="1.0")
PLAIN = WebhookLimits(https_only=False)
HASTY = replace(PLAIN, total_s=0.2, connect_s=0.2)
NOW = 784_111_777.0  # 6 November 1994, 08:49:37 UTC


def _open_for(*webs: HostileWeb) -> EgressPolicy:
    ports = ",".join(str(web.port) for web in webs)
    return egress_policy(allow={"hostile": f"127.0.0.1/32:{ports}"}, resolve={"*.hostile.test": "127.0.0.1"})


async def _posted(script: Script, limits: WebhookLimits = PLAIN) -> tuple[WebhookAnswer | Fault, HostileWeb]:
    async with HostileWeb() as web:
        web.on("/hook", script)
        async with WebhookTransport(AGENT, _open_for(web), limits, wall=lambda: NOW) as webhooks:
            return await webhooks.post(address(web.url("/hook")), b'{"a": 1}', {"webhook-id": "7"}), web


def test_a_post_carries_its_bytes_and_headers_and_nothing_of_its_own_but_the_honest_name() -> None:
    async def main() -> tuple[bytes, WebhookAnswer | Fault]:
        came = bytearray()
        done = asyncio.Event()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            came.extend(await reader.readuntil(b"\r\n\r\n"))
            came.extend(await reader.readexactly(8))
            writer.write(head(204))
            writer.close()
            done.set()

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        policy = egress_policy(allow={"hostile": f"127.0.0.1/32:{port}"})
        async with server, WebhookTransport(AGENT, policy, PLAIN) as webhooks:
            answer = await webhooks.post(
                address(f"http://127.0.0.1:{port}/hook?x=%2F"), b'{"a": 1}', {"Webhook-Signature": "v1,abc="}
            )
            await done.wait()
        return bytes(came), answer

    came, answer = guarded(main())
    first, *lines = came.split(b"\r\n\r\n")[0].decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    assert first == "POST /hook?x=%2F HTTP/1.1"
    assert headers.pop("host").startswith("127.0.0.1:")
    assert headers == {
        "user-agent": AGENT.header,
        "content-type": "application/json",
        "content-length": "8",
        "accept-encoding": "identity",
        "webhook-signature": "v1,abc=",
        "connection": "close",
    }
    assert came.endswith(b'\r\n\r\n{"a": 1}')
    assert answer == WebhookAnswer(204)


@pytest.mark.parametrize(
    ("script", "answer"),
    [
        (answers(page(b"thanks")), WebhookAnswer(200)),
        (answers(page(b"", status=410)), WebhookAnswer(410)),
        (answers(page(b"", [("Retry-After", "120")], 429)), WebhookAnswer(429, 120.0)),
        (answers(page(b"", [("Retry-After", "Sun, 06 Nov 1994 08:50:37 GMT")], 503)), WebhookAnswer(503, 60.0)),
        (answers(page(b"", [("Retry-After", "9" * 5000)], 503)), WebhookAnswer(503, 86_400.0)),
        (answers(page(b"", [("Retry-After", "soon")], 503)), WebhookAnswer(503)),
        # The status has come; whatever follows is not waited for.
        (sends_and_stalls(head(200, [("Content-Length", "100")])), WebhookAnswer(200)),
        (drips(b"x", first=head(200)), WebhookAnswer(200)),
        (never_ends(head(200), b"x" * 65_536), WebhookAnswer(200)),
        (answers(page(gzip_bomb(16), [("Content-Encoding", "gzip")])), WebhookAnswer(200)),
    ],
)
def test_the_status_of_the_target_is_the_answer(script: Script, answer: WebhookAnswer) -> None:
    came, web = guarded(_posted(script))
    assert came == answer
    assert answer.is_accepted is (answer.status == 200)
    assert len(web.log) == 1


@pytest.mark.parametrize(
    ("script", "kind", "limits"),
    [
        (sends_and_stalls(b""), "timeout", HASTY),
        (drips(b"X-A: b\r\n", first=b"HTTP/1.1 200 OK\r\n"), "timeout", HASTY),
        (sends_and_hangs_up(b""), "closed", PLAIN),
        (sends_and_resets(b""), "reset", PLAIN),
        (sends_and_hangs_up(b"SSH-2.0-OpenSSH_9\r\n"), "protocol", PLAIN),
        (never_ends(b"HTTP/1.1 200 OK\r\n", b"H: v\r\n" * 1000), "headers", PLAIN),
        (never_ends(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 2000), "protocol", PLAIN),
        (answers(page(b"", status=999)), "protocol", PLAIN),
    ],
)
def test_a_target_that_does_not_answer_is_a_fault_and_is_asked_once(
    script: Script, kind: str, limits: WebhookLimits
) -> None:
    came, web = guarded(_posted(script, limits))
    assert isinstance(came, Fault)
    assert came.kind == kind
    assert came.detail.isprintable()
    assert len(web.log) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status: int) -> None:
    async def main() -> tuple[WebhookAnswer | Fault, HostileWeb]:
        async with HostileWeb() as web, HostileWeb() as other:
            web.on("/hook", redirects(status, other.url("/secret")))
            async with WebhookTransport(AGENT, _open_for(web, other), PLAIN) as webhooks:
                return await webhooks.post(address(web.url("/hook")), b"{}"), other

    came, other = guarded(main())
    assert came == WebhookAnswer(status)
    assert other.connections == 0


FORBIDDEN = [
    "http://127.0.0.1:{port}/", "http://[::1]:{port}/", "http://[::ffff:7f00:1]:{port}/", "http://name.example:{port}/",
    "http://flip.example:{port}/", "http://mixed.example:{port}/", "http://api.crawler.example:{port}/",
    "http://169.254.169.254/latest/meta-data/", "http://10.0.0.1/", "https://192.168.0.1/", "http://93.184.216.34:22/",
]  # fmt: skip


@pytest.mark.parametrize("url", FORBIDDEN)
def test_a_forbidden_target_is_refused_and_sees_no_connection(url: str) -> None:
    async def main() -> tuple[list[WebhookAnswer | Fault], HostileWeb]:
        async with HostileWeb() as web:
            names = ScriptedNames()
            names.on("name.example", ["127.0.0.1"])
            names.on("flip.example", ["127.0.0.1"])
            names.on("mixed.example", ["127.0.0.1", "::1", "10.0.0.1"])
            policy = egress_policy(ports=[80, 443, web.port], own_hosts=["*.crawler.example"])
            async with WebhookTransport(AGENT, policy, PLAIN, resolver=names) as webhooks:
                target = address(url.format(port=web.port))
                return [await webhooks.post(target, b"{}") for _ in range(2)], web

    came, web = guarded(main())
    for fault in came:
        assert isinstance(fault, Fault)
        assert fault.kind == "refused"
        assert "refused by the rule" in fault.detail
    assert web.connections == 0


def test_plain_http_is_refused_unless_it_is_allowed() -> None:
    came, web = guarded(_posted(answers(page(b"")), WebhookLimits()))
    assert isinstance(came, Fault)
    assert (came.kind, web.connections) == ("refused", 0)
    assert "plain-http" in came.detail


@pytest.mark.parametrize(
    ("certificate", "accepted"), [("good", True), ("expired", False), ("other_host", False), ("self_signed", False)]
)
def test_certificates_are_checked(certificate: str, accepted: bool) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / f"{certificate}.pem")

    async def main() -> tuple[WebhookAnswer | Fault, int]:
        async with HostileWeb(tls=context) as web:
            web.on("/hook", answers(page(b"")))
            trusted = ssl.create_default_context(cafile=TLS / "authority.pem")
            async with WebhookTransport(AGENT, _open_for(web), tls=trusted) as webhooks:
                return await webhooks.post(address(web.url("/hook")), b"{}"), len(web.log)

    came, requests = guarded(main())
    assert came == WebhookAnswer(200) if accepted else isinstance(came, Fault) and came.kind == "tls"
    assert requests == accepted


def test_a_target_that_stalls_does_not_keep_its_slot() -> None:
    async def main() -> tuple[list[WebhookAnswer | Fault], WebhookAnswer | Fault]:
        async with HostileWeb() as web:
            web.on("/stall", sends_and_stalls(b""))
            web.on("/fine", answers(page(b"")))
            async with WebhookTransport(AGENT, _open_for(web), replace(HASTY, most_at_once=2)) as webhooks:
                stalled = await asyncio.gather(*(webhooks.post(address(web.url("/stall")), b"{}") for _ in range(4)))
            async with WebhookTransport(AGENT, _open_for(web), replace(PLAIN, most_at_once=1)) as webhooks:
                return stalled, await webhooks.post(address(web.url("/fine")), b"{}")

    stalled, fine = guarded(main())
    assert [isinstance(fault, Fault) and fault.kind for fault in stalled] == ["timeout"] * 4
    assert fine == WebhookAnswer(200)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-A", "s3cret\r\nHost: evil"),
        ("X-A", "s3cret\x00"),
        ("X\r\nA", "s3cret"),
        ("Host", "s3cret"),
        ("Content-Length", "s3cret"),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused_without_showing_its_value(name: str, value: str) -> None:
    async def main() -> None:
        async with WebhookTransport(AGENT, EgressPolicy()) as webhooks:
            await webhooks.post(address("https://example.com/"), b"{}", {name: value})

    with pytest.raises(InvalidInput) as caught:
        guarded(main())
    assert "s3cret" not in str(caught.value)


def test_bounds_out_of_reason_and_a_transport_that_is_not_open_are_told() -> None:
    with pytest.raises(InvalidInput, match="total_s is 0"):
        WebhookLimits(total_s=0.0)
    with pytest.raises(RecrawlError, match="async with"):
        run(WebhookTransport(AGENT, EgressPolicy()).post(address("https://example.com/"), b"{}"))
    assert (WebhookLimits().total_s, WebhookLimits().https_only) == (20.0, True)
