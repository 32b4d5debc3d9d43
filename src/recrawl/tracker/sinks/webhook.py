"""Events as signed POSTs to one address, in order, each until it is taken.

A 2xx is taken. 410 ends the sink: the target does not want it any more. A target that says an event is wrong (400,
413, 422) or that fails for an event too often makes it a dead letter, and the next goes on. Anything else is tried
again later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from recrawl.store.crash_points import crash_point
from recrawl.store.rows import Change
from recrawl.store.store import Store
from recrawl.tracker.settings.settings import Settings, SinkRule
from recrawl.tracker.sinks.event import event_json
from recrawl.tracker.sinks.sink import Delivery, Sink
from recrawl.web.fetch.protocol import Fault
from recrawl.web.fetch.settings import user_agent
from recrawl.web.push.delivery import WebhookLimits, WebhookTransport
from recrawl.web.push.webhook import headers, read_secret
from recrawl.web.url.address import Address, address_or_raise

MOST_ATTEMPTS = 12
_WRONG = frozenset({400, 413, 422})
_ENDED = 410


def check(rule: SinkRule, settings: Settings, where: str) -> None:
    """Refuse what is no address, and secrets that cannot sign."""
    address_or_raise(rule.target, field=f"{where}.target", rules=settings.address_rules)
    if rule.secret:
        read_secret(rule.secret, f"{where}.secret")


async def make(rule: SinkRule, settings: Settings, store: Store, now: Callable[[], float]) -> Sink:  # noqa: ARG001
    """Make the sink of a rule, with a transport of its own."""
    where = f"sinks.{rule.name}"
    address = address_or_raise(rule.target, field=f"{where}.target", rules=settings.address_rules)
    secret = read_secret(rule.secret, f"{where}.secret") if rule.secret else None
    limits = WebhookLimits(https_only=not rule.plain_http)
    transport = WebhookTransport(user_agent(settings.contact), settings.egress, limits)
    await transport.__aenter__()
    return WebhookSink(transport, address, secret, now)


class WebhookSink:
    """Posts to an address.

    Args:
        transport: open; closed with the sink.
        address: of the target.
        secret: for signing, None for none.
        now: Unix seconds.
    """

    def __init__(
        self, transport: WebhookTransport, address: Address, secret: bytes | None, now: Callable[[], float]
    ) -> None:
        self._transport = transport
        self._address = address
        self._secret = secret
        self._now = now

    async def take(self, changes: Sequence[Change], attempt: int) -> Delivery:
        """Post events one by one until one is not taken."""
        dead: list[tuple[int, str]] = []
        for place, change in enumerate(changes):
            body = event_json(change).encode("utf-8", "replace")
            signed = headers(self._secret, change.id, int(self._now()), body)
            answer = await self._transport.post(self._address, body, signed)
            crash_point("webhook-sent")
            if isinstance(answer, Fault):
                why, retry_after_s = answer.detail, None
            elif answer.is_accepted:
                continue
            elif answer.status == _ENDED:
                return Delivery(place, tuple(dead), stopped="its target answered 410: it does not want events any more")
            else:
                why, retry_after_s = f"its target answered {answer.status}", answer.retry_after_s
            tries = attempt + 1 if place == 0 else 1
            wrong = not isinstance(answer, Fault) and answer.status in _WRONG
            if wrong or tries >= MOST_ATTEMPTS:
                dead.append((place, why))
                continue
            return Delivery(place, tuple(dead), why, retry_after_s)
        return Delivery(len(changes), tuple(dead))

    async def close(self) -> None:
        """Close the transport."""
        await self._transport.__aexit__(None, None, None)
