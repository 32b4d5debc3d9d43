"""Connections that are kept: each counted and silent (`fetch/framing.py`), no more of them idle than a bound.

The HTTP client bounds the connections in use, not those it keeps: a crawl of many hosts at a hundred pages a second
would hold fifteen hundred open, and most systems give a process a thousand files.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

from recrawl.web.fetch.framing import CountedAnswers


class KeptConnections(aiohttp.TCPConnector):
    """The client's pool.

    Args:
        most_idle: connections that wait for another request; beyond that the one that waits longest is closed.
        options: of the pool it extends.

    The client has no public way to choose the protocol of its connections or to learn that one became idle; the tests
    of floods and of idle connections hold the two names used here.
    """

    def __init__(self, most_idle: int, **options: Any) -> None:
        super().__init__(**options)
        protocol: type[ResponseHandler] = CountedAnswers
        self._factory = partial(protocol, loop=self._loop)
        self._most_idle = most_idle
        self._idle: OrderedDict[ResponseHandler, None] = OrderedDict()

    def _release(self, key: Any, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        assert isinstance(protocol, CountedAnswers)
        is_done = should_close or protocol.should_close or protocol.has_leftovers()
        super()._release(key, protocol, should_close=is_done)
        self._idle.pop(protocol, None)
        if protocol.is_connected():
            protocol.rest()
            self._idle[protocol] = None
        while len(self._idle) > self._most_idle:
            oldest, _ = self._idle.popitem(last=False)
            if oldest not in self._acquired:
                oldest.close()
