"""Decisions on single pages: what is a change, what is noise, and what is remembered."""

from __future__ import annotations

import json
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.errors import InvalidInput
from recrawl.web.change.detect import FREE_PAIRS, Decision, PageMemory, Visit, detect, volatile_words
from recrawl.web.change.diff import diff_text
from recrawl.web.change.places import MOST_PLACES, MOST_WATCHED
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


def learn(page: Follower, form: str, visits: int = 3) -> list[str]:
    """Show a page whose every fetch has another token, each visit with a close pair; the reasons."""
    page.see(form.format("aa10"))
    return [page.see(form.format(f"bb{n}1"), again=form.format(f"cc{n}2")).reason for n in range(visits)]


def test_a_place_is_volatile_when_three_pairs_at_different_visits_differed_there() -> None:
    page = Follower()
    assert learn(page, "Token {} end") == ["held", "held", "volatile"]
    assert page.verdicts("Token dd44 end", "Token ee55 end") == ["noise", "noise"]
    assert page.see("Token ff66 end new words").counts_as_change
    assert page.verdicts("Token aa11 end new words") == ["noise"]


def test_three_further_fetches_of_one_visit_are_one_pair() -> None:
    page = Follower()
    page.see("Token aa11 end")
    texts = [(f"Token bb{n} end" + STORY).encode() for n in range(4)]
    decision = detect(page.memory, Visit(texts[0], page.published, tuple(texts[1:])))
    assert [place.differed for place in decision.memory.places] == [1]


def test_one_steady_pair_clears_a_place_and_publishes_what_was_held_with_its_time() -> None:
    page = Follower()
    page.see("Bid 7 now", at=100.0)
    page.see("Bid 7 now", at=200.0)
    assert page.see("Bid 8 now", again="Bid 9 now", at=300.0).reason == "held"
    decision = page.see("Bid 10 now", again="Bid 10 now", at=400.0)
    assert decision.counts_as_change
    assert decision.since == (200.0, 300.0)
    assert page.see("Bid 11 now", at=500.0).counts_as_change


def test_what_is_held_is_dropped_when_the_page_shows_the_published_words_again() -> None:
    page = Follower()
    page.see("Bid 7 now", at=100.0)
    page.see("Bid 8 now", again="Bid 9 now", at=300.0)
    assert page.see("Bid 7 now", at=400.0).verdict == "unchanged"
    decision = page.see("Bid 10 now", again="Bid 10 now", at=500.0)
    assert (decision.verdict, decision.since) == ("changed", None)


def test_what_is_held_for_long_without_a_pair_is_published() -> None:
    page = Follower()
    page.see("Bid 7 now")
    page.see("Bid 8 now", again="Bid 9 now")
    assert 1 <= page.verdicts(*(f"Bid {n} now" for n in range(10, 20))).index("changed") <= 7


def test_a_volatile_place_is_released_by_steady_pairs() -> None:
    page = Follower()
    learn(page, "Token {} end")
    decisions = [page.see(f"Token {n} end", again=f"Token {n} end") for n in range(100, 104)]
    assert [each.counts_as_change for each in decisions].index(True) in (1, 2)
    assert page.see("Token 999 end").counts_as_change


def test_a_place_that_was_steady_before_needs_more_pairs() -> None:
    page = Follower()
    page.see("Bid 1 now")
    page.see("Bid 2 now", again="Bid 3 now")
    page.see("Bid 4 now", again="Bid 4 now")
    reasons = [page.see(f"Bid {n}00 now", again=f"Bid {n}50 now").reason for n in range(1, 6)]
    assert reasons == ["held", "held", "held", "volatile", "volatile"]


def test_pairs_go_on_for_volatile_places_ever_more_rarely() -> None:
    page, asked = Follower(), []
    learn(page, "Token {} end")
    for number in range(300):
        text = f"Token {number} end"
        again = detect(page.memory, Visit((text + STORY).encode(), page.published)).ask_again
        asked += [number] if again else []
        page.see(text, again=f"Token {number + 1000} end" if again else None)
    gaps = [later - one for one, later in pairwise(asked)]
    assert gaps == sorted(gaps)
    assert 4 <= len(asked) <= 12


def test_the_words_of_a_volatile_place_can_be_shown() -> None:
    page = Follower()
    learn(page, "Token {} end")
    assert page.memory is not None
    assert volatile_words(page.memory, page.published) == ["aa10"]
    assert volatile_words(page.memory, b"another text") == []


def test_numbers_alone_are_noise_where_only_numbers_were_seen_and_no_more_lines_than_were_seen() -> None:
    page = Follower()
    learn(page, "Stock\n{} pieces\nin town")
    assert page.see("Stock\n77 pieces\nin town").verdict == "noise"
    assert page.see("Stock\nno pieces\nin town").verdict == "changed"


def test_a_text_that_a_further_fetch_no_longer_shows_flips_back() -> None:
    page = Follower()
    page.see("Add to your cart")
    decision = page.see("Buy it now", again="Add to your cart")
    assert (decision.verdict, decision.reason) == ("noise", "flips-back")
    assert page.see("Buy it now").reason in ("held", "flips-back")
    assert page.see("Add to your cart").verdict == "unchanged"


def test_a_text_that_pairs_show_steady_is_news_although_it_flipped_once() -> None:
    page = Follower()
    page.see("Sold out")
    page.see("In stock", again="Sold out")
    found = [page.see("In stock", again="In stock").verdict for _ in range(8)]
    assert found.count("changed") == 1


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
    assert 1 <= asked <= 12


def test_second_fetches_stay_within_their_share() -> None:
    rules = ContentRules(second_fetch_share=0.0)
    page, asked = Follower(rules), 0
    for number in range(80):
        decision = detect(page.memory, Visit((f"No {number}" + STORY).encode(), page.published), rules)
        asked += decision.ask_again
        page.see(f"No {number}", again=f"No {number + 1000}" if decision.ask_again else None)
    assert asked <= FREE_PAIRS


FORM_1 = {
    "signature": ContentRules().signature,
    "digest": "ab" * 16,
    "exact": "cd" * 16,
    "published_at": 12.5,
    "slots": [[1, 2, 3, 2, 1, 4, 1, 0]],
    "variants": [["ef" * 16, True]],
    "gone": [[5, 2, 1]],
    "at_published": 3,
    "elsewhere": 1,
    "away": 0,
    "visits": 40,
    "asked": 4,
    "fruitless": 1,
    "waited": 2,
}


def test_a_memory_of_the_form_before_goes_on_without_its_slots() -> None:
    memory = PageMemory.from_dict(FORM_1)
    kept = (memory.digest, memory.exact, memory.published_at, memory.visits, memory.asked, memory.has_headline)
    assert kept == ("ab" * 16, "cd" * 16, 12.5, 40, 4, False)
    assert memory.places == ()
    old, new = (f"{words}{STORY}".encode() for words in ("old words", "new words"))
    decision = detect(memory, Visit(new, old))
    assert (decision.verdict, decision.memory.visits) == ("changed", 41)
    assert PageMemory.from_dict(json.loads(json.dumps(decision.memory.to_dict()))) == decision.memory


@pytest.mark.parametrize("broken", [{}, {"exact": "x"}, {"places": [[]]}, {"form": 3}])
def test_a_broken_memory_is_refused(broken: dict[str, object]) -> None:
    plain = detect(None, Visit(b"x")).memory.to_dict() | broken if broken else broken
    with pytest.raises(InvalidInput, match="the page starts over"):
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
        assert len(memory.places) <= MOST_PLACES + MOST_WATCHED
