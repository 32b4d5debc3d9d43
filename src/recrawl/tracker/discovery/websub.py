"""WebSub: feeds and hubs that offer to tell of changes by themselves are asked to, where this tracker can be called.

The service answers hubs at `<callback>/websub/<token>` by `verify` and `pushed`. A push says that the source has
changed; it is then worth a poll, and what that poll tells are signals of the kind `websub`. While a hub is to push,
its source is polled less often, but polling never stops: hubs forget.
"""

from __future__ import annotations

import secrets

from recrawl.tracker.clock import TrackerClock
from recrawl.tracker.discovery.source import Source, SourceBook
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.usage import Usage
from recrawl.web.fetch.protocol import Fault
from recrawl.web.fetch.settings import user_agent
from recrawl.web.push.delivery import WebhookLimits, WebhookTransport
from recrawl.web.push.websub import (
    Answer,
    HubLinks,
    Subscription,
    is_genuine,
    new_subscription,
    pack_subscription,
    subscription_form,
    unpack_subscription,
    verification,
)
from recrawl.web.url.address import Address, read_address

PATH = "/websub/"
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_MOST_AT_ONCE = 20


class Subscriptions:
    """Asks hubs, and hears them.

    Args:
        settings: of the tracker.
        book: all sources.
        usage: charged for what is asked.
        clock: of the tracker.
    """

    def __init__(self, settings: Settings, book: SourceBook, usage: Usage, clock: TrackerClock) -> None:
        self._settings = settings
        self._book = book
        self._usage = usage
        self._clock = clock
        self._tokens: dict[str, Source] = {}  # by the end of the callback
        self.unsaved: dict[int, Source] = {}
        """Sources whose subscriptions have changed since they were last written, by page."""

    def found(self, source: Source, links: HubLinks) -> None:
        """Note the hub that a source names, to be asked soon."""
        callback = self._settings.signals.callback.rstrip("/")
        if not callback or not links.hubs or not self._settings.signals.hears("websub"):
            return
        known = self._of(source)
        if known is not None and known.hub == links.hubs[0].url and known.topic == links.topic.url:
            return
        token, secret = secrets.token_urlsafe(24), secrets.token_urlsafe(32)
        wanted = new_subscription(links.topic.url, links.hubs[0].url, f"{callback}{PATH}{token}", secret)
        self._put(source, wanted)

    async def tend(self, now: float) -> None:
        """Ask hubs for what is due, one POST each, which counts as a request."""
        due: list[tuple[Source, Subscription]] = []
        for source in self._book:
            subscription = self._of(source) if source.is_active else None
            if subscription is not None and len(due) < _MOST_AT_ONCE:
                state, step = subscription.next_step(now, _chance())
                if step.kind in ("subscribe", "unsubscribe"):
                    due.append((source, state))
        if not due:
            return
        settings = self._settings
        limits = WebhookLimits(https_only=False)
        async with WebhookTransport(user_agent(settings.contact), settings.egress, limits) as posts:
            for source, state in due:
                self._put(source, state.asked(now))  # a hub may verify before it answers
                address = read_address(state.hub, settings.address_rules)
                status = 0
                if isinstance(address, Address):
                    self._usage.charge(1, 0)
                    answer = await posts.post(address, subscription_form(state), _FORM)
                    status = 0 if isinstance(answer, Fault) else answer.status
                current = self._of(source) or state
                self._put(source, current.answered(status, self._clock.now(), _chance()))

    def verify(self, token: str, query: str) -> Answer:
        """The answer to a hub's GET at a callback."""
        source = self._tokens.get(token)
        now = self._clock.now()
        answer, after = verification(None if source is None else self._of(source), query, now, _chance())
        if source is not None and after is not None:
            self._put(source, after)
        return answer

    def pushed(self, token: str, signature: str, body: bytes) -> Source | None:
        """The source of which a hub says that it changed; None if nobody knows the caller."""
        source = self._tokens.get(token)
        subscription = None if source is None else self._of(source)
        if source is None or subscription is None or not is_genuine(subscription.secret, signature, body):
            return None
        source.memory.pushed_at = self._clock.now()
        return source

    def load(self) -> None:
        """Know the callbacks of subscriptions that were made in earlier lives. O(sources)."""
        for source in self._book:
            subscription = self._of(source)
            if subscription is not None:
                self._tokens[_token(subscription)] = source

    def _of(self, source: Source) -> Subscription | None:
        return unpack_subscription(source.memory.subscription) if source.memory.subscription else None

    def _put(self, source: Source, subscription: Subscription) -> None:
        before = self._of(source)
        if before is not None:
            self._tokens.pop(_token(before), None)
        source.memory.subscription = b"" if subscription.is_over else pack_subscription(subscription)
        if not subscription.is_over:
            self._tokens[_token(subscription)] = source
        self.unsaved[source.row.page_id] = source


def _token(subscription: Subscription) -> str:
    return subscription.callback.rpartition("/")[2]


def _chance() -> float:
    return secrets.randbelow(1000) / 1000.0
