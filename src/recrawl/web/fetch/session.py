"""The one way out: an HTTP client whose connections all pass the gate, are verified, counted and forget everything.

Pages leave through `transport.py`, webhooks through `push/delivery.py`, both with a client made here. Nothing of
the environment changes it: no proxy, no password file, no list of authorities, no log of TLS keys.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import aiohttp
from aiohttp.abc import AbstractResolver

from recrawl.web.fetch.egress import EgressPolicy, socket_factory
from recrawl.web.fetch.pool import KeptConnections

_AUTOMATIC_HEADERS = ("User-Agent", "Accept", "Accept-Encoding")
_KEEP_ALIVE_S = 15.0
_NAMES_KEPT_S = 60
READ_BUFFER_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Door:
    """What a client is made of.

    Args:
        policy: the gate's policy.
        names: who looks up names, behind the gate.
        tls: the context for https; None for the authorities of the system.
        most_connections: in use at once, and as many again that are kept.
        most_headers: header lines of an answer.
        longest_line_bytes: of its status line and header lines.
        keep_alive: whether a connection serves for more than one request.
    """

    policy: EgressPolicy
    names: AbstractResolver
    tls: ssl.SSLContext | None = None
    most_connections: int = 256
    most_headers: int = 128
    longest_line_bytes: int = 8190
    keep_alive: bool = True


def open_session(door: Door) -> aiohttp.ClientSession:
    """A client that dials only what the gate allows, follows, decodes and keeps nothing. Close it when done."""
    connector = KeptConnections(
        door.most_connections,
        limit=door.most_connections,
        ssl=door.tls or system_tls(),
        resolver=door.names,
        socket_factory=socket_factory(door.policy),
        ttl_dns_cache=_NAMES_KEPT_S,
        keepalive_timeout=_KEEP_ALIVE_S if door.keep_alive else None,
        force_close=not door.keep_alive,
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        requote_redirect_url=False,
        skip_auto_headers=_AUTOMATIC_HEADERS,
        timeout=aiohttp.ClientTimeout(total=None),
        read_bufsize=READ_BUFFER_BYTES,
        max_line_size=door.longest_line_bytes,
        max_field_size=door.longest_line_bytes,
        max_headers=door.most_headers,
    )


@lru_cache(maxsize=1)
def system_tls() -> ssl.SSLContext:
    """TLS 1.2 or later, certificates checked against the authorities that this Python was built to trust.

    `ssl.create_default_context` would take others from SSL_CERT_FILE and write keys to SSLKEYLOGFILE. Who needs other
    authorities hands in a context.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    paths = ssl.get_default_verify_paths()
    file = paths.openssl_cafile if Path(paths.openssl_cafile).is_file() else None
    folder = paths.openssl_capath if Path(paths.openssl_capath).is_dir() else None
    if file or folder:
        context.load_verify_locations(file, folder)
    else:  # systems that keep them elsewhere, such as Windows
        context.load_default_certs()
    return context
