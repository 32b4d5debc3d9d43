"""The two threads of a SQLite store: one writes, the other reads, and neither waits for the other.

The writer takes all calls that wait and makes one transaction of them, each within a savepoint: a call that fails
undoes only itself, and many calls share one wait for the disk. If the transaction fails as a whole, each call is tried
by itself, so that each gets its own answer. A future is resolved after the commit, never before.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import apsw

from recrawl.errors import StoreError, StoreTaken
from recrawl.store.crash_points import crash_point
from recrawl.store.sqlite.errors import as_store_error
from recrawl.store.sqlite.session import Session
from recrawl.store.steps import CrashPoints, Value

Work = Callable[[Session], Value]

# More in one transaction would save little and make the first wait long.
_MAX_GROUPED_CALLS = 64


@dataclass(slots=True, eq=False)
class _Call:
    work: Work[Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    points: CrashPoints | None = None
    value: Any = None
    error: BaseException | None = field(default=None)


class SessionThread:
    """A thread with a session of its own that does calls in the order they come; this one reads.

    Args:
        name: of the thread.
        open_session: called in the thread, which alone uses the session.
    """

    def __init__(self, name: str, open_session: Callable[[], Session]) -> None:
        self._open_session = open_session
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)

    async def start(self) -> None:
        """Open the session; what is in its way is raised."""
        self._thread.start()
        try:
            await self.do(lambda _session: None)
        except BaseException:
            await self.close()
            raise

    async def do(self, work: Work[Value], points: CrashPoints | None = None) -> Value:
        """Have something done, and wait until it is; for a writer, until it is durable."""
        if self._closed:
            raise StoreError("this store was closed: open it again")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Value] = loop.create_future()
        self._calls.put(_Call(work, future, loop, points))
        return await future

    async def close(self) -> None:
        """Finish what was asked for, and end the thread."""
        if not self._closed:
            self._closed = True
            self._calls.put(None)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def _live(self) -> None:
        try:
            session = self._open_session()
        except BaseException as error:  # it is handed to whoever waits
            self._refuse_all(error)
            return
        calls: list[_Call] | None = []
        try:
            with closing(session):
                while (calls := self._next_calls()) is not None:
                    self._serve(session, calls)
        except BaseException as error:  # a fault of ours: nobody must wait for a thread that does nothing any more
            name, file = self._thread.name, session.file
            failure = StoreTaken(f"the thread {name} of {file} ended by {error!r}: start this process again")
            _refuse(calls or [], failure)
            self._refuse_all(failure)

    def _next_calls(self) -> list[_Call] | None:
        call = self._calls.get()
        return None if call is None else [call]

    def _serve(self, session: Session, calls: list[_Call]) -> None:
        for call in calls:
            try:
                session.check_place()
                call.value = call.work(session)
            except BaseException as error:  # it is handed to the caller
                call.error = as_store_error(error, session.file, session.connection)
        _deliver(calls)

    def _refuse_all(self, error: BaseException) -> None:
        """Fail the calls that wait and those that come, until the store is closed."""
        while (calls := self._next_calls()) is not None:
            _refuse(calls, error)


class WriterThread(SessionThread):
    """The thread that writes.

    Args:
        name: of the thread.
        open_session: called in the thread.
        generation: of the owner, 0 for a visitor, who may only leave orders.
    """

    def __init__(self, name: str, open_session: Callable[[], Session], generation: int) -> None:
        super().__init__(name, open_session)
        self._generation = generation
        self._ended = False

    def _next_calls(self) -> list[_Call] | None:
        if self._ended:
            return None
        call = self._calls.get()
        if call is None:
            return None
        calls = [call]
        while len(calls) < _MAX_GROUPED_CALLS and not self._calls.empty():
            call = self._calls.get()
            if call is None:
                self._ended = True
                break
            calls.append(call)
        return calls

    def _serve(self, session: Session, calls: list[_Call]) -> None:
        if not self._try_together(session, calls):
            for call in calls:
                call.error = None
                self._try_together(session, [call])
        _deliver(calls)

    def _try_together(self, session: Session, calls: list[_Call]) -> bool:
        """One transaction for the calls; False if it failed by one of several, all undone."""
        begun = False
        try:
            session.check_place()
            session.connection.execute("BEGIN IMMEDIATE")
            self._check_generation(session)
            begun = True
            for call in calls:
                _work_within(session, call)
            _pass_points(calls, "before")
            session.check_place()
            session.connection.execute("COMMIT")
        except BaseException as error:  # it is handed to the callers
            failure = as_store_error(error, session.file, session.connection)
            _roll_back(session)
            for call in calls:
                call.error = failure
            return len(calls) == 1 or not begun
        _pass_points(calls, "after")
        return True

    def _check_generation(self, session: Session) -> None:
        if self._generation and session.value("current_generation") != self._generation:
            raise StoreTaken(f"another owner has taken over {session.file}: end this process")


def _work_within(session: Session, call: _Call) -> None:
    """Do a call within a savepoint; what it raises undoes only itself."""
    try:
        try:
            _work_or_undo(session, call)
        except UnicodeEncodeError:  # a text from the web that is none: rare, so only then is every text looked at
            with session.cleaned_texts():
                _work_or_undo(session, call)
    except BaseException as error:  # it is handed to the caller
        if not session.connection.in_transaction:
            raise  # SQLite has undone everything: all calls are to be tried again
        call.error = as_store_error(error, session.file, session.connection)


def _work_or_undo(session: Session, call: _Call) -> None:
    run = session.connection.execute
    run("SAVEPOINT call")
    try:
        call.value = call.work(session)
        run("RELEASE call")
    except BaseException:
        session.forget_names()
        if session.connection.in_transaction:
            run("ROLLBACK TO call")
            run("RELEASE call")
        raise


def _roll_back(session: Session) -> None:
    session.forget_names()
    if session.connection.in_transaction:
        try:
            session.connection.execute("ROLLBACK")
        except apsw.Error:
            return


def _pass_points(calls: list[_Call], which: str) -> None:
    for call in calls:
        if call.points is not None and call.error is None:
            crash_point(getattr(call.points, which))


def _refuse(calls: list[_Call], error: BaseException) -> None:
    for call in calls:
        call.error = error
    _deliver(calls)


def _deliver(calls: list[_Call]) -> None:
    """Resolve futures in their loops, with one wake-up for each loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Call]] = {}
    for call in calls:
        by_loop.setdefault(call.loop, []).append(call)
    for loop, group in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, group)
        except RuntimeError:  # the loop has ended, and with it whoever waited
            continue


def _resolve(calls: list[_Call]) -> None:
    for call in calls:
        if call.future.done():  # given up by its caller
            continue
        if call.error is not None:
            call.future.set_exception(call.error)
        else:
            call.future.set_result(call.value)
