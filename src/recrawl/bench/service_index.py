"""Measures of the group `service` for the search index of the examples: whether it is in step with the site.

The example follows the change stream of a tracker on the living web, and is killed now and then. Then the site
freezes, one full cycle passes, and the index is held against the site. SQLite counts what is written to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recrawl.bench.measure import Bound, CannotRun, Measure, Reading
from recrawl.bench.once import Once

if TYPE_CHECKING:
    from pathlib import Path

    from recrawl.lab.demo.index_run import IndexResult, IndexScene


def index_measures(scene: IndexScene | None = None, program: Path | None = None) -> tuple[Measure, ...]:
    """The measures, in the order they run; both share one run, and the first one pays.

    Args:
        scene: a run of another length.
        program: keeps the index; that of the examples if None.
    """
    work = _Work(scene, program)
    once = Bound("ratio", floor=1, limit=1)
    return (
        Measure("index_wrong_entries", "entries", "the frozen site", Bound("value", limit=0), work.read_wrong),
        Measure("index_writes", "writes", "events of the change stream", once, work.read_writes),
    )


class _Work:
    """The run that the measures share."""

    def __init__(self, scene: IndexScene | None, program: Path | None) -> None:
        self._scene = scene
        self._program = program
        self._result = Once(self._prove)

    def _prove(self) -> IndexResult:
        from recrawl._event_loop import run
        from recrawl.lab.demo.index_run import example_program, prove_index

        program = self._program or example_program()
        if program is None or not program.is_file():
            raise CannotRun("the program of the index is not installed: run this in a checkout, which has examples/")
        return run(prove_index(program, self._scene))

    def read_wrong(self) -> Reading:
        """Entries that are stale, pages without one, and entries of pages that are not there."""
        result = self._result()
        found = result.standing.against_site
        wrong = {"stale": len(found.stale), "missing": len(found.missing), "of no page": len(found.surplus)}
        told = ", ".join(f"{count} {name}" for name, count in wrong.items())
        return Reading(sum(wrong.values()), None, f"{told}, {found.right:,} right; {result.kills} kills")

    def read_writes(self) -> Reading:
        """Writes to the index, which should be one for each event."""
        standing = self._result().standing
        seen = f"{standing.detected_changes:,} of {standing.true_changes:,} changes seen"
        return Reading(
            standing.writes, standing.writes / max(standing.events, 1), f"{standing.events:,} events; {seen}"
        )
