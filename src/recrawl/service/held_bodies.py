"""Bodies that are on their way share one room: each has a cap of its own, but a thousand connections may send at once.

What a body takes beyond its first mebibyte comes out of the room, and goes back when its request is answered. Whoever
finds it full is told to wait.
"""

from __future__ import annotations

from litestar.types import HTTPReceiveMessage, Receive

from recrawl.service.errors import Refusal
from recrawl.web.fetch.settings import FREE_BYTES, MemoryBudget

MOST_HELD_BYTES = 128 << 20
WITH_BODY = ("POST", "PATCH", "PUT")


class HeldBody:
    """The body of one request, counted as it comes.

    Args:
        receive: gives the next part of it.
        room: that it shares with others.
    """

    __slots__ = ("_came", "_receive", "_room", "_taken")

    def __init__(self, receive: Receive, room: MemoryBudget) -> None:
        self._receive = receive
        self._room = room
        self._came = self._taken = 0

    async def receive(self) -> HTTPReceiveMessage:
        """The next part, if there is room for it."""
        message: HTTPReceiveMessage = await self._receive()  # type: ignore[assignment]  # there are no sockets here
        self._came += len(message.get("body", b""))  # type: ignore[arg-type]
        wanted = self._came - FREE_BYTES - self._taken
        if wanted > 0:
            if not self._room.acquire(wanted):
                raise Refusal(503, "too many long bodies come at once: wait a little", headers={"Retry-After": "1"})
            self._taken += wanted
        return message

    def free(self) -> None:
        """The request is answered."""
        self._room.release(self._taken)
        self._taken = 0
