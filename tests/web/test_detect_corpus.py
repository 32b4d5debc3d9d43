"""A seeded corpus of pages with every kind of noise and known true edits: how often the detector is wrong."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from recrawl.web.change.detect import Visit, detect
from recrawl.web.change.diff import diff_text
from recrawl.web.change.digests import layer_text
from recrawl.web.content.page import read_page
from recrawl.web.content.rules import ContentRules

WORDS = [
    f"{start}{middle}{end}"
    for start in ("ba", "co", "du", "fe", "gri", "ho", "ka", "lu", "me", "no", "pra", "ri", "sto", "tu", "ve")
    for middle in ("l", "m", "nd", "r", "st", "t")
    for end in ("a", "en", "i", "o", "ing", "us")
]
KINDS = (
    "plain", "clock", "minutes", "date", "age", "nonce", "request-id", "ads", "priced-ads", "variants",
    "views", "fast-views", "csrf", "related", "mixed",
)  # fmt: skip
START = 1_790_000_000.0
HOUR = 3600.0


@dataclass
class NoisyPage:
    """A page with one kind of noise (or several) whose content changes only by `edit`."""

    kind: str
    seed: int
    paragraphs: list[str] = field(default_factory=list)
    price: int = 1999
    edits: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(f"{self.kind}-{self.seed}")
        self.paragraphs = [self.sentence(30) for _ in range(8)]
        self.titles = [self.sentence(4) for _ in range(12)]
        self.adverts = [self.sentence(9) for _ in range(6)]

    def sentence(self, count: int) -> str:
        return " ".join(self.rng.choice(WORDS) for _ in range(count))

    def edit(self) -> str:
        """One true edit: words, a sentence, a paragraph, or the price alone."""
        self.edits += 1
        what = self.rng.choice(("word", "sentence", "paragraph", "removed", "price", "price"))
        row = self.rng.randrange(len(self.paragraphs))
        if what == "price":
            self.price += self.rng.choice((-100, -1, 1, 250))
        elif what == "word":
            words = self.paragraphs[row].split()
            words[self.rng.randrange(len(words))] = f"edited{self.edits}"
            self.paragraphs[row] = " ".join(words)
        elif what == "sentence":
            self.paragraphs[row] += f" {self.sentence(6)}."
        elif what == "removed" and len(self.paragraphs) > 4:
            del self.paragraphs[row]
        else:
            self.paragraphs.insert(row, self.sentence(25))
        return what

    def html(self, at: float) -> str:
        """The page as one request at a time gets it."""
        has = {self.kind} if self.kind != "mixed" else {"clock", "ads", "fast-views", "related", "nonce"}
        parts = [*self.top(has, datetime.fromtimestamp(at, UTC)), *self.offer(has, at)]
        for row, paragraph in enumerate(self.paragraphs):
            parts += [f"<p>{paragraph}</p>", *(self.advert(has) if row == 2 else ())]
        return "".join([*parts, *self.bottom(has, at), "</main><footer>Imprint</footer></body></html>"])

    def top(self, has: set[str], now: datetime) -> Iterator[str]:
        yield "<html><head><title>Shop</title>"
        if "nonce" in has:
            yield f"<script nonce={self.rng.getrandbits(64):x}>var t={self.rng.getrandbits(64)}</script>"
        yield "</head><body><nav><a href=/>Home</a></nav><main><h1>Offer of the shop</h1>"
        if "clock" in has:
            yield f"<p>Server time <b>{now:%H:%M:%S}</b> in town</p>"
        if "minutes" in has:
            yield f"<p>It is {now:%H:%M} in town</p>"
        if "date" in has:
            yield f"<p>Today is {now:%A}, {now:%B} {now.day}, {now.year} for all</p>"

    def offer(self, has: set[str], at: float) -> Iterator[str]:
        if "age" in has:
            yield f"<p>Posted {int((at - START) / HOUR) + 2} hours ago by Ann</p>"
        yield f"<div class=row><h2>Lamp</h2><span>Price:</span> <span>${self.price / 100:.2f}</span></div>"
        if "variants" in has:
            yield f"<button>{self.rng.choice(('Buy it now', 'Add to your cart'))}</button>"
        if "csrf" in has:
            yield f"<form><input type=hidden name=csrf value={self.rng.getrandbits(128):x}><input name=q></form>"

    def advert(self, has: set[str]) -> Iterator[str]:
        text = self.rng.choice(self.adverts)
        if "ads" in has:
            yield f"<div class=ad>Sponsored <a href=/ad>{text}</a> end</div>"
        if "priced-ads" in has:
            yield f"<div>Sponsored <a href=/ad>{text} ${self.rng.randint(5, 99)}.00</a> end</div>"

    def bottom(self, has: set[str], at: float) -> Iterator[str]:
        if "views" in has:
            yield f"<p>{1000 + int((at - START) / 977)} views so far</p>"
        if "fast-views" in has:
            yield f"<p>Zugriffe: {50_000 + int(at - START)} insgesamt</p>"
        if "request-id" in has:
            yield f"<p>Request <code>{self.rng.getrandbits(48):012x}</code> served</p>"
        if "related" in has:
            links = "".join(f"<li><a href=/r/{title[:4]}>{title}</a></li>" for title in self.rng.sample(self.titles, 5))
            yield f"<h3>Related reading</h3><ul>{links}</ul><p>That is all of it.</p>"


@dataclass
class Result:
    """Counts over a corpus."""

    visits: int = 0
    quiet: int = 0
    false_events: Counter[str] = field(default_factory=Counter)
    true_changes: int = 0
    missed: Counter[str] = field(default_factory=Counter)
    second_fetches: int = 0
    empty_diffs: int = 0


def run_page(kind: str, seed: int, visits: int, result: Result, rules: ContentRules) -> None:
    """Visit a page every few hours; a third of the visits come after one true edit."""
    page, memory, published = NoisyPage(kind, seed), None, b""
    schedule = random.Random(seed)
    at, pending = START, ""

    def fetch(when: float) -> bytes:
        body = page.html(when).encode()
        return layer_text(rules.counts, body, read_page(body, "text/html", rules))

    for number in range(visits):
        at += schedule.uniform(1.0, 12.0) * HOUR
        edited = number > 0 and schedule.random() < 1 / 3
        if edited:
            pending = page.edit()
        text = fetch(at)
        previous = published if number else None
        again: tuple[bytes, ...] = ()
        decision = detect(memory, Visit(text, previous, again, at), rules)
        while decision.ask_again:
            result.second_fetches += 1
            again = (*again, fetch(at + len(again) + 1))
            decision = detect(memory, Visit(text, previous, again, at), rules)
        memory = decision.memory
        result.visits += 1
        result.quiet += not edited
        result.true_changes += edited
        if decision.counts_as_change:
            result.empty_diffs += not diff_text(published, text)
            if not pending:
                result.false_events[kind] += 1
            pending = ""
        elif edited:
            result.missed[f"{kind}:{pending}"] += 1
        if decision.verdict in ("first", "changed"):
            published = text


def run_corpus(seeds: range, visits: int, rules: ContentRules) -> Result:
    result = Result()
    for kind in KINDS:
        for seed in seeds:
            run_page(kind, seed, visits, result, rules)
    return result


def test_noise_makes_few_events_and_true_edits_are_found() -> None:
    """Under 1 % false events of the visits without an edit, at least 99 % of the edits found at the next visit."""
    result = run_corpus(range(3), 40, ContentRules())
    assert result.empty_diffs == 0
    assert sum(result.false_events.values()) < 0.01 * result.quiet, result
    assert sum(result.missed.values()) <= 0.01 * result.true_changes, result
    assert result.second_fetches < 0.25 * result.visits  # of the first 40 visits of pages of which nearly all are noisy


def test_without_learning_the_same_corpus_is_full_of_false_events() -> None:
    """The corpus is noisy: what the detector is held to is not free."""
    result = run_corpus(range(1), 20, ContentRules(learn_noise=False))
    assert sum(result.false_events.values()) > 0.3 * result.quiet
    assert not result.missed
