"""What is remembered of a source between two polls, as bytes: what it listed, what its last polls brought.

The list is kept as hashes of 40 bits, sorted, and times of four bytes, in planes of bytes and compressed: about eight
bytes for an address of a sitemap. That two addresses share a hash happens to one new address in twenty million for a
full sitemap; such a one is found by the next source that names it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from recrawl.store.bodies import packed, unpacked
from recrawl.store.sources import SourceStore

POLLS = 8
"""Polls that are remembered: the seven that count, and the one before them."""
MOST_LISTED = 60_000
_VERSION = 1
_BITS = 40
_BYTES = _BITS // 8
_LATEST = 2**32 - 1
_READ_AT_ONCE = 100  # memories, of up to half a megabyte each


@dataclass(frozen=True, slots=True)
class SeenUrls:
    """What a source listed: hashes in rising order, and for each the time it gave, 0 for none."""

    hashes: NDArray[np.uint64]
    times: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.hashes)

    def find(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Places of these hashes, -1 for those that were not listed. O(hashes · log listed)."""
        if not len(self.hashes):
            return np.full(len(hashes), -1, dtype=np.int64)
        places = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        found: NDArray[np.int64] = np.where(self.hashes[places] == hashes, places, -1)
        return found


NOTHING = SeenUrls(np.zeros(0, np.uint64), np.zeros(0, np.uint32))


class Memory(msgspec.Struct, array_like=True):
    """What is known of a source beside its row.

    Args:
        version: of this form.
        root: of the page that the user named; see `scope.root_of`.
        depth: links from that page.
        rules: the signature of the scope under which addresses were refused.
        polls: time of the last polls and how many pages each brought that were new to everyone.
        told: time of the last polls and how many changes of tracked pages each announced.
        gain: mean worth of a change that was announced, in requests.
        wait: mean days until it would have been seen anyway.
        size: mean bytes of a poll.
        said_at: what the index above says when it last changed, None if it does not say.
        read_at: the same at the last poll.
        parent: address of that index, "" if no index names it.
        idle: polls in a row that brought nothing.
        hits: how often its pages were asked for, by age; see `value.py`.
        watched: pages watched at that age.
        hits_until: hits up to this time are counted.
        subscription: to a WebSub hub, packed; empty for none.
        pushed_at: when that hub last announced a change, or the index above did, and no poll has followed; 0 for never.
        listed: what it listed, packed; empty while it is not needed.
        digest: of what was read last; empty if it is to be read again though it is the same, since some was put off.
        there: pages of it that were there when they were first fetched, the last ones.
        dead: those that were not.
        alone: whether an index above did not tell of its changes, and is not asked about it any more.
        problem: one sentence on what was wrong with it when it was last read, "" for nothing.
        problem_at: when that was read.
        refused: addresses that it named and that were not taken, by rule, since the rules are as they are.
        fresh_s: how long after a poll its server calls it fresh, by `max-age` or `Expires`; 0 if it does not say.
    """

    version: int = _VERSION
    root: str = ""
    depth: int = 0
    rules: str = ""
    polls: list[tuple[float, int]] = msgspec.field(default_factory=list)
    told: list[tuple[float, int]] = msgspec.field(default_factory=list)
    gain: float = 0.0
    wait: float = 0.0
    size: float = 0.0
    said_at: float | None = None
    read_at: float | None = None
    parent: str = ""
    idle: int = 0
    hits: bytes = b""
    watched: bytes = b""
    hits_until: float = 0.0
    subscription: bytes = b""
    pushed_at: float = 0.0
    listed: bytes = b""
    digest: bytes = b""
    there: float = 0.0
    dead: float = 0.0
    alone: bool = False
    problem: str = ""
    problem_at: float = 0.0
    refused: dict[str, int] = msgspec.field(default_factory=dict)
    fresh_s: float = 0.0


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Memory)


def to_bytes(memory: Memory) -> bytes:
    """The bytes to keep."""
    return _ENCODER.encode(memory)


def from_bytes(kept: bytes | None) -> Memory:
    """What `to_bytes` gave; an empty memory if nothing is kept, or it is of another form."""
    if kept is None:
        return Memory()
    try:
        memory = _DECODER.decode(kept)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Memory()
    return memory if memory.version == _VERSION else Memory()


def hashes_of(urls: Sequence[str]) -> NDArray[np.uint64]:
    """A number for each address. O(length)."""
    digests = [xxhash.xxh3_64_intdigest(url.encode()) >> (64 - _BITS) for url in urls]
    return np.array(digests, dtype=np.uint64)


def listed_of(hashes: NDArray[np.uint64], times: Sequence[float | None]) -> SeenUrls:
    """A list in order, without repeats. O(n log n)."""
    stamps = np.array([min(max(int(time or 0), 0), _LATEST) for time in times], dtype=np.uint32)
    kept, first = np.unique(hashes, return_index=True)
    return SeenUrls(kept[:MOST_LISTED], stamps[first][:MOST_LISTED])


def joined(old: SeenUrls, new: SeenUrls) -> SeenUrls:
    """What was listed now or before; times are those of now, or before if it has no time now.

    The older part is forgotten where it is too much.
    """
    room = MOST_LISTED - len(new)
    places = old.find(new.hashes)
    known = old.times[np.maximum(places, 0)] if len(old) else np.zeros(len(new), np.uint32)
    new = SeenUrls(new.hashes, np.where((new.times == 0) & (places >= 0), known, new.times))
    gone = new.find(old.hashes) < 0
    hashes = np.concatenate([new.hashes, old.hashes[gone][: max(room, 0)]])
    times = np.concatenate([new.times, old.times[gone][: max(room, 0)]])
    order = np.argsort(hashes, kind="stable")
    return SeenUrls(hashes[order], times[order])


def without(listed: SeenUrls, hashes: NDArray[np.uint64]) -> SeenUrls:
    """A list without some of it, so that they are new once more."""
    if not len(hashes):
        return listed
    kept = ~np.isin(listed.hashes, hashes)
    return SeenUrls(listed.hashes[kept], listed.times[kept])


def pack_listed(listed: SeenUrls) -> bytes:
    """The list as bytes.

    >>> some = listed_of(hashes_of(["https://example.com/a", "https://example.com/b"]), [1.0, None])
    >>> unpack_listed(pack_listed(some)).times.tolist() == some.times.tolist()
    True
    """
    if not len(listed):
        return b""
    planes = listed.hashes.astype(">u8").view(np.uint8).reshape(-1, 8)[:, -_BYTES:].T.tobytes()
    times = listed.times.astype(">u4").view(np.uint8).reshape(-1, 4).T.tobytes()
    return packed(planes + times)


def unpack_listed(kept: bytes) -> SeenUrls:
    """What `pack_listed` gave; nothing if it cannot be read."""
    plain = unpacked(kept) if kept else None
    if plain is None or len(plain) % (_BYTES + 4):
        return NOTHING
    count = len(plain) // (_BYTES + 4)
    wide = np.zeros((count, 8), np.uint8)
    wide[:, -_BYTES:] = np.frombuffer(plain, np.uint8, _BYTES * count).reshape(_BYTES, count).T
    times = np.frombuffer(plain, np.uint8, 4 * count, _BYTES * count).reshape(4, count).T
    return SeenUrls(
        wide.view(">u8").ravel().astype(np.uint64), np.ascontiguousarray(times).view(">u4").ravel().astype(np.uint32)
    )


async def read_memories(store: SourceStore, page_ids: Sequence[int]) -> AsyncIterator[tuple[int, Memory]]:
    """Yield what is remembered of each of these sources, by page. O(their bytes), a hundred at a time in memory."""
    for start in range(0, len(page_ids), _READ_AT_ONCE):
        some = page_ids[start : start + _READ_AT_ONCE]
        kept = await store.source_memories(some)
        for page_id in some:
            yield page_id, from_bytes(kept.get(page_id))
