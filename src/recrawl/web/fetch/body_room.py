"""Memory that large pages share while they are on their way.

Each fetch has its own cap, but hundreds run at once. A server can send ten mebibytes in forty kilobytes and then
nothing until the deadline; a few hundred such answers would fill any memory. So what a body takes beyond its first
mebibyte comes out of one room for all fetches of a transport. A fetch that finds the room full is put off: it says
nothing about the page, and the page can be asked for again. The room holds at least one body of the largest size that
the settings allow, so that such a page is read when no other large one is under way.
"""

from __future__ import annotations

import math

MOST_SHARED_BYTES = 256 << 20
FREE_BYTES = 1 << 20


class BodyRoom:
    """So many bytes for all bodies that are on their way.

    >>> room = BodyRoom(100)
    >>> room.take(80), room.take(30), room.held_bytes
    (True, False, 80)
    """

    __slots__ = ("held_bytes", "most_bytes")

    def __init__(self, most_bytes: float = MOST_SHARED_BYTES) -> None:
        self.most_bytes = most_bytes
        self.held_bytes = 0

    def take(self, count: int) -> bool:
        """Take bytes if there is room for them; one body alone may take all."""
        if self.held_bytes + count > self.most_bytes:
            return False
        self.held_bytes += count
        return True

    def give_back(self, count: int) -> None:
        """Give back bytes that were taken."""
        self.held_bytes -= count


def boundless() -> BodyRoom:
    """A room that is never full, for one fetch by itself."""
    return BodyRoom(math.inf)
