"""Commands between processes, through the store: left as orders, done by the tracker that owns it.

A command opens the store as its owner and does what it is asked. If a tracker owns it, the command leaves an order
instead and waits for the reply; an order that is durable is done, by this tracker or the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from recrawl.errors import RecrawlError, StoreBusy, StoreError
from recrawl.store.contract import Store
from recrawl.store.opening import open_store
from recrawl.store.rows import NewPage
from recrawl.tracker.admission import admit
from recrawl.tracker.commands.commands import Add, Command, CommandHandler, Reply
from recrawl.tracker.settings.settings import Settings

_ASK_S = 0.05
_TURNS_ALONE = 20
_ENCODER = msgspec.json.Encoder()
_COMMAND = msgspec.json.Decoder(Command)
_REPLY = msgspec.json.Decoder(Reply)


async def carry_out(command: Command, settings: Settings, now: Callable[[], float], patience_s: float = 30.0) -> Reply:
    """Do a command on the store of the settings, or have it done by the tracker that runs on it.

    A store is begun only for pages that are added.

    Raises:
        StoreBusy: if the tracker that owns the store did not answer; the order stays, and is done when it can be.
    """
    async with CommandClient(settings, now, patience_s) as errands:
        return await errands.carry_out(command)


class CommandClient:
    """Commands one after another, as `carry_out` does them; remembers whether a tracker runs.

    Args:
        settings: whose store is meant.
        now: Unix seconds.
        patience_s: how long the tracker may take to answer.
    """

    def __init__(self, settings: Settings, now: Callable[[], float], patience_s: float = 30.0) -> None:
        self._settings = settings
        self._now = now
        self._patience_s = patience_s
        self._visited: Store | None = None  # of the tracker that runs

    async def __aenter__(self) -> CommandClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._leave()

    async def carry_out(self, command: Command) -> Reply:
        """Do a command, here or at the tracker."""
        settings = self._settings
        if self._visited is None:
            if isinstance(command, Add) and not _may_exist(settings.store) and not _begins(command, settings):
                with TemporaryDirectory() as nothing:
                    return await self._do(command, replace(settings, store=nothing))
            try:
                return await self._do(command, settings)
            except StoreBusy:
                self._visited = await open_store(settings.store, owner=False)
        return await self._ask(command, self._visited)

    async def _do(self, command: Command, settings: Settings) -> Reply:
        store = await open_store(settings.store, owner=True, create=isinstance(command, Add))
        try:
            return await CommandHandler(store, settings).do(command, self._now())
        finally:
            await store.close()

    async def _ask(self, command: Command, store: Store) -> Reply:
        order = await store.post("command", _ENCODER.encode(command), self._now())
        for turn in range(1, int(self._patience_s / _ASK_S) + 2):
            reply = await store.reply_to(order)
            if reply is not None:
                return _REPLY.decode(reply)
            await asyncio.sleep(_ASK_S)
            if turn % _TURNS_ALONE == 0 and await self._stand_in():
                reply = await store.reply_to(order)
                await self._leave()
                if reply is not None:
                    return _REPLY.decode(reply)
                break
        raise StoreBusy(
            f"the tracker on {store.name} has not answered within {self._patience_s:g} s; the order is kept, and done "
            "later"
        )

    async def _stand_in(self) -> bool:
        """Do the orders that wait if the owner of the store has left: it may have been another command."""
        try:
            store = await open_store(self._settings.store, owner=True, create=False)
        except StoreBusy:
            return False
        try:
            await serve_orders(store, CommandHandler(store, self._settings), self._now)
        finally:
            await store.close()
        return True

    async def _leave(self) -> None:
        store, self._visited = self._visited, None
        if store is not None:
            await store.close()


def _may_exist(store: str) -> bool:
    return "://" in store or Path(store).exists()


def _begins(command: Add, settings: Settings) -> bool:
    """Whether there is a page to begin a store with."""
    return not command.dry_run and any(isinstance(admit(each, settings, 0.0), NewPage) for each in command.pages)


async def serve_orders(store: Store, hand: CommandHandler, now: Callable[[], float]) -> int:
    """Do the orders that wait, the oldest first; how many."""
    done = 0
    for order in await store.orders():
        await store.answer(order.id, _ENCODER.encode(await _reply(hand, order.payload, now())), now())
        done += 1
    return done


async def _reply(hand: CommandHandler, payload: bytes, now: float) -> Reply:
    try:
        return await hand.do(_COMMAND.decode(payload), now)
    except msgspec.MsgspecError as error:
        return Reply(error=f"the order cannot be read: {error}")
    except StoreError:
        raise
    except RecrawlError as error:
        return Reply(error=str(error))
