"""From an answer to a verdict to a row, events and what the scheduler is told, without network or store."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from recrawl.outcomes import Outcome
from recrawl.store.rows import LeaseRow, PageRow, edited
from recrawl.tracker.clock import iso
from recrawl.tracker.pipeline.decide import decide
from recrawl.tracker.pipeline.examine import NeedAgain, NeedText, examine, from_bytes, to_bytes, validators_for
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.visit import LONGEST_FRESH_S, Visit
from recrawl.web.change.detect import PageMemory
from recrawl.web.change.digests import layer_text, text_digest
from recrawl.web.conditional import Validators
from recrawl.web.content.page import read_page
from recrawl.web.content.rules import DEFAULT_CONTENT_RULES, ContentRules
from recrawl.web.content.soft_404 import MissingPage, missing_page
from recrawl.web.fetch.protocol import FetchResult, Hop
from recrawl.web.url.address import Address, read_address

DAY = 86_400.0
START = 1_790_000_000.0
SLOW = 4.0
"""Seconds from the start of a fetch until it is settled: a second look lies between."""


def _address(url: str) -> Address:
    address = read_address(url)
    assert isinstance(address, Address)
    return address


HERE = _address("https://example.com/page")
NEW = PageRow(1, HERE.url, "example.com", "", 1.0, None, 0.0, None, "user", START)


def answer(body: str = "", outcome: Outcome = "ok", **more: object) -> FetchResult:
    status = {"ok": 200, "not-modified": 304, "missing": 404, "gone": 410, "server-error": 500}.get(outcome)
    result = FetchResult(HERE, outcome, "", HERE, status=status, body=body.encode(), requests=1, wire_bytes=len(body))
    return replace(result, **more)  # type: ignore[arg-type]


def leased(page: PageRow, token: int, at: float) -> Visit:
    return Visit(page, LeaseRow(token, page.id, "worker", at, at + 60.0), token)


class Page:
    """A page through its visits: the row, the text that is kept, events and what the scheduler was told."""

    def __init__(self, rules: ContentRules = DEFAULT_CONTENT_RULES) -> None:
        self.rules = rules
        self.row, self.text, self.now, self.token = NEW, b"", START, 0
        self.missing: MissingPage | None = None
        self.looks = self.texts_read = 0
        self.events: list[str] = []
        self.told: list[str] = []

    def visit(self, result: FetchResult, *, after: float = 3600.0, ill: bool = False, again: str = "") -> Visit:
        self.now += after
        self.token += 1
        visit = leased(self.row, self.token, self.now - SLOW)
        visit.fetched, visit.ended_at = result, self.now
        self._examine(visit, again)
        decide(visit, ill=ill, quiet_until=self.now + 60.0)
        self.row = visit.row
        self.events += [event.kind for event in visit.events]
        assert visit.settle_as is not None
        self.told.append(visit.settle_as)
        return visit

    def _examine(self, visit: Visit, again: str) -> None:
        examination = examine(visit, self.now, self.rules)
        given: bytes | FetchResult | MissingPage | None = None
        try:
            need = next(examination)
            while True:
                if isinstance(need, NeedText):
                    given = self.text
                    self.texts_read += 1
                elif isinstance(need, NeedAgain):
                    given = answer(again or visit.answer.body.decode())
                    self.looks += 1
                else:
                    given = self.missing
                need = examination.send(given)
        except StopIteration:
            if visit.text is not None:
                self.text = visit.text


FIRST = "<h1>Prices</h1><p>Bread is sold every morning at the corner of the square.</p>"
SECOND = "<h1>Prices</h1><p>Cheese and wine arrive by ship on the second day of the week.</p>"


def test_the_first_visit_is_a_baseline() -> None:
    page = Page()
    settled = page.visit(answer(FIRST))
    assert (page.events, page.told) == (["discovered"], ["first"])
    assert settled.version is not None
    assert (page.row.visits, page.row.changes, page.row.version) == (1, 0, 1)


def test_an_unchanged_page_is_told_as_such_and_nothing_is_written() -> None:
    page = Page()
    page.visit(answer(FIRST))
    for _ in range(3):
        assert page.visit(answer(FIRST)).version is None
    assert page.visit(answer(outcome="not-modified")).version is None
    assert page.events == ["discovered"]
    assert page.told[1:] == ["unchanged"] * 4
    assert page.row.fetched_at == page.now - SLOW, "what came is the page of the time at which the fetch began"
    assert page.row.attempted_at == page.now


def test_a_change_is_an_event_with_both_digests_and_when_it_was_last_seen_unchanged() -> None:
    page = Page()
    page.visit(answer(FIRST))
    seen = page.now - SLOW
    settled = page.visit(answer(SECOND))
    assert settled.seen.gap_s == 3600.0
    (event,) = settled.events
    assert event.kind == "changed"
    assert event.last_seen_unchanged_at == seen
    assert event.old_digest not in (None, event.new_digest)
    assert page.told[-1] == "changed"
    assert page.row.changed_at == page.now


def test_where_raw_bytes_count_a_change_needs_neither_the_published_text_nor_a_second_fetch() -> None:
    page = Page(ContentRules(counts="raw"))
    page.visit(answer(FIRST))
    settled = page.visit(answer(FIRST.replace("<p>", "<p >")), again=FIRST)
    assert page.events == ["discovered", "changed"]
    assert (page.looks, page.texts_read) == (0, 0)
    assert settled.version is not None
    assert page.text == FIRST.replace("<p>", "<p >").encode()


def test_a_page_that_the_server_called_unchanged_is_not_fetched_twice_when_it_says_changed() -> None:
    """What differs by request would have shown before; without such answers a second fetch is asked for."""
    validators = Validators(b'"1"', None)
    for unmodified, looks in ((0, True), (1, True), (2, False)):
        page = Page()
        page.visit(answer(FIRST, validators=validators))
        for _ in range(unmodified):
            page.visit(answer(outcome="not-modified"))
        settled = page.visit(answer(SECOND, validators=Validators(b'"2"', None), sent=validators))
        assert [event.kind for event in settled.events] == ["changed"]
        assert (page.looks > 0) is looks, unmodified


@pytest.mark.parametrize(
    "outcome",
    ["server-error", "network-error", "forbidden", "robots-denied", "too-large", "truncated", "blocked-page"],
)
def test_a_failure_changes_neither_copy_nor_log_and_recovery_is_silent(outcome: Outcome) -> None:
    page = Page()
    page.visit(answer(FIRST))
    copy = page.row
    waits = [page.visit(answer(outcome=outcome)).held_until for _ in range(4)]
    assert page.told[1:] == ["failed"] * 4
    assert page.row.raw_digest == copy.raw_digest
    assert page.row.fetched_at == copy.fetched_at
    assert page.row.failures == 4
    assert all(held is not None and held > START for held in waits)
    page.visit(answer(FIRST))
    assert page.events == ["discovered"]
    assert page.row.failures == 0
    assert page.row.not_before is None


def test_waits_after_failures_grow() -> None:
    page = Page()
    page.visit(answer(FIRST))
    waits = []
    for _ in range(6):
        settled = page.visit(answer(outcome="server-error"))
        assert settled.held_until is not None
        waits.append(settled.held_until - page.now)
    assert waits[-1] > 8 * waits[0]


def test_a_missing_page_is_removed_after_confirmations_and_restored_when_it_comes_back() -> None:
    page = Page()
    page.visit(answer(FIRST))
    for _ in range(3):
        page.visit(answer(outcome="missing"), after=0.6 * DAY)
    assert page.row.state == "removed"
    assert page.events == ["discovered", "removed"]
    page.visit(answer(outcome="missing"), after=30 * DAY)
    assert page.events == ["discovered", "removed"]
    back = page.visit(answer(FIRST), after=30 * DAY)
    assert page.events == ["discovered", "removed", "restored"]
    assert back.row.state == "active"
    assert back.row.missing == 0


def test_a_moved_page_that_is_added_again_and_still_redirects_is_told_as_moved_again() -> None:
    """Whoever follows the log would else believe for ever that it is back."""
    there = _address("https://example.com/elsewhere")
    moved = answer(FIRST, outcome="moved", hops=(Hop(301, HERE, there),), final=there)
    page = Page()
    page.visit(answer(FIRST))
    page.visit(moved)
    page.visit(moved)
    assert page.events == ["discovered", "moved"]
    page.row = replace(page.row, state="removed")
    page.visit(moved)
    assert page.events == ["discovered", "moved", "restored", "moved"]


def test_while_the_host_is_ill_nothing_is_removed_and_nobody_is_punished() -> None:
    page = Page()
    page.visit(answer(FIRST))
    for _ in range(20):
        page.visit(answer(outcome="missing"), after=DAY, ill=True)
        page.visit(answer(outcome="server-error"), after=DAY, ill=True)
    assert page.row.state == "active"
    assert page.row.failures == 0
    assert page.events == ["discovered"]


def test_a_page_that_was_never_there_leaves_without_an_event() -> None:
    page = Page()
    for _ in range(4):
        page.visit(answer(outcome="missing"), after=DAY)
    assert page.row.state == "removed"
    assert page.events == []


def test_a_retry_after_is_handed_on_and_is_no_failure_of_the_page() -> None:
    page = Page()
    page.visit(answer(FIRST))
    settled = page.visit(answer(outcome="rate-limited", retry_after_s=120.0))
    assert (settled.settle_as, settled.held_until) == ("rate-limited", page.now + 60.0)
    assert page.row.not_before == page.now + 60.0
    assert page.row.failures == 0


def test_an_address_that_may_not_be_fetched_is_retired() -> None:
    page = Page()
    assert page.visit(answer(outcome="refused")).settle_as == "retired"
    assert page.row.state == "retired"
    assert page.row.reason.startswith("refused")


def test_a_page_whose_owner_asks_for_it_is_removed_at_once_and_looked_at_rarely() -> None:
    asks = FIRST.replace("<h1>", '<meta name="robots" content="noindex"><h1>')
    page = Page()
    page.visit(answer(FIRST))
    settled = page.visit(answer(asks))
    assert settled.row.state == "removed"
    assert settled.held_until == page.now + 30 * DAY
    page.visit(answer(outcome="opted-out"))
    page.visit(answer(FIRST))
    assert page.events == ["discovered", "removed", "restored"]


def test_a_move_is_told_once_when_it_was_seen_twice() -> None:
    there = _address("https://example.com/elsewhere")
    moved = answer(FIRST, outcome="moved", hops=(Hop(301, HERE, there),), final=there)
    page = Page()
    page.visit(answer(FIRST))
    assert page.visit(moved).moved_to is None
    assert page.visit(moved).moved_to == there.url
    assert page.visit(moved).moved_to == there.url  # it was not followed, so it is tried again
    assert page.events == ["discovered", "moved"]


def test_a_move_is_also_seen_where_the_page_has_not_changed() -> None:
    """The new address answers 304 to the validators of the copy: that is one more sight of the move."""
    there = _address("https://example.com/elsewhere")
    hops = (Hop(301, HERE, there),)
    page = Page()
    page.visit(answer(FIRST))
    page.visit(answer(FIRST, outcome="moved", hops=hops, final=there))
    assert page.visit(answer(outcome="not-modified", hops=hops, final=there)).moved_to == there.url
    assert page.events == ["discovered", "moved"]
    back = Page()
    back.visit(answer(FIRST))
    back.visit(answer(FIRST, outcome="moved", hops=hops, final=there))
    back.visit(answer(outcome="not-modified"))
    assert back.visit(answer(outcome="not-modified", hops=hops, final=there)).moved_to is None  # they must be in a row


def test_a_page_that_goes_back_has_changed_each_time() -> None:
    page = Page()
    for number, text in enumerate((FIRST, SECOND, FIRST, FIRST), 1):
        page.visit(answer(text, validators=Validators(b'"%d"' % number)))
    assert page.events == ["discovered", "changed", "changed"]
    assert validators_for(page.row) == Validators(b'"4"')


def test_a_difference_that_is_held_is_not_the_copy_and_is_published_with_the_time_it_was_first_seen() -> None:
    page = Page()
    page.visit(answer(FIRST, validators=Validators(b'"1"')))
    seen_at = page.now
    held = page.visit(answer(SECOND, validators=Validators(b'"2"')), again=SECOND.replace("<p>", "<p>And more. "))
    first_seen = page.now
    assert (held.seen.verdict, held.seen.reason) == ("noise", "held")
    assert validators_for(page.row) == Validators(b'"1"')
    late = page.visit(answer(SECOND, validators=Validators(b'"2"')))
    (event,) = late.events
    assert (event.kind, event.last_seen_unchanged_at) == ("changed", seen_at)
    assert json.loads(event.detail) == {"first_seen": iso(first_seen)}


FRAMED = "<body><header><h1>{}</h1></header><main><p>The fair opens at nine and closes at noon.</p></main>"


def before_headlines(page: Page, body: str) -> None:
    """Let a page be as an older version left it: its text without the headline, its memory of the form before."""
    page.visit(answer(body))
    result = answer(body)
    page.text = layer_text("text", result.body, read_page(result.body, "text/html"), with_lead=False)
    digest = text_digest(page.text).hex()
    known = from_bytes(page.row.memory)
    plain = {"signature": DEFAULT_CONTENT_RULES.signature, "digest": digest, "exact": digest, "published_at": page.now}
    old = PageMemory.from_dict(plain | {"slots": [], "variants": [], "visits": 5, "asked": 2})
    page.row = edited(page.row, memory=to_bytes(replace(known, page=old)), raw_digest=b"0" * 16)


def test_a_text_stored_without_its_headline_is_replaced_without_an_event() -> None:
    page = Page()
    before_headlines(page, FRAMED.format("April"))
    seen = page.visit(answer(FRAMED.format("April") + "<!-- other bytes -->"))
    assert (seen.seen.verdict, page.events) == ("unchanged", ["discovered"])
    assert page.text is not None
    assert page.text.startswith(b"April\n")
    assert page.visit(answer(FRAMED.format("April") + "<!-- again -->")).seen.verdict == "unchanged"
    assert page.visit(answer(FRAMED.format("June"))).seen.verdict == "changed"


def test_a_change_of_a_text_stored_without_its_headline_is_not_swallowed() -> None:
    page = Page()
    before_headlines(page, FRAMED.format("April"))
    assert page.visit(answer(FRAMED.format("April").replace("noon", "one"))).seen.verdict == "changed"
    assert page.visit(answer(FRAMED.format("April").replace("noon", "one") + "<!-- -->")).seen.verdict == "unchanged"


def test_validators_are_sent_back_until_they_lie() -> None:
    page = Page()
    known = Validators(b'"v1"')
    page.visit(answer(FIRST, validators=known))
    assert validators_for(page.row) == known
    page.visit(answer(SECOND, validators=known, sent=known))
    assert not validators_for(page.row)


def test_a_page_that_redirects_to_the_front_page_is_no_page() -> None:
    page = Page()
    page.visit(answer(FIRST))
    page.visit(answer(SECOND, soft_404=True))
    assert page.row.outcome == "soft-404"
    assert page.row.missing == 1
    assert page.events == ["discovered"]


def test_a_page_that_has_always_been_the_front_page_is_a_page() -> None:
    """The copy at hand came through the same redirect: it says nothing new."""
    front = _address("https://example.com/")
    led: dict[str, Any] = {"hops": (Hop(302, HERE, front),), "final": front, "soft_404": True}
    page = Page()
    page.visit(answer(FIRST, **led))
    page.visit(answer(SECOND, **led))
    assert (page.row.outcome, page.row.missing) == ("ok", 0)
    assert page.events == ["discovered", "changed"]
    page.visit(answer(FIRST, **led | {"final": _address("https://example.com/404")}))
    assert page.row.outcome == "soft-404"


def test_a_page_that_turns_into_what_the_host_shows_for_no_page_has_not_changed() -> None:
    sorry = "<title>Not here</title><h1>Sorry</h1><p>We looked everywhere but could not find what you asked us for.</p>"
    page = Page()
    page.visit(answer(FIRST))
    page.missing = missing_page(read_page(sorry.encode()), "/k3v9x2m4q8w1")
    page.visit(answer(sorry))
    assert page.row.outcome == "soft-404"
    assert page.events == ["discovered"]
    page.visit(answer(SECOND))
    assert page.events == ["discovered", "changed"]


def test_a_challenge_in_place_of_the_page_is_no_change() -> None:
    asks = "Checking your browser before accessing example.com. Enable JavaScript and cookies to continue"
    challenge = f"<title>Just a moment...</title><p>{asks}</p>"
    page = Page()
    page.visit(answer(FIRST))
    page.visit(answer(challenge, headers=((b"cf-mitigated", b"challenge"),)))
    assert page.row.outcome == "blocked-page"
    page.visit(answer(FIRST))
    assert page.events == ["discovered"]


@pytest.mark.parametrize(("fresh_s", "kept_s"), [(0.0, None), (600.0, 600.0), (86_400.0, LONGEST_FRESH_S)])
def test_a_page_that_its_server_calls_fresh_is_left_alone_if_that_is_respected(
    fresh_s: float, kept_s: float | None
) -> None:
    def decided(outcome: Outcome, settings: Settings) -> Visit:
        visit = leased(NEW, 1, START)
        visit.fetched, visit.ended_at = answer("<p>a text</p>", fresh_for_s=fresh_s), START
        visit.examined(outcome, "first" if outcome == "ok" else None, "", None)
        decide(visit, settings=settings)
        return visit

    respecting = Settings(respect_max_age=True)
    respected = decided("ok", respecting)
    assert respected.fresh_until == (None if kept_s is None else START + kept_s)
    assert respected.row.not_before is None
    assert decided("ok", Settings()).fresh_until is None
    assert decided("server-error", respecting).fresh_until is None
