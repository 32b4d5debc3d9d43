"""Webhooks on their way out: one POST through the same gate as every page, and what came of it as a value.

    async with WebhookTransport(user_agent, egress) as webhooks:
        came = await webhooks.post(address, body, {"webhook-id": "..."})

A target is as little trusted as a page: forbidden networks, other ports and the crawler's own names are refused, TLS
is verified, no redirect is followed, of the answer no more than its head is read, and all of it ends within 20
seconds. Signing, order and repeats are for the sender.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from recrawl.errors import InvalidInput, RecrawlError
from recrawl.web.fetch.connection import WIRE_ERRORS, open_session
from recrawl.web.fetch.egress import EgressPolicy, check_target
from recrawl.web.fetch.faults import fault_of
from recrawl.web.fetch.protocol import Fault
from recrawl.web.fetch.resolver import GuardedResolver, SystemNames
from recrawl.web.fetch.retry import retry_after_s
from recrawl.web.fetch.settings import HeaderPairs, UserAgent, checked_headers
from recrawl.web.refused import Refused, safe_text
from recrawl.web.url.address import Address


@dataclass(frozen=True, slots=True)
class WebhookLimits:
    """Bounds of one POST.

    Args:
        total_s: seconds from the look-up of the name to the head of the answer.
        connect_s: of these, seconds until the connection stands.
        most_at_once: POSTs under way; others wait, and their time does not count.
        https_only: whether http targets are refused.
    """

    total_s: float = 20.0
    connect_s: float = 10.0
    most_at_once: int = 32
    https_only: bool = True

    def __post_init__(self) -> None:
        for name in ("total_s", "connect_s", "most_at_once"):
            value = getattr(self, name)
            if not 0.0 < value <= 600.0:
                raise InvalidInput(f"is {value}, but must be above 0 and at most 600", field=name)


DEFAULT_WEBHOOK_LIMITS = WebhookLimits()


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """What a target answered: its status, also of a redirect, and how long it asks to be left alone, if it does."""

    status: int
    retry_after_s: float | None = None

    @property
    def is_accepted(self) -> bool:
        """Whether the target has taken it."""
        return 200 <= self.status < 300


class WebhookTransport:
    """Sends POSTs.

    Args:
        user_agent: the honest name with a contact.
        egress: what may be dialled.
        limits: bounds of one POST.
        resolver: who looks up names, behind the gate; by default the system. The transport closes it.
        tls: the context for https; by default the authorities of the system.
        wall: seconds since 1970, for dates in Retry-After.
    """

    def __init__(
        self,
        user_agent: UserAgent,
        egress: EgressPolicy,
        limits: WebhookLimits = DEFAULT_WEBHOOK_LIMITS,
        *,
        resolver: AbstractResolver | None = None,
        tls: ssl.SSLContext | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._agent = user_agent.header
        self._egress = egress
        self._limits = limits
        self._resolver = resolver
        self._tls = tls
        self._wall = wall
        self._slots = asyncio.Semaphore(limits.most_at_once)
        self._names: GuardedResolver | None = None
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> WebhookTransport:
        self._names = GuardedResolver(self._egress, self._resolver or SystemNames())
        # A connection that was kept may be gone when it is used, and a POST is not sent twice.
        self._session = open_session(self._egress, self._names, self._tls, self._limits.most_at_once, keep_alive=False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        if self._names is not None:
            await self._names.close()

    async def post(
        self, address: Address, body: bytes, headers: Mapping[str, str] | None = None
    ) -> WebhookAnswer | Fault:
        """Send JSON once; a fault where no answer came, `refused` where none was asked for.

        Raises:
            InvalidInput: for a header that cannot be sent; the sentence never holds its value.
            RecrawlError: if the transport is not open.
        """
        if self._session is None:
            raise RecrawlError("the transport is not open; use it in `async with`")
        sent = self._headers(checked_headers("headers", headers or {}))
        refused = self._refused(address)
        if refused is not None:
            return Fault("refused", refused.sentence)
        async with self._slots:
            return await self._post(self._session, address, body, sent)

    def _headers(self, own: HeaderPairs) -> HeaderPairs:
        has_type = any(name.lower() == "content-type" for name, _ in own)
        kind = () if has_type else (("Content-Type", "application/json"),)
        return (("User-Agent", self._agent), ("Accept-Encoding", "identity"), *kind, *own)

    def _refused(self, address: Address) -> Refused | None:
        if address.scheme != "https" and self._limits.https_only:
            return Refused("plain-http", safe_text(address.url), "webhooks go to https targets unless http is allowed")
        return check_target(address, self._egress)

    async def _post(
        self, session: aiohttp.ClientSession, address: Address, body: bytes, headers: HeaderPairs
    ) -> WebhookAnswer | Fault:
        try:
            async with asyncio.timeout(self._limits.total_s):
                response = await session.post(
                    URL(address.url, encoded=True),
                    data=body,
                    headers=headers,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=None, connect=self._limits.connect_s),
                )
        except WIRE_ERRORS as error:
            return fault_of(error)
        response.close()
        if not 200 <= response.status <= 599:
            return Fault("protocol", f"the answer has the status {response.status}")
        return WebhookAnswer(response.status, retry_after_s(response.headers.get("Retry-After"), self._wall()))
