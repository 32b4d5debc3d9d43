"""The view of a demo: a line until there is something to compare, then figures that mean something."""

from __future__ import annotations

import gc
import re
import sys
from dataclasses import dataclass, field
from types import FrameType, SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from recrawl.lab.demo.race import Race, Sample, Standing
from recrawl.lab.demo.running import Show
from recrawl.lab.demo.scene import Scene
from recrawl.lab.demo.view import picture
from recrawl.lab.livingweb.world import LivingWorld

EPOCH = 1_767_225_600


@dataclass
class Looked:
    """As much of a demo as the view looks at, with a tracker that fetches page after page."""

    scene: Scene = field(default_factory=lambda: Scene(pages=100, budget_per_s=10.0))
    seconds: float = 0.0
    price: float = 2.65e-151
    behind: str = ""
    link: str = "http://localhost/login#x"

    def __post_init__(self) -> None:
        self.race = Race(LivingWorld(self.scene.world(EPOCH)), self.scene.budget_per_day, EPOCH)
        self.web = SimpleNamespace(clock=lambda: EPOCH + self.seconds * self.scene.speedup)
        self.fetcher = SimpleNamespace(changes=7, errors=0)

    def standing(self) -> Standing:
        return self.race.standing(self.seconds * 2 / 3)

    def run(self, seconds: int, width: int = 160) -> str:
        """Go on for so many seconds, and show."""
        for _ in range(seconds):
            self.seconds += 1
            for page in range(10):
                place = self.race.truth.pages[(10 * int(self.seconds) + page) % len(self.race.truth.pages)]
                self.race.ours.made_at(place, self.web.clock())
            self.race.sample(self.web.clock(), self.seconds, 10)
        console = Console(width=width)
        with console.capture() as taken:
            console.print(picture(cast("Show", self)))
        return taken.get()


def test_the_first_frame_says_what_is_being_done() -> None:
    shown = Looked().run(0)
    assert "Fetching first copies: 0 of" in shown
    assert "round robin" not in shown
    assert "e-151" not in shown


def test_figures_that_are_not_known_yet_are_a_dash() -> None:
    """In the first round there is neither a price nor a gap."""
    looked = Looked()
    early = looked.run(3)
    assert "price –" in early
    assert "closed –" in early
    assert "recrawl" in early
    looked.price = 0.5
    later = looked.run(20)
    assert "price 0.5 fresh clicks" in later
    assert "%" in later.rpartition("closed ")[2]


def test_it_says_when_the_machine_cannot_keep_up_and_what_time_is() -> None:
    looked = Looked(behind="This machine makes 6 of 10 requests a second; all three get the same 6.")
    shown = looked.run(20)
    assert looked.behind in shown
    assert "1 s here is 30 min of the web's time" in shown
    assert f"{len(looked.race.truth.pages)} pages on {looked.race.hosts} hosts, 10 requests a second" in shown
    assert looked.race.hosts <= 10


def test_a_narrow_terminal_shows_the_whole_course() -> None:
    """In fewer bars, of which the last is the newest: nothing is cut off."""
    looked = Looked()
    shown = looked.run(100, width=80)
    rows = [line for line in shown.splitlines() if line.strip().startswith(("recrawl ", "round robin", "optimum"))]
    bars = [re.search(r"% +([ ▁▂▃▄▅▆▇█]+)$", row) for row in rows]
    assert len(bars) == 3
    assert all(each is not None and 10 < len(each[1]) < 40 for each in bars)
    assert "…" not in shown


@pytest.mark.parametrize(("made", "said"), [(200, ""), (63, "This machine makes 63 of 200 requests a second")])
def test_behind_is_told_by_the_requests_of_the_last_seconds(made: int, said: str) -> None:
    show = Show.__new__(Show)
    show.scene = Scene(pages=100, budget_per_s=200.0, crawls_a_change=2.0)
    show.race = Race(LivingWorld(show.scene.world(EPOCH)), show.scene.budget_per_day, EPOCH)
    for second in range(1, 12):
        show.race.sample(EPOCH + second * 10.0, float(second), made)
    assert show.behind.startswith(said)
    assert bool(show.behind) == bool(said)


def steps_of_a_look(looked: Looked) -> int:
    """Lines that run while a view is made, each turn of a loop for itself, on a machine of any speed."""
    count = 0

    def step(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        looked.run(0)
    finally:
        sys.settrace(before)
    return count


def test_a_long_demo_takes_no_more_memory_or_work_a_look_than_a_short_one() -> None:
    looked = Looked()
    looked.run(200)
    steps = steps_of_a_look(looked)
    for quarter in range(1, 12_001):
        looked.race.sample(EPOCH + 200 + quarter * 0.25, 200 + quarter * 0.25)
    looked.seconds = 200 + 3000.0
    assert steps_of_a_look(looked) < 1.5 * steps
    gc.collect()
    assert sum(type(each) is Sample for each in gc.get_objects()) < 6000
