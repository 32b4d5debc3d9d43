"""What a fetch means for the page, from the answer to a verdict: a generator without IO.

    answer ──> outcome ──> digests ──> detect ──> verdict, memory, text to publish
                               │          │  └─ NeedMissing: is a change the host's way of saying that there is no page?
                     NeedText ─┘          └──── NeedAgain: a second fetch seconds later, where detection asks for it

Yields a step where it needs something, takes the answer, and returns an `Examined`. A body that is the same byte for
byte is not parsed. Errors have no verdict: they are neither "changed" nor "unchanged". What is remembered of a page
between visits is kept by the store byte for byte; what cannot be read is forgotten, and the page starts with a baseline
and no event.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace

import msgspec

from recrawl.errors import InvalidInput
from recrawl.outcomes import Outcome
from recrawl.store.records import record
from recrawl.store.rows import PageRow, Verdict
from recrawl.web.block_pages import block_reason
from recrawl.web.conditional import (
    NO_VALIDATORS,
    FullAnswer,
    Validators,
    ValidatorTrust,
    learn_full,
    learn_not_modified,
    should_send,
)
from recrawl.web.content_rules import DEFAULT_CONTENT_RULES, ContentRules
from recrawl.web.detect import Decision, Visit, detect
from recrawl.web.digests import Digests, digest_page, layer_text, raw_digest
from recrawl.web.fetch_result import FetchResult
from recrawl.web.page_links import Link
from recrawl.web.page_text import Page, read_page
from recrawl.web.soft_404 import MissingPage, looks_missing
from recrawl.web.variants import PageMemory

_VERSION = 1


@record
class Remembered:
    """What is known of a page.

    Args:
        page: by detection; None before the first visit.
        validators: how far they are trusted.
        moved_to: where permanent redirects lead, "" if there are none.
        moved_times: visits in a row that were led there.
    """

    page: PageMemory | None = None
    validators: ValidatorTrust = field(default_factory=ValidatorTrust)
    moved_to: str = ""
    moved_times: int = 0


class _Kept(msgspec.Struct, array_like=True):
    version: int
    page: dict[str, object] | None
    validators: ValidatorTrust
    moved_to: str = ""
    moved_times: int = 0


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Kept)


def to_bytes(remembered: Remembered) -> bytes:
    """The bytes to keep: about 300 for a page that never changed."""
    page = None if remembered.page is None else remembered.page.to_dict()
    return _ENCODER.encode(_Kept(_VERSION, page, remembered.validators, remembered.moved_to, remembered.moved_times))


def from_bytes(kept: bytes | None) -> Remembered:
    """What `to_bytes` gave; nothing is known if there is none, or it is of another form."""
    if kept is None:
        return Remembered()
    try:
        read = _DECODER.decode(kept)
        if read.version != _VERSION:
            return Remembered()
        page = None if read.page is None else PageMemory.from_dict(read.page)
    except (msgspec.MsgspecError, InvalidInput):
        return Remembered()
    return Remembered(page, read.validators, read.moved_to, read.moved_times)


@dataclass(frozen=True, slots=True)
class NeedText:
    """Give the text that was last published of the page, None if it is not kept."""


@dataclass(frozen=True, slots=True)
class NeedAgain:
    """Fetch the page once more in some seconds, without validators; None if that is not possible now.

    Args:
        first: whether that would be the first time for this page.
    """

    first: bool


@dataclass(frozen=True, slots=True)
class NeedMissing:
    """Tell how the host of the page answers for pages that do not exist, None if it says so or that is not known."""


Need = NeedText | NeedAgain | NeedMissing
Given = bytes | FetchResult | MissingPage | None


@dataclass(frozen=True, slots=True)
class Examined:
    """What a fetch means.

    Args:
        outcome: what the world answered, as far as the content tells.
        verdict: what detection says of a page that came.
        reason: why, for people.
        memory: of the page from now on.
        digests: of what came; None if nothing did, or it was the same byte for byte.
        text: to be published as a new version, None if there is none.
        published: the digests of the text that counts, before and after.
        validators: to be sent next time; None to keep what is stored.
        links: of the page, where it was parsed.
        again: the fetches seconds later, if there were any.
    """

    outcome: Outcome
    verdict: Verdict | None
    reason: str
    memory: bytes | None
    digests: Digests | None = None
    text: bytes | None = None
    published: tuple[bytes | None, bytes | None] = (None, None)
    validators: Validators | None = None
    links: tuple[Link, ...] = ()
    again: tuple[FetchResult, ...] = ()


Examination = Generator[Need, Given, Examined]
_MOST_AGAIN = 3
_STEADY = 2  # times in a row that the server said of a copy that it has not changed


def validators_for(page: PageRow) -> Validators:
    """The validators to send with the next request: those of the copy, unless they lie or an audit is due."""
    stored = Validators(page.etag, page.last_modified)
    return stored if should_send(from_bytes(page.memory).validators, stored) else Validators()


def examine(
    page: PageRow, result: FetchResult, fetched_at: float, rules: ContentRules = DEFAULT_CONTENT_RULES
) -> Examination:
    """Decide what the answer to a fetch means for a page; see the module."""
    known = from_bytes(page.memory)
    if result.outcome == "not-modified":
        # It may have been said where a permanent redirect leads: that counts as one more sight of the move.
        kept = replace(_moves(known, result), validators=learn_not_modified(known.validators))
        return Examined("not-modified", "unchanged", result.reason, to_bytes(kept))
    if not result.has_page:
        return Examined(result.outcome, None, result.reason, page.memory)
    if result.soft_404 and page.visits and result.final.url not in (page.validated_url, known.moved_to):
        return Examined("soft-404", None, "redirected to a page that stands for no page", page.memory)
    if (
        known.page is not None
        and known.page.signature == rules.signature
        and raw_digest(result.body) == page.raw_digest
    ):
        trust = _trust(known, page, result, changed=False)
        same = replace(_moves(known, result), page=_seen_again(known.page), validators=trust)
        return Examined(result.outcome, "unchanged", "", to_bytes(same), validators=result.validators)
    return (yield from _compare(page, known, result, fetched_at, rules))


def _moves(known: Remembered, result: FetchResult) -> Remembered:
    """What is known after one more visit of where the page has moved."""
    target = "" if result.moved_to is None else result.moved_to.url
    times = known.moved_times + 1 if target and target == known.moved_to else int(bool(target))
    return replace(known, moved_to=target, moved_times=times)


def _seen_again(memory: PageMemory) -> PageMemory:
    """The memory after a visit that found the published text byte for byte."""
    return replace(memory, visits=memory.visits + 1, at_published=memory.at_published + 1, away=0)


def _compare(
    page: PageRow, known: Remembered, result: FetchResult, fetched_at: float, rules: ContentRules
) -> Examination:
    read, text = _read(result, rules)
    blocked = _block_reason(result, read, rules)
    if blocked:
        return Examined("blocked-page", None, blocked, page.memory)
    if rules.honour_noindex and not read.metadata.may_index:
        return Examined("opted-out", None, "the page asks not to be indexed", page.memory)
    previous = None
    if known.page is not None and rules.counts != "raw":  # bodies are compared by their digests
        given = yield NeedText()
        previous = given if isinstance(given, bytes) else None
    visit = Visit(text, previous=previous, fetched_at=fetched_at)
    decision = detect(known.page, visit, rules)
    again: list[FetchResult] = []
    while decision.ask_again and len(again) < _MOST_AGAIN and not _is_steady(known, result):
        given = yield NeedAgain(first=not again and (known.page is None or known.page.asked == 0))
        if not isinstance(given, FetchResult):
            break
        again.append(given)  # it was sent, so it counts
        if not given.has_page:
            break
        visit = replace(visit, again=(*visit.again, _read(given, rules)[1]))
        decision = detect(known.page, visit, rules)
    if decision.verdict == "changed":
        missing = yield NeedMissing()
        if isinstance(missing, MissingPage) and looks_missing(read, result.address.target, missing):
            return Examined("soft-404", None, "what came is the host's answer for pages that do not exist", page.memory)
    return _verdict(page, known, result, (read, text, decision), tuple(again))


def _is_steady(known: Remembered, result: FetchResult) -> bool:
    """Whether the server said more than once that the page had not changed, and says now that it has.

    What differs from request to request would have shown before, so a second fetch would teach nothing.
    """
    return bool(result.sent) and known.validators.since_audit >= _STEADY


def _block_reason(result: FetchResult, read: Page, rules: ContentRules) -> str:
    """Why what came is a challenge in place of the page, "" if it is the page. Looks at all of it, whatever is kept."""
    whole = _read(result, DEFAULT_CONTENT_RULES)[0] if rules.keep else read
    return block_reason(whole, result.body, result.headers)


def _read(result: FetchResult, rules: ContentRules) -> tuple[Page, bytes]:
    content_type = result.header(b"content-type").decode("latin-1")
    page = read_page(result.body, content_type or None, rules)
    return page, layer_text(rules.counts, result.body, page)


def _verdict(
    page: PageRow,
    known: Remembered,
    result: FetchResult,
    seen: tuple[Page, bytes, Decision],
    again: tuple[FetchResult, ...],
) -> Examined:
    read, text, decision = seen
    publishes = decision.verdict in ("first", "changed")
    trust = _trust(known, page, result, changed=decision.verdict == "changed")
    before = None if known.page is None else bytes.fromhex(known.page.digest)
    return Examined(
        result.outcome,
        decision.verdict,
        decision.reason,
        to_bytes(replace(_moves(known, result), page=decision.memory, validators=trust)),
        digests=digest_page(result.body, read),
        text=text if publishes else None,
        published=(before, bytes.fromhex(decision.memory.digest)),
        validators=result.validators,
        links=read.links,
        again=again,
    )


def _trust(known: Remembered, page: PageRow, result: FetchResult, *, changed: bool) -> ValidatorTrust:
    if known.page is None:
        return known.validators
    is_same = result.validators == Validators(page.etag, page.last_modified)
    same = result.validators if is_same else NO_VALIDATORS
    answer = FullAnswer(was_conditional=bool(result.sent), text_changed=changed, same_validators=same)
    return learn_full(known.validators, answer)
