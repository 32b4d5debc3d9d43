"""How far each kind of signal is trusted on each host: learned from crawls, kept as bytes, told on and shown.

Every crawl of a page with a copy is an audit of what was heard of it in between. A host has a row here from the first
signal on: before that there is nothing to learn. Trust is fitted again after a share of new audits, so that the work
for a host grows with the logarithm of what was seen of it, and a host of many pages waits for more of them, since
telling its pages costs a little each.

The bytes for the row of a host in the store are at most about 4 kB, with the form they are in. What cannot be read is
forgotten, with a sentence: trust is then learned from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.learning.trust import Trust
from recrawl.learning.trust_tracker import AUDITS, FIRST_KIND, POINTS, HostMemory, TrustTracker, qualities
from recrawl.pages import Floats
from recrawl.tracker.signals.page_counts import Numbers

MOST_BYTES = 4096
_VERSION = 1
_MOST_KIND_CHARS = 40


class _Packed(msgspec.Struct, array_like=True):
    version: int
    kinds: list[str]
    weights: bytes  # numbers of single precision from here on
    amounts: bytes
    against: bytes
    sums: bytes
    followed: bool = False


class Kept(NamedTuple):
    """What was learned of a host: kinds that were heard, the memory of audits, and whether any was ever followed."""

    kinds: list[str]
    memory: HostMemory
    followed: bool


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Packed)


def to_bytes(kinds: Sequence[str], memory: HostMemory, *, followed: bool = False) -> bytes | None:
    """The bytes to keep, of those kinds that were heard; None if none was. `followed`: pages listened to some, ever."""
    count = len(kinds)
    heard = memory.sums[FIRST_KIND + count : FIRST_KIND + 2 * count]
    chosen = [number for number in np.argsort(-heard, kind="stable").tolist() if heard[number] > 0]
    while chosen:
        amounts, weights, against, sums = (column.astype("<f4").tobytes() for column in _columns(memory, chosen, count))
        names = [kinds[number] for number in chosen]
        kept = _ENCODER.encode(_Packed(_VERSION, names, weights, amounts, against, sums, followed))
        if len(kept) <= MOST_BYTES:
            return kept
        chosen.pop()
    return None


def from_bytes(kept: bytes) -> Kept:
    """What `to_bytes` was given.

    Raises:
        InvalidInput: if they are something else.
    """
    try:
        read = _DECODER.decode(kept)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot be read: {error}", field="learned") from None
    if read.version != _VERSION:
        raise InvalidInput(f"is of the form {read.version}, but only {_VERSION} is known", field="learned")
    kinds = read.kinds
    if len(set(kinds)) != len(kinds) or any(not 0 < len(kind) <= _MOST_KIND_CHARS for kind in kinds):
        raise InvalidInput("has kinds that cannot be", field="learned")
    causes, count = 1 + 2 * len(kinds), len(kinds)
    weights = _singles(read.weights)
    columns = _singles(read.amounts), weights, _singles(read.against), _singles(read.sums)
    sizes = len(weights) * causes, min(len(weights), POINTS), causes, FIRST_KIND + 3 * count
    if tuple(len(column) for column in columns) != sizes:
        raise InvalidInput("has columns that do not fit its kinds", field="learned")
    memory = HostMemory(columns[0].reshape(len(weights), causes), *columns[1:])
    for column in memory:
        if not (np.isfinite(column) & (column >= 0)).all():
            raise InvalidInput("has numbers that no audits add up to", field="learned")
    return Kept(kinds, memory, read.followed)


def among(kinds: Sequence[str], memory: HostMemory, all_kinds: Sequence[str]) -> HostMemory:
    """The same memory with a column for each of these kinds, which those that it knows are among."""
    has, count = len(all_kinds), len(kinds)
    places = [all_kinds.index(kind) for kind in kinds]
    causes = [0, *(1 + place for place in places), *(1 + has + place for place in places)]
    sums = [*range(FIRST_KIND), *(FIRST_KIND + part * has + place for part in range(3) for place in places)]
    amounts, against = np.zeros((len(memory.weights), 1 + 2 * has)), np.zeros(1 + 2 * has)
    wide = np.zeros(FIRST_KIND + 3 * has)
    assert len(causes) == 1 + 2 * count
    amounts[:, causes] = memory.amounts
    against[causes] = memory.against
    wide[sums] = memory.sums
    return HostMemory(amounts, memory.weights, against, wide)


def _columns(memory: HostMemory, chosen: Sequence[int], count: int) -> HostMemory:
    causes = [0, *(1 + number for number in chosen), *(1 + count + number for number in chosen)]
    sums = [*range(FIRST_KIND), *(FIRST_KIND + part * count + number for part in range(3) for number in chosen)]
    return HostMemory(memory.amounts[:, causes], memory.weights, memory.against[causes], memory.sums[sums])


def _singles(kept: bytes) -> Floats:
    if len(kept) % 4:
        raise InvalidInput("has half a number", field="learned")
    singles: NDArray[np.float32] = np.frombuffer(kept, dtype="<f4")
    return singles.astype(np.float64)


FIRST_LOOK = 10
"""Audits of a host before its signals are believed at all."""

_SHARE = 0.2  # of the audits that must be new for another look
_PAGES_PER_AUDIT = 100  # of a host, that are told for an audit
_FADED = 1000.0  # audits that count
_STEP = 0.08  # of a precision or recall: less is not worth telling
_USELESS = 0.01  # recall below which a kind is not listened to
_MOST_AT_ONCE = 1000  # hosts that are looked at together


class Audit(NamedTuple):
    """A crawl that looked at what signals had said.

    `row` of the host, `gap` in days, whether it saw a change, signals heard and usual signals by kind.
    """

    row: int
    gap: float
    changed: bool
    heard: NDArray[np.int64]
    usual: Floats


class HostTrust:
    """Trust by host and kind.

    Args:
        kinds: that are known from the start, one at least.
        delay: days after a crawl in which signals are dropped.
        pages_of: how many pages a host has, by its number.
    """

    def __init__(self, kinds: Sequence[str], delay: float, pages_of: Callable[[int], int]) -> None:
        self._pages_of = pages_of
        self.tracker = TrustTracker(0, kinds, memory=_FADED, delay=delay)
        self.hosts: list[int] = []  # numbers, by row
        self._rows: dict[int, int] = {}
        self.recall: Floats = np.zeros((0, 0))  # as told, by row and kind
        self.precision: Floats = np.zeros((0, 0))
        self._in_use: NDArray[np.bool_] = np.zeros((0, 0), dtype=np.bool_)
        self._audits: list[Audit] = []
        self._fresh: list[int] = []  # audits since the last look, by row
        self._due_at: list[int] = []  # for another look
        self._due: set[int] = set()
        self.unsaved: set[int] = set()  # rows
        self.looked_at: set[int] = set()  # rows of hosts with enough audits to say what their signals are worth
        self.followed: set[int] = set()  # rows of hosts whose pages listened to something, ever

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds, in the order of the columns."""
        return tuple(str(kind) for kind in self.tracker.kinds)

    @property
    def believed(self) -> int:
        """Hosts with a kind of signal that is listened to. O(hosts)."""
        return int((self.recall > 0).any(axis=1).sum())

    def row_of(self, host: int) -> int | None:
        """The row of a host; None if nothing was heard of it."""
        return self._rows.get(host)

    def listen(self, hosts: Numbers, kinds: Sequence[str], kind: int) -> None:
        """A signal of a kind came for pages of these hosts, which are different ones. O(hosts), amortised."""
        for host in hosts.tolist():
            row = self._enter(host, kinds)
            self._in_use[row, kind] = True

    def _enter(self, host: int, kinds: Sequence[str]) -> int:
        if len(kinds) > len(self.tracker.kinds):
            self.tracker.grow(kinds=kinds[len(self.tracker.kinds) :])
            self._widen(len(self.tracker), len(kinds))
        row = self._rows.setdefault(host, len(self.hosts))
        if row == len(self.hosts):
            self.hosts.append(host)
            self._fresh.append(0)
            self._due_at.append(FIRST_LOOK)
            if row >= len(self.tracker):
                self.tracker.grow(max(2 * row, 8))
                self._widen(len(self.tracker), len(self.tracker.kinds))
        return row

    def _widen(self, rows: int, kinds: int) -> None:
        for name in ("recall", "precision", "_in_use"):
            old = getattr(self, name)
            new = np.zeros((rows, kinds), dtype=old.dtype)
            new[: old.shape[0], : old.shape[1]] = old
            setattr(self, name, new)

    def note(self, audit: Audit) -> None:
        """Take in an audit. O(kinds); it is learned from with the next look."""
        self._audits.append(audit)
        self._fresh[audit.row] += 1
        if self._fresh[audit.row] >= self._due_at[audit.row]:
            self._due.add(audit.row)

    def relearn(self) -> Numbers:
        """Look at hosts with enough new audits; the rows whose trust has changed so much that pages should know.

        O(new audits + hosts · kinds²).
        """
        self._learn()
        if not self._due:
            return np.empty(0, dtype=np.int64)
        rows = np.array(sorted(self._due)[:_MOST_AT_ONCE], dtype=np.int64)
        self._due.difference_update(rows.tolist())
        trust = self.tracker.trust(rows)
        recall, precision = qualities(trust)
        recall[~listens_to(trust) | ~self._in_use[rows]] = 0.0
        # In hundredths, so that hosts share what pages keep of it; rounded down, so that recalls add up to 1 at most.
        recall, precision = np.floor(100 * recall) / 100, np.maximum(np.round(precision, 2), 0.01)
        precision[recall == 0] = 0.0
        changed = self._differs(rows, recall, precision)
        told = rows[changed]
        self.recall[told], self.precision[told] = recall[changed], precision[changed]
        self.followed.update(told[(recall[changed] > 0).any(axis=1)].tolist())
        for row, audits in zip(rows.tolist(), trust.audits.tolist(), strict=True):
            self._fresh[row] = 0
            self.looked_at.add(row)
            pages = self._pages_of(self.hosts[row])
            self._due_at[row] = int(max(FIRST_LOOK, _SHARE * audits, pages / _PAGES_PER_AUDIT))
            self.unsaved.add(row)
        return told

    def relearn_all(self) -> None:
        """Look at all hosts that wait for it, before there are pages that should know."""
        while self._due:
            self.relearn()

    def _differs(self, rows: Numbers, recall: Floats, precision: Floats) -> NDArray[np.bool_]:
        """Whether what is believed is another than what was told: by a step, or in that a kind is heard at all."""
        began = (recall > 0) != (self.recall[rows] > 0)
        far = np.maximum(np.abs(recall - self.recall[rows]), np.abs(precision - self.precision[rows])) > _STEP
        differs: NDArray[np.bool_] = (began | far).any(axis=1)
        return differs

    def usual(self, row: int, usual: Floats) -> Floats:
        """Usual signals without those of kinds that this host never sent."""
        return np.where(self._in_use[row, : len(usual)], usual, 0.0)

    def _learn(self) -> None:
        if not self._audits:
            return
        audits, self._audits = self._audits, []
        kinds = len(self.tracker.kinds)
        heard, usual = np.zeros((len(audits), kinds)), np.zeros((len(audits), kinds))
        for place, audit in enumerate(audits):
            heard[place, : len(audit.heard)] = audit.heard
            usual[place, : len(audit.usual)] = audit.usual
        self.tracker.observe(
            [audit.row for audit in audits],
            [audit.gap for audit in audits],
            [audit.changed for audit in audits],
            heard,
            usual,
        )
        self.unsaved.update(audit.row for audit in audits)

    def audited(self, row: int, kind: int) -> float:
        """How many audits of a host had heard signals of a kind, those that faded left out."""
        self._learn()
        return float(self.tracker.memory_of(row).sums[-len(self.tracker.kinds) :][kind])

    def listened(self, row: int) -> set[str]:
        """The kinds that pages of a host listen to."""
        return {kind for kind, recall in zip(self.kinds, self.recall[row].tolist(), strict=True) if recall > 0}

    def to_bytes(self, row: int) -> bytes | None:
        """What is to be kept of a host; None if there is nothing."""
        self._learn()
        return to_bytes(self.kinds, self.tracker.memory_of(row), followed=row in self.followed)

    def restore(self, host: int, kinds: Sequence[str], memory: HostMemory, *, followed: bool) -> None:
        """Go on with what was kept of a host; `kinds` are all that are known by now, in their order."""
        row = self._enter(host, kinds)
        if followed:
            self.followed.add(row)
        self.tracker.put_back(row, memory)
        self._in_use[row] = memory.sums[-len(self.tracker.kinds) :] > 0
        audits = int(memory.sums[AUDITS])
        if audits >= FIRST_LOOK:
            self._due.add(row)
        else:
            self._fresh[row] = audits


def listens_to(trust: Trust) -> NDArray[np.bool_]:
    """Which kinds tell enough to be listened to, by host and kind.

    A kind that stands alone must be as true as it may be wrong about that. Of several kinds that come together each for
    itself is uncertain, though what they say together is not: they are taken as they are.
    """
    telling: NDArray[np.bool_] = qualities(trust)[0] >= _USELESS
    alone = telling.sum(axis=1) == 1
    telling &= ~(alone[:, None] & (trust.precision < trust.errors.precision))
    return telling


class KindTrust(NamedTuple):
    """How far a kind of signal is trusted on a host: shares with standard errors, and the crawls that say so."""

    kind: str
    precision: float
    precision_error: float
    recall: float
    recall_error: float
    audits: int
    listened: bool


def kinds_of(trust: Trust, listened: Container[str]) -> list[KindTrust]:
    """Trust in the host of the first row by kind, the most telling first."""
    return sorted(
        (
            KindTrust(
                str(kind),
                float(trust.precision[0, place]),
                float(trust.errors.precision[0, place]),
                float(trust.recall[0, place]),
                float(trust.errors.recall[0, place]),
                int(trust.audits[0]),
                kind in listened,
            )
            for place, kind in enumerate(trust.kinds)
        ),
        key=lambda each: -each.recall,
    )


def trust_of_bytes(learned: bytes | None, listened: Container[str] | None = None) -> Sequence[KindTrust]:
    """Trust as it is kept with a host; nothing if that cannot be read.

    Args:
        learned: bytes of `to_bytes`.
        listened: the kinds that are listened to; None: those that would be.
    """
    try:
        kept = from_bytes(learned or b"")
        tracker = TrustTracker(1, kept.kinds)
        tracker.put_back(0, kept.memory)
    except InvalidInput:
        return []
    trust = tracker.trust()
    if listened is None:
        telling = listens_to(trust)[0] & (trust.audits[0] >= FIRST_LOOK)
        listened = {kind for kind, heard in zip(kept.kinds, telling.tolist(), strict=True) if heard}
    return kinds_of(trust, listened)
