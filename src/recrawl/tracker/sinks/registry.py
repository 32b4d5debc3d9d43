"""Sinks by the rules of the settings."""

from __future__ import annotations

import asyncio
from pathlib import Path

from recrawl.errors import InvalidInput
from recrawl.store.rows import CHANGE_KINDS
from recrawl.tracker.settings.settings import Settings, SinkRule
from recrawl.tracker.sinks.atom import AtomSink
from recrawl.tracker.sinks.jsonl import JsonlSink
from recrawl.tracker.sinks.sink import Sink, Surroundings, drive
from recrawl.tracker.sinks.webhook import WebhookSink
from recrawl.tracker.tracker import Tracker
from recrawl.web.address import address_or_raise
from recrawl.web.user_agent import user_agent
from recrawl.web.webhook_signing import read_secret
from recrawl.web.webhook_transport import WebhookLimits, WebhookTransport


def check_sinks(settings: Settings) -> None:
    """Refuse what no sink could be made from."""
    for rule in settings.sinks:
        where = f"sinks.{rule.name}"
        for kind in rule.kinds:
            if kind not in CHANGE_KINDS:
                raise InvalidInput(f"has the kind {kind!r}, but there are {', '.join(CHANGE_KINDS)}", field=where)
        if rule.kind != "webhook" and (not rule.target or (rule.target != "-" and Path(rule.target).is_dir())):
            raise InvalidInput(f"is {rule.target!r}, but must be a file", field=f"{where}.target")
        if rule.kind == "atom" and rule.target == "-":
            raise InvalidInput("is standard output, but a feed is a file", field=f"{where}.target")
        if rule.kind == "webhook":
            address_or_raise(rule.target, field=f"{where}.target", rules=settings.address_rules)
            if rule.secret:
                read_secret(rule.secret, f"{where}.secret")


async def run_sinks(tracker: Tracker) -> None:
    """Drive all sinks of a tracker until it stops."""
    around = Surroundings(
        tracker.clock.now, tracker.pause, lambda: tracker.stopping, tracker.say, tracker.timing.sink_s
    )
    drivers = []
    for rule in tracker.settings.sinks:
        sink = await make_sink(rule, tracker)
        drivers.append(drive(rule.name, sink, tracker.store, frozenset(rule.kinds), around))
    await asyncio.gather(*drivers)


async def make_sink(rule: SinkRule, tracker: Tracker) -> Sink:
    """The sink of a rule."""
    if rule.kind == "jsonl":
        return JsonlSink(rule.target)
    if rule.kind == "atom":
        return AtomSink(rule.target, tracker.store, tracker.store.store_id, frozenset(rule.kinds))
    settings = tracker.settings
    limits = WebhookLimits(https_only=not rule.plain_http)
    transport = WebhookTransport(user_agent(settings.contact), settings.egress, limits)
    await transport.__aenter__()
    address = address_or_raise(rule.target, field=f"sinks.{rule.name}.target", rules=settings.address_rules)
    secret = read_secret(rule.secret, f"sinks.{rule.name}.secret") if rule.secret else None
    return WebhookSink(transport, address, secret, tracker.clock.now)
