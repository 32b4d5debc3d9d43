"""What a fetch means for the page, from the answer to a verdict: a generator without IO.

    answer ──> outcome ──> digests ──> detect ──> verdict, memory, text to publish
                               │          │  └─ NeedMissing: is a change the host's way of saying that there is no page?
                     NeedText ─┘          └──── NeedAgain: a second fetch seconds later, where detection asks for it

Yields a step where it needs something, takes the answer, and fills the visit; `drive` brings the answers. A body that
is the same byte for byte is not parsed. Errors have no verdict: they are neither "changed" nor "unchanged". What is
remembered of a page between visits is kept by the store byte for byte; what cannot be read is forgotten, and the page
starts with a baseline and no event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field, replace

import msgspec

from recrawl.errors import InvalidInput
from recrawl.jit import has_to_wait
from recrawl.store.bodies import unpacked
from recrawl.store.rows import PageRow, record
from recrawl.store.store import Store
from recrawl.tracker.visit import Visit
from recrawl.web.change.detect import Decision, PageMemory, detect, seen_again, with_headline
from recrawl.web.change.detect import Visit as Sample
from recrawl.web.change.digests import Digests, digest_page, layer_text, raw_digest
from recrawl.web.conditional import (
    NO_VALIDATORS,
    FullAnswer,
    Validators,
    ValidatorTrust,
    learn_full,
    learn_not_modified,
    should_send,
)
from recrawl.web.content.challenge import block_reason
from recrawl.web.content.charset import as_utf8, read_charset
from recrawl.web.content.page import Page, read_page
from recrawl.web.content.rules import DEFAULT_CONTENT_RULES, ContentRules
from recrawl.web.content.soft_404 import MissingPage, looks_missing
from recrawl.web.fetch.protocol import FetchResult

_VERSION = 1


@record
class DetectionState:
    """What is known of a page.

    Args:
        page: by detection; None before the first visit.
        validators: how far they are trusted.
        moved_to: where permanent redirects lead, "" if there is no redirect.
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


def to_bytes(remembered: DetectionState) -> bytes:
    """The bytes to keep: about 300 for a page that never changed."""
    page = None if remembered.page is None else remembered.page.to_dict()
    return _ENCODER.encode(_Kept(_VERSION, page, remembered.validators, remembered.moved_to, remembered.moved_times))


def from_bytes(kept: bytes | None) -> DetectionState:
    """What `to_bytes` gave; nothing is known if nothing is kept, or it is of another form."""
    if kept is None:
        return DetectionState()
    try:
        read = _DECODER.decode(kept)
        if read.version != _VERSION:
            return DetectionState()
        page = None if read.page is None else PageMemory.from_dict(read.page)
    except (msgspec.MsgspecError, InvalidInput):
        return DetectionState()
    return DetectionState(page, read.validators, read.moved_to, read.moved_times)


@dataclass(frozen=True, slots=True)
class NeedText:
    """Give the text that was last published of the page, None if it is not kept."""


@dataclass(frozen=True, slots=True)
class NeedAgain:
    """Fetch the page once more as soon as pacing allows, without validators; None if that is not possible now."""


@dataclass(frozen=True, slots=True)
class NeedMissing:
    """Tell how the host of the page answers for pages that do not exist, None if it says so or that is not known."""


Need = NeedText | NeedAgain | NeedMissing
Given = bytes | FetchResult | MissingPage | None


Examination = Generator[Need, Given, None]
_LOOK_S = 0.1
_LONGEST_WAIT_S = 120.0
COMPARING = 4
"""How many times as large a page may be that is read as one that is compared, until kernels are compiled.

Interpreted on a quiet machine, 64 KiB are read in about 0.1 s; 16 KiB that have wholly changed are compared in 0.2 s,
and with a second look in 0.5 s.
"""
_MOST_GROWTH = 3  # bytes of UTF-8 for one of any other encoding, at most
_MOST_AGAIN = 3
_NO_DIGEST = bytes(16)
_STEADY = 2  # times in a row that the server said of a copy that it has not changed


def validators_for(page: PageRow) -> Validators:
    """The validators to send with the next request: those of the copy, unless they lie or an audit is due."""
    stored = Validators(page.etag, page.last_modified)
    return stored if should_send(from_bytes(page.memory).validators, stored) else Validators()


def examine(visit: Visit, at: float, rules: ContentRules = DEFAULT_CONTENT_RULES) -> Examination:
    """Decide what the answer to a fetch means for its page, and fill the visit; see the module.

    Args:
        visit: that was fetched.
        at: the time of the visit.
        rules: what counts as a change.
    """
    page, result = visit.page, visit.answer
    if not visit.is_page:
        _examine_source(visit)
        return
    known = from_bytes(page.memory)
    if result.outcome == "not-modified":
        # It may have been said where a permanent redirect leads: that counts as one more sight of the move.
        kept = replace(_moves(known, result), validators=learn_not_modified(known.validators))
        if kept.page is not None:
            kept = replace(kept, page=replace(seen_again(kept.page, at), visits=kept.page.visits))
        visit.examined("not-modified", "unchanged", result.reason, to_bytes(kept))
    elif not result.has_page:
        visit.examined(result.outcome, None, result.reason, page.memory)
    elif result.soft_404 and page.visits and result.final.url not in (page.validated_url, known.moved_to):
        visit.examined("soft-404", None, "redirected to a page that stands for no page", page.memory)
    elif (
        known.page is not None
        and known.page.signature == rules.signature
        and raw_digest(result.body) == page.raw_digest
    ):
        trust = _trust(known, page, result, changed=False)
        same = replace(_moves(known, result), page=seen_again(known.page, at), validators=trust)
        visit.examined(result.outcome, "unchanged", "", to_bytes(same))
        visit.validators = result.validators
    else:
        yield from _compare(visit, known, at, rules)


def _examine_source(visit: Visit) -> None:
    """Examine a page that is there only for what it leads to: a list is compared by its reader, here by its bytes.

    It is never "first" or "changed", which are events of pages, and no version of it is kept. O(bytes).
    """
    page, result = visit.page, visit.answer
    if result.outcome == "not-modified":
        visit.examined("not-modified", "unchanged", result.reason, page.memory)
    elif not result.has_page:
        visit.examined(result.outcome, None, result.reason, page.memory)
    else:
        digest = raw_digest(result.body)
        visit.examined(result.outcome, "unchanged" if digest == page.raw_digest else "noise", "", page.memory)
        visit.digests = Digests(digest, _NO_DIGEST)
        visit.validators = result.validators


async def drive(visit: Visit, at: float, rules: ContentRules, answer: Callable[[Need], Awaitable[Given]]) -> None:
    """Examine a visit; what it needs is brought by `answer`, at the edge. A page that cannot be read has failed."""
    if visit.is_page:
        await kernels_for(visit.answer)
    steps = examine(visit, at, rules)
    given: Given = None
    while True:
        try:
            need = steps.send(given)
        except StopIteration:
            return
        except Exception as error:  # a page that cannot be read is a failure of that page
            visit.examined("network-error", None, f"what came could not be read: {error!r}", visit.page.memory)
            return
        if isinstance(need, NeedText):
            await kernels_for(visit.answer, COMPARING)
        given = await answer(need)


def _moves(known: DetectionState, result: FetchResult) -> DetectionState:
    """What is known after one more visit of where the page has moved."""
    target = "" if result.moved_to is None else result.moved_to.url
    times = known.moved_times + 1 if target and target == known.moved_to else int(bool(target))
    return replace(known, moved_to=target, moved_times=times)


def _compare(visit: Visit, known: DetectionState, at: float, rules: ContentRules) -> Examination:
    page, result = visit.page, visit.answer
    read, text = _read(result, rules)
    blocked = _block_reason(result, read, rules)
    if blocked:
        visit.examined("blocked-page", None, blocked, page.memory)
        return
    if rules.honour_noindex and not read.metadata.may_index:
        visit.examined("opted-out", None, "the page asks not to be indexed", page.memory)
        return
    previous = None
    if known.page is not None and rules.counts != "raw":  # bodies are compared by their digests
        given = yield NeedText()
        previous = given if isinstance(given, bytes) else None
    # A text published by an older version is compared as it was read then, and replaced once it is known to be current.
    with_lead = known.page is None or known.page.has_headline or known.page.signature != rules.signature
    whole = text
    if not with_lead:
        text = layer_text(rules.counts, result.body, read, with_lead=False)
    sample = Sample(text, previous=previous, fetched_at=at)
    decision = detect(known.page, sample, rules)
    while decision.ask_again and len(visit.refetched) < _MOST_AGAIN and not _is_steady(known, result):
        given = yield NeedAgain()
        if not isinstance(given, FetchResult):
            break
        visit.refetched += (given,)  # it was sent, so it counts
        if not given.has_page:
            break
        sample = replace(sample, again=(*sample.again, _read(given, rules, with_lead=with_lead)[1]))
        decision = detect(known.page, sample, rules)
    if decision.verdict == "changed":
        missing = yield NeedMissing()
        if isinstance(missing, MissingPage) and looks_missing(read, result.address.target, missing):
            visit.examined("soft-404", None, "what came is the host's answer for pages that do not exist", page.memory)
            return
    if not with_lead and decision.verdict != "noise":
        decision = replace(decision, memory=with_headline(decision.memory, whole, is_new=decision.counts_as_change))
    _publish(visit, known, (read, whole, decision))
    if not with_lead and decision.verdict == "unchanged" and whole != text:
        visit.text = whole


def _is_steady(known: DetectionState, result: FetchResult) -> bool:
    """Whether the server said more than once that the page had not changed, and says now that it has.

    What differs from request to request would have shown before, so a second fetch would teach nothing.
    """
    return bool(result.sent) and known.validators.since_audit >= _STEADY


def _block_reason(result: FetchResult, read: Page, rules: ContentRules) -> str:
    """Why what came is a challenge in place of the page, "" if it is the page. Looks at all of it, whatever is kept."""
    whole = _read(result, DEFAULT_CONTENT_RULES)[0] if rules.keep else read
    return block_reason(whole, result.body, result.headers)


def _read(result: FetchResult, rules: ContentRules, *, with_lead: bool = True) -> tuple[Page, bytes]:
    content_type = result.header(b"content-type").decode("latin-1")
    page = read_page(result.body, content_type or None, rules)
    return page, layer_text(rules.counts, result.body, page, with_lead=with_lead)


def _publish(visit: Visit, known: DetectionState, seen: tuple[Page, bytes, Decision]) -> None:
    page, result = visit.page, visit.answer
    read, text, decision = seen
    trust = _trust(known, page, result, changed=decision.verdict == "changed")
    memory = to_bytes(replace(_moves(known, result), page=decision.memory, validators=trust))
    visit.examined(result.outcome, decision.verdict, decision.reason, memory)
    visit.digests = digest_page(result.body, read)
    visit.text = text if decision.verdict in ("first", "changed") else None
    before = None if known.page is None else bytes.fromhex(known.page.digest)
    visit.published = before, bytes.fromhex(decision.memory.digest)
    visit.held = decision.since if decision.verdict == "changed" else None
    visit.validators = result.validators


def _trust(known: DetectionState, page: PageRow, result: FetchResult, *, changed: bool) -> ValidatorTrust:
    if known.page is None:
        return known.validators
    is_same = result.validators == Validators(page.etag, page.last_modified)
    same = result.validators if is_same else NO_VALIDATORS
    answer = FullAnswer(was_conditional=bool(result.sent), text_changed=changed, same_validators=same)
    return learn_full(known.validators, answer)


async def published_text(store: Store, page: PageRow) -> bytes | None:
    """The text that was last published of a page, to be compared; None if it is not kept."""
    packed = await store.read_text(page.id)
    text = None if packed is None else unpacked(packed)
    await _until_compiled(COMPARING * len(text or b""))
    return text


async def kernels_for(result: FetchResult, weight: int = 1) -> None:
    """Wait while kernels for the web are compiled, if a page is so large that interpreting it would stop the loop.

    Args:
        result: has the page.
        weight: 1 if the page is read next, `COMPARING` if it is compared.
    """
    size = weight * len(result.body)
    if not has_to_wait("web", size):
        if not has_to_wait("web", _MOST_GROWTH * size):
            return
        size = weight * _bytes_in_utf8(result)
    await _until_compiled(size)


async def _until_compiled(size: int) -> None:
    """Wait while kernels for the web are compiled, if this many bytes would be interpreted; two minutes at most."""
    for _ in range(int(_LONGEST_WAIT_S / _LOOK_S)):
        if not has_to_wait("web", size):
            return
        await asyncio.sleep(_LOOK_S)


def _bytes_in_utf8(result: FetchResult) -> int:
    """The size of a page as it is read. O(bytes)."""
    content_type = result.header(b"content-type").decode("latin-1") or None
    return len(as_utf8(result.body, read_charset(result.body, content_type)))
