"""An import from its items to the store: in batches, each done or not; done again it adds nothing more.

Rows are checked here as the tracker would check them, so that each that is refused can be named by its row.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace

from recrawl.errors import InvalidInput
from recrawl.tracker.admission import PageRequest, Rejected, admit
from recrawl.tracker.commands.commands import Add, Command, Reply
from recrawl.tracker.importers.rows import BadRow, GoodRow, Item
from recrawl.tracker.settings.settings import Settings

BATCH = 1000
_SHOWN = 20
_REMEMBERED = 2_000_000


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds for rows that do not say it themselves."""

    importance: float | None = None
    group: str | None = None


@dataclass(slots=True)
class Imported:
    """What an import did: rows = added + known + same + refused.

    Args:
        rows: that were read.
        added: new pages, or in a dry run those that would be.
        known: tracked before.
        same: the address of another row.
        refused: rows that cannot be used.
        paused: added, but paused.
        refusals: the first of them: file, row and reason.
    """

    rows: int = 0
    added: int = 0
    known: int = 0
    same: int = 0
    refused: int = 0
    paused: int = 0
    refusals: list[tuple[str, int, str]] = field(default_factory=list)

    def refuse(self, name: str, row: int, reason: str) -> None:
        """Count a row that cannot be used; row 0 is no row of its own."""
        self.rows += row > 0
        self.refused += row > 0
        if len(self.refusals) < _SHOWN:
            self.refusals.append((name, row, reason))


Carry = Callable[[Command], Awaitable[Reply]]
"""Does a command, here or at the tracker that runs."""


class Importer:
    """Takes items in and hands them on in batches.

    Args:
        carry: what does the commands.
        settings: by which rows are checked.
        defaults: for rows that say nothing.
        dry_run: whether nothing is to be written.
        strict: whether the first row that cannot be used ends it.
    """

    def __init__(
        self, carry: Carry, settings: Settings, defaults: Defaults, *, dry_run: bool = False, strict: bool = False
    ) -> None:
        self.done = Imported()
        self._carry = carry
        self._settings = settings
        self._defaults = defaults
        self._dry_run = dry_run
        self._strict = strict
        self._seen: set[int] = set()  # hashes of addresses; in a dry run nothing else knows them
        self._batch: dict[str, PageRequest] = {}
        self._paused: list[str] = []

    async def take(self, name: str, items: AsyncIterator[Item]) -> None:
        """Import all items of one file; `name` is for sentences."""
        async for item in items:
            if isinstance(item, BadRow):
                self._refuse(name, item.row, item.reason)
                continue
            self._keep(name, item)
            if len(self._batch) >= BATCH:
                await self._send()
        await self._send()

    def _keep(self, name: str, item: GoodRow) -> None:
        wanted = replace(
            item.wanted,
            importance=self._defaults.importance if item.wanted.importance is None else item.wanted.importance,
            group=item.wanted.group or self._defaults.group,
        )
        page = admit(wanted, self._settings, 0.0)
        if isinstance(page, Rejected):
            self._refuse(name, item.row, page.reason)
            return
        self.done.rows += 1
        if page.url in self._batch or (self._dry_run and hash(page.url) in self._seen):
            self.done.same += 1
            return
        if self._dry_run and len(self._seen) < _REMEMBERED:
            self._seen.add(hash(page.url))
        self._batch[page.url] = wanted
        if item.paused:
            self._paused.append(wanted.url)

    def _refuse(self, name: str, row: int, reason: str) -> None:
        if self._strict:
            raise InvalidInput(f"{name} row {row}: {reason}" if row else f"{name}: {reason}")
        self.done.refuse(name, row, reason)

    async def _send(self) -> None:
        if not self._batch:
            return
        command = Add(list(self._batch.values()), dry_run=self._dry_run, paused=self._paused)
        reply = await self._carry(command)
        if reply.error:
            raise InvalidInput(reply.error)
        for count in ("added", "known", "same", "paused"):
            setattr(self.done, count, getattr(self.done, count) + reply.done.get(count, 0))
        self.done.refused += reply.done.get("rejected", 0)
        for each in reply.rejected[: _SHOWN - len(self.done.refusals)]:
            self.done.refusals.append((each.url, 0, each.reason))
        self._batch, self._paused = {}, []
