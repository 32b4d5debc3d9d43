"""The documentation lists every measure of every group, in order, with its unit and bound."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from recrawl.bench.groups import GROUPS, measures_of

_TEXT = (Path(__file__).parents[2] / "docs" / "bench.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("group", GROUPS)
def test_documented_measures_are_the_measures(group: str) -> None:
    """Name, unit and bound in the table of the group's section are those in the code."""
    section = re.split(r"^## ", _TEXT, flags=re.MULTILINE)
    text = next(part for part in section if part.startswith(f"{group}\n"))
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| .+ \|$", text, flags=re.MULTILINE)
    assert rows == [(measure.name, measure.unit, str(measure.bound)) for measure in measures_of(group)]


def test_each_policy_of_the_simulator_is_documented_with_what_it_reached_and_a_margin_above_its_own_floor() -> None:
    held = {each.name: each.bound for each in measures_of("simulation") if each.bound.on == "ratio"}
    rows = re.findall(r"^\| [^|]+ \| `(\w+)` \| ([\d.]+) to [\d.]+ \|$", _TEXT, flags=re.MULTILINE)
    assert {name for name, _ in rows} == set(held)
    for name, least in rows:
        floor = held[name].floor
        assert floor is not None
        assert float(least) >= 1.2 * floor, name


def test_no_group_is_documented_that_does_not_exist() -> None:
    """Every section of the page is a group."""
    assert re.findall(r"^## (\w+)$", _TEXT, flags=re.MULTILINE) == list(GROUPS)
