"""The edge: certificates are checked, and credentials stay with their origin."""

from __future__ import annotations

import ssl
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from hostile_ground import HASTY, AllAllowed, fetch, guarded, settings_for

from recrawl.lab.livingweb.hostile import HostileWeb, answers, page, redirects
from recrawl.web.fetch.connection import system_tls
from recrawl.web.fetch.protocol import FetchResult
from recrawl.web.fetch.settings import read_credentials
from recrawl.web.fetch.transport import Transport

TLS = Path(__file__).parent.parent / "livingweb" / "tls"


def _serving(certificate: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / f"{certificate}.pem")
    return context


def _trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=TLS / "authority.pem")


async def _secure(certificate: str, *, tls: ssl.SSLContext | None, unverified: bool = False) -> tuple[FetchResult, int]:
    async with HostileWeb(tls=_serving(certificate)) as web:
        web.on("/", answers(page(b"secret")))
        origins = frozenset({web.url("/").removesuffix("/")}) if unverified else frozenset()
        settings = replace(settings_for(web), unverified_tls=origins)
        async with Transport(settings, keeper=AllAllowed(), tls=tls) as transport:
            return await fetch(transport, web.url("/")), len(web.log)


def test_a_good_certificate_of_a_known_authority_is_fine() -> None:
    result, _ = guarded(_secure("good", tls=_trusting()))
    assert result.body == b"secret"


@pytest.mark.parametrize(
    ("certificate", "word"),
    [("expired", "expired"), ("other_host", "a.hostile.test"), ("self_signed", "self"), ("good", "issuer")],
)
def test_a_bad_certificate_fails_with_its_reason_before_anything_is_asked(certificate: str, word: str) -> None:
    # The last one is good, but the authority is none that the system knows.
    result, requests = guarded(_secure(certificate, tls=None if word == "issuer" else _trusting()))
    assert (result.outcome, result.fault) == ("network-error", "tls")
    assert word in result.reason
    assert requests == 0


def test_a_site_may_go_unverified_only_if_it_is_named() -> None:
    result, _ = guarded(_secure("self_signed", tls=_trusting(), unverified=True))
    assert result.body == b"secret"


def test_authorities_and_key_logs_of_the_environment_are_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    assert ssl.create_default_context().get_ca_certs()[0]["subject"]  # it is there, for whoever asks for it
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    system_tls.cache_clear()
    try:
        result, requests = guarded(_secure("good", tls=None))
    finally:
        system_tls.cache_clear()
    assert (result.outcome, result.fault, requests) == ("network-error", "tls", 0)
    assert list(tmp_path.iterdir()) == []


def test_a_site_without_a_trusted_certificate_is_never_asked_in_plain_text_instead() -> None:
    async def main() -> tuple[FetchResult, HostileWeb]:
        async with HostileWeb() as plain:
            url = plain.url("/").replace("http:", "https:")
            # The server waits for the rest of a request, so the fetch ends at its limit.
            async with Transport(settings_for(plain, limits=HASTY), keeper=AllAllowed()) as transport:
                return await fetch(transport, url), plain

    result, plain = guarded(main())
    assert (result.outcome, result.status) == ("network-error", None)
    assert plain.log == []


def test_an_old_protocol_is_not_spoken() -> None:
    context = _serving("good")
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1

    async def main() -> FetchResult:
        async with (
            HostileWeb(tls=context) as web,
            Transport(settings_for(web), keeper=AllAllowed(), tls=_trusting()) as transport,
        ):
            return await fetch(transport, web.url("/"))

    result = guarded(main())
    assert result.outcome == "network-error"
    assert result.fault in ("tls", "reset")  # the server may hang up before it says why


def test_plain_text_on_a_secure_port_is_a_fault() -> None:
    async def main() -> FetchResult:
        async with (
            HostileWeb(greeting=lambda visit: visit.send(page(b"hi"))) as web,
            Transport(settings_for(web), keeper=AllAllowed()) as transport,
        ):
            return await fetch(transport, web.url("/").replace("http:", "https:"))

    result = guarded(main())
    assert (result.outcome, result.fault) == ("network-error", "tls")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("change", ["host", "port", "scheme"])
def test_credentials_stay_at_home_when_host_port_or_scheme_changes(status: int, change: str) -> None:
    async def main() -> tuple[HostileWeb, HostileWeb, FetchResult]:
        async with (
            HostileWeb(tls=_serving("good")) as home,
            HostileWeb(tls=None if change == "scheme" else _serving("good")) as other,
        ):
            away = other if change != "host" else home
            host = "b.hostile.test" if change == "host" else "a.hostile.test"
            away.on("/away", answers(page(b"away")))
            home.on("/home", redirects(status, away.url("/away", host)))
            origin = home.url("/").removesuffix("/")
            secrets = {"Authorization": "Basic bWU6czNjcmV0", "Cookie": "id=1", "X-Api-Key": "k"}
            settings = replace(settings_for(home, other), credentials=read_credentials({origin: secrets}))
            async with Transport(settings, keeper=AllAllowed(), tls=_trusting()) as transport:
                return home, away, await fetch(transport, home.url("/home"))

    home, away, result = guarded(main())
    assert result.body == b"away"
    assert home.seen("/home")[0].headers["authorization"] == "Basic bWU6czNjcmV0"
    arrived = away.seen("/away")[0]
    assert not {"authorization", "cookie", "x-api-key"} & set(arrived.headers)
    assert b"s3cret" not in arrived.raw
