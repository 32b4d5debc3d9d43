"""What only looks like noise and is content: it is reported, and no place goes blind."""

from __future__ import annotations

import random
from calendar import timegm
from itertools import count, pairwise

import pytest

from recrawl.web.change.detect import Decision, PageMemory, Visit, detect
from recrawl.web.change.diff import diff_text

STORY = "".join(f"\nThe {word} fox jumps over the lazy dog and goes on for a while" for word in ("red", "old", "sly"))
SATURDAY = float(timegm((2026, 11, 14, 9, 0, 0)))
HOUR, DAY = 3600.0, 86_400.0


class Page:
    """Follows one page; each further fetch that is asked for shows the same text, unless others are given."""

    def __init__(self, step: float = DAY) -> None:
        self.memory: PageMemory | None = None
        self.published: bytes | None = None
        self.times = (SATURDAY + step * number for number in count())

    def see(self, words: str, *again: str) -> Decision:
        text, at = self.text(words), next(self.times)
        seen = tuple(map(self.text, again))
        decision = detect(self.memory, Visit(text, self.published, seen, at))
        while decision.ask_again and not again:
            seen = (*seen, text)
            decision = detect(self.memory, Visit(text, self.published, seen, at))
        if decision.verdict == "changed":
            assert self.published is not None
            assert diff_text(self.published, text)
        self.memory = decision.memory
        if decision.verdict in ("first", "changed"):
            self.published = text
        return decision

    def text(self, words: str) -> bytes:
        return f"{STORY}\n{words}\nThe imprint stays as it is{STORY.replace('fox', 'cat')}".encode()

    def verdicts(self, *texts: str) -> list[str]:
        return [self.see(text).verdict for text in texts]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Release planned for {}", ["June", "July", "never, it was cancelled"]),
        ("Release planned for {}", ["November", "December", "2027"]),
        ("World record: {}", ["2:01:39", "2:01:09", "2:00:35"]),
        ("Minimum wage table for {}", ["2025", "2026", "2027"]),
        ("Seats left: {}", ["14", "15", "sold out", "15 more added"]),
        ("Sale ends {}", ["today", "now", "in three weeks"]),
        ("Next meeting: {}", ["Monday", "Tuesday", "cancelled"]),
        ("Applications close on {}", ["2026-12-01T12:00:00", "2027-01-15T12:00:00", "further notice"]),
        ("Departure {}", ["10:31:00", "10:45:30", "cancelled"]),
        ("Available online\n{}\nIn shops", ["12", "0"]),
        ("Places online: {}", ["10", "3", "sold out"]),
        ("Career hits: {}", ["2000", "2001"]),
        ("Number of visits required: {}", ["5", "4"]),
        ("Offer valid for orders placed {} days ago", ["3", "30"]),
        ("Score\n{}\nfinal", ["1\n11", "11\n1"]),
    ],
)
def test_dates_clocks_and_numbers_that_are_content_are_reported(line: str, words: list[str]) -> None:
    verdicts = Page().verdicts(*(line.format(each) for each in words))
    assert verdicts == ["first", *["changed"] * (len(words) - 1)]


@pytest.mark.parametrize(
    ("line", "passing", "content"),
    [
        ("Today is {}", ["Saturday, 14 November", "Sunday, 15 November"], "closed for good"),
        ("It is {} here", ["09:00:03", "09:00:04"], "too late"),
        ("Posted {}", ["2 hours ago", "1 day ago"], "by mistake"),
        ("Seen {} views", ["10", "11"], "in no"),
    ],
)
def test_a_place_where_time_passes_does_not_go_blind(line: str, passing: list[str], content: str) -> None:
    page = Page()
    assert page.verdicts(*(line.format(each) for each in passing)) == ["first", "noise"]
    assert page.see(line.format(content)).verdict == "changed"


def test_a_date_that_agrees_with_the_fetches_by_chance_is_reported_once_it_no_longer_does() -> None:
    """A release on the day of each fetch; then the date stands still, as that of today would not."""
    page = Page()
    dates = ["2026-11-14", "2026-11-15", "2026-11-15", "2026-11-15"]
    assert page.verdicts(*(f"Released on {date}" for date in dates)) == ["first", "noise", "changed", "unchanged"]


def test_a_clock_that_a_second_fetch_shows_is_not_learned_as_a_place_for_any_words() -> None:
    page = Page(HOUR)
    page.see("Updated 09:00:00 status green")
    page.see("Updated 10:00:00 status green", "Updated 10:00:07 status green")
    assert page.see("Updated 11:00:00 status red").verdict == "changed"
    assert page.see("Updated never status red").verdict == "changed"


ADVERTS = ("Buy red shoes now from shops", "Visit sunny beaches in our town", "Try our tasty new burgers")


@pytest.mark.parametrize(
    "text",
    [
        f"Press office\n{ADVERTS[0]} Read on",
        f"Press office {ADVERTS[0]}\nRead on",
        f"Press office {ADVERTS[0].replace('shoes', 'shoes' + chr(10))}\nRead on",
    ],
)
def test_the_published_words_in_other_lines_are_no_change_also_after_noise(text: str) -> None:
    page = Page()
    one, other, third = (f"Press office\n{advert}\nRead on" for advert in ADVERTS)
    page.see(one)
    assert page.see(other, third).verdict == "noise"
    assert page.see(text).verdict == "unchanged"


def test_news_beside_a_learned_advertisement_are_reported_and_followed() -> None:
    page = Page()
    page.see(f"Press office\n{ADVERTS[0]}\nRead on")
    for _ in range(3):
        page.see(f"Press office\n{ADVERTS[1]}\nRead on", f"Press office\n{ADVERTS[2]}\nRead on")
    for news in ("The factory closes\n", "The factory opens\n", "The factory opens\nAll are glad\n"):
        one, other, third = (f"Press office\n{news}{advert}\nRead on" for advert in ADVERTS)
        assert page.see(one, other).verdict == "changed"
        assert page.see(third, one).verdict == "noise"


def test_a_state_that_comes_back_is_reported_each_time() -> None:
    page = Page()
    assert page.verdicts(*["In stock", "Sold out"] * 10) == ["first", *["changed"] * 19]


def test_two_texts_that_take_turns_by_the_hour_are_news_each_time() -> None:
    """They stay for hours: whoever looks twice within a second sees the same."""
    page = Page(HOUR)
    texts = [("Free delivery for members", "Members save on delivery")[int(hour / 3.4) % 2] for hour in range(60)]
    turns = sum(one != other for one, other in pairwise(texts))
    assert page.verdicts(*texts).count("changed") == turns > 10


def test_banners_that_rotate_are_noise_once_three_were_seen() -> None:
    page, chance = Page(HOUR), random.Random(1)
    banners = [chance.choice((*ADVERTS, "Learn to sail with friends")) for _ in range(60)]
    assert page.verdicts(*banners)[30:].count("changed") == 0


def test_a_banner_that_stays_is_reported_after_all() -> None:
    page = Page(HOUR)
    page.verdicts(*ADVERTS, *ADVERTS)
    assert page.verdicts(*[ADVERTS[1]] * 12).count("changed") == 1


def test_a_price_that_comes_and_goes_is_a_change_each_time() -> None:
    prices = ["free of charge", "$12.00", "free of charge", "$12.00", "free of charge"]
    assert Page().verdicts(*(f"Entrance {price}" for price in prices)) == ["first", *["changed"] * 4]
