"""Decisions on single pages: what is a change, what is noise, and what is remembered."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.errors import InvalidInput
from recrawl.web.change.detect import Decision, Visit, detect
from recrawl.web.change.diff import diff_text
from recrawl.web.change.returning import MOST_GONE
from recrawl.web.change.variants import MOST_VARIANTS, PageMemory
from recrawl.web.change.volatile import MOST_SLOTS
from recrawl.web.content.rules import ContentRules

STORY = "\nThe quick brown fox jumps over the lazy dog\nand the story goes on for quite a while\n"


class Follower:
    """Keeps what a store would keep: the memory, and the text last published."""

    def __init__(self, rules: ContentRules | None = None) -> None:
        self.rules = rules or ContentRules()
        self.memory: PageMemory | None = None
        self.published: bytes | None = None

    def see(self, text: str, again: str | None = None, at: float | None = None) -> Decision:
        second = () if again is None else ((again + STORY).encode(),)
        decision = detect(self.memory, Visit((text + STORY).encode(), self.published, second, at), self.rules)
        self.memory = PageMemory.from_dict(json.loads(json.dumps(decision.memory.to_dict())))
        if decision.verdict in ("first", "changed"):
            self.published = (text + STORY).encode()
        return decision

    def verdicts(self, *texts: str) -> list[str]:
        return [self.see(text).verdict for text in texts]


def test_the_first_visit_is_a_baseline_and_the_same_text_no_change() -> None:
    page = Follower()
    assert page.verdicts("Price $10", "Price $10", "Price  $10") == ["first", "unchanged", "unchanged"]


def test_an_edit_is_a_change_once() -> None:
    assert Follower().verdicts("old", "new", "new") == ["first", "changed", "unchanged"]


def test_a_price_that_goes_back_is_a_change_each_time() -> None:
    verdicts = Follower().verdicts(*["Price $10", "Price $8", "Price $10", "Price $8", "Price $10"])
    assert verdicts == ["first", "changed", "changed", "changed", "changed"]


def test_an_emphasised_word_is_no_change() -> None:
    assert Follower().verdicts("Good day, all", "Good\nday\n, all") == ["first", "unchanged"]


def test_what_a_second_fetch_shows_as_volatile_is_noise_from_then_on() -> None:
    page = Follower()
    page.see("Token aa11 end")
    asking = detect(page.memory, Visit(("Token bb22 end" + STORY).encode(), page.published))
    assert asking.ask_again
    decision = page.see("Token bb22 end", again="Token cc33 end")
    assert (decision.verdict, decision.reason, decision.counts_as_change) == ("noise", "volatile", False)
    assert page.verdicts("Token dd44 end", "Token ee55 end") == ["noise", "noise"]
    assert page.see("Token ff66 end new words").counts_as_change
    assert page.verdicts("Token aa11 end new words") == ["noise"]


def test_a_text_that_a_second_fetch_no_longer_shows_flips_back() -> None:
    page = Follower()
    page.see("Stock 5 pieces")
    decision = page.see("Stock 7 pieces", again="Stock 5 pieces")
    assert (decision.verdict, decision.reason) == ("noise", "flips-back")
    assert page.see("Stock 7 pieces").reason == "known-variant"
    assert page.see("Stock 5 pieces").verdict == "unchanged"


def test_a_page_that_stays_on_a_variant_has_changed_after_all() -> None:
    page = Follower()
    page.see("Stock 5 pieces")
    page.see("Stock 7 pieces", again="Stock 5 pieces")
    decisions = [page.see("Stock 7 pieces") for _ in range(12)]
    first = next(number for number, each in enumerate(decisions) if each.counts_as_change)
    assert decisions[first].reason == "settled"
    assert 1 <= first <= 9
    assert {each.verdict for each in decisions[first + 1 :]} == {"unchanged"}


def test_a_line_that_comes_and_goes_is_noise_after_a_while_also_across_edits() -> None:
    page = Follower()
    one, other = "Free delivery for members", "Members save on delivery"
    page.verdicts(f"{one}\nfirst", f"{other}\nfirst", f"{one}\nsecond", f"{other}\nthird", f"{one}\nfourth")
    page.verdicts(f"{other}\nfifth", f"{one}\nsixth")
    assert page.verdicts(f"{other}\nsixth", f"{one}\nsixth") == ["noise", "unchanged"]
    assert page.verdicts(f"{other}\nseventh") == ["changed"]


def test_a_line_that_comes_back_is_noise_at_once_but_not_an_edit_beside_it() -> None:
    page = Follower()
    one, other = "Free delivery for members", "Members save on delivery"
    assert page.verdicts(f"{one}\nfirst", f"{other}\nfirst", f"{other}\nsecond") == ["first", "changed", "changed"]
    assert page.see(f"{one}\nsecond").reason == "flips-back"
    assert page.verdicts(f"{one}\nthird") == ["changed"]


def test_a_paragraph_that_is_taken_away_while_a_known_line_comes_back_is_a_change() -> None:
    page = Follower()
    one, other = "Free delivery for members", "Members save on delivery"
    page.verdicts(f"{one}\nlasting words", f"{other}\nlasting words", f"{other}\nlasting words\nmore")
    assert page.verdicts(f"{one}\nmore") == ["changed"]


def test_up_to_three_further_fetches_tell_a_page_with_two_texts() -> None:
    page = Follower()
    page.see("Add to your cart")
    new, old = (("Buy it now" + STORY).encode(), page.published)
    for asked in range(3):
        assert detect(page.memory, Visit(new, old, (new,) * asked)).ask_again
    assert not detect(page.memory, Visit(new, old, (new,) * 3)).ask_again
    assert detect(page.memory, Visit(new, old, (new, new, old or b""))).verdict == "noise"


def test_ages_and_clocks_pass_without_a_second_fetch_but_opening_hours_do_not() -> None:
    page = Follower()
    page.see("Posted 2 hours ago by Ann\nopen from 09:00", at=0.0)
    assert page.see("Posted 5 hours ago by Ann\nopen from 09:00", at=3 * 3600.0).verdict == "noise"
    assert page.see("Posted 1 day ago by Ann\nopen from 10:00", at=24 * 3600.0).verdict == "changed"


def test_without_learning_every_difference_counts() -> None:
    page = Follower(ContentRules(learn_noise=False))
    assert page.verdicts("at 10:00:00", "at 10:00:01", "at 10:00:00") == ["first", "changed", "changed"]


def test_where_raw_bytes_count_every_difference_is_a_change_and_none_is_looked_into() -> None:
    """A body may be of many mebibytes: no second fetch is asked for, and no copy of it is made to split or align."""
    rules = ContentRules(counts="raw")
    body = b"<p>It is 10:00:00 here</p>\n" * 100_000
    clock, spaces = body.replace(b":00", b":01"), body.replace(b"\n", b" \n")
    memory, decisions = None, []
    tracemalloc.start()
    try:
        for text in (body, body, clock, spaces, body):
            decisions.append(detect(memory, Visit(text, previous=body, fetched_at=0.0), rules))
            memory = decisions[-1].memory
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [each.verdict for each in decisions] == ["first", "unchanged", "changed", "changed", "changed"]
    assert not any(each.ask_again for each in decisions)
    assert decisions[-1].memory.visits == 5
    assert peak_bytes < len(body) / 10
    other = detect(memory, Visit(body), ContentRules(counts="raw", drop=("p",)))
    assert (other.verdict, other.reason) == ("first", "new-rules")


def test_other_rules_start_a_page_anew_without_an_event() -> None:
    page = Follower()
    page.see("old")
    page.rules = ContentRules(drop=(".ad",))
    decision = page.see("new")
    assert (decision.verdict, decision.reason) == ("first", "new-rules")


def test_without_the_published_text_a_change_is_still_seen() -> None:
    memory = detect(None, Visit(b"old words here")).memory
    assert detect(memory, Visit(b"new words here")).verdict == "changed"
    assert detect(memory, Visit(b"old words here")).verdict == "unchanged"


def test_second_fetches_are_rare_on_a_page_that_truly_changes() -> None:
    page, asked = Follower(), 0
    page.see("version 0")
    for number in range(1, 201):
        text = f"version{number}"
        if detect(page.memory, Visit((text + STORY).encode(), page.published)).ask_again:
            asked += 1
            page.see(text, again=text)
        else:
            page.see(text)
    assert 1 <= asked <= 9


def test_second_fetches_stay_within_their_share() -> None:
    rules = ContentRules(second_fetch_share=0.0)
    page, asked = Follower(rules), 0
    for number in range(40):
        decision = detect(page.memory, Visit((f"$ {number}" + STORY).encode(), page.published), rules)
        asked += decision.ask_again
        page.see(f"$ {number}", again=f"$ {number + 1000}" if decision.ask_again else None)
    assert asked == 3


@pytest.mark.parametrize("broken", [{}, {"digest": "x"}, {"slots": [[1]]}])
def test_a_broken_memory_is_refused(broken: dict[str, object]) -> None:
    plain = detect(None, Visit(b"x")).memory.to_dict() | broken if broken else broken
    with pytest.raises(InvalidInput, match="the page starts anew"):
        PageMemory.from_dict(plain)


WORDS = st.lists(st.sampled_from(["a", "b", "$1", "$2", "12:00:01", "12:00:02", "\n", "views", "漢"]), max_size=9)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(WORDS, st.none() | WORDS), min_size=2, max_size=12))
def test_no_event_has_an_empty_diff_and_memory_stays_small(visits: list[tuple[list[str], list[str] | None]]) -> None:
    page = Follower()
    for words, again in visits:
        before = page.published
        decision = page.see(" ".join(words), None if again is None else " ".join(again), 0.0)
        if decision.verdict == "changed":
            assert before is not None
            assert diff_text(before, (" ".join(words) + STORY).encode())
        memory = decision.memory
        assert len(memory.slots) <= MOST_SLOTS
        assert len(memory.variants) <= MOST_VARIANTS
        assert len(memory.gone) <= MOST_GONE
