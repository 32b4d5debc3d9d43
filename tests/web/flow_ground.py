"""A web that is a table: drives the fetch flow by a list of answers and records every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from recrawl.web.conditional import NO_VALIDATORS, Validators
from recrawl.web.fetch.flow import fetch_flow
from recrawl.web.fetch.protocol import (
    GRANTED,
    BodyEnd,
    Channel,
    Chunk,
    Drop,
    Dropped,
    Event,
    Fault,
    FetchJob,
    FetchResult,
    Head,
    NeedRobots,
    Read,
    Send,
    Slot,
    Step,
    WaitForSlot,
)
from recrawl.web.fetch.settings import FetchSettings, user_agent
from recrawl.web.robots.entry import RobotsEntry, robots_answer
from recrawl.web.url.address import Address, read_address

NOW = 1_700_000_000.0
BOT = user_agent("https://example.org/bot", version="1.0")
SETTINGS = FetchSettings(BOT)
PAGE = "https://example.com/news/today"
Answer = Fault | tuple[int, dict[str, str], bytes | list[Event]]


def address(url: str) -> Address:
    """An address that must be fine."""
    read = read_address(url)
    assert isinstance(read, Address), read
    return read


def rules(text: str = "") -> RobotsEntry:
    """The robots rules of every host."""
    return RobotsEntry(robots_answer(200, text.encode(), BOT.token, address(PAGE)), NOW, NOW + 3600.0)


@dataclass
class Web:
    """Answers by address, and a record of every step."""

    answers: dict[str, Answer | list[Answer]]
    robots: RobotsEntry | Fault = field(default_factory=rules)
    turn: Callable[[WaitForSlot], Slot] = lambda _: GRANTED
    seconds_each: float = 0.0
    steps: list[Step] = field(default_factory=list)
    clock: float = 1000.0
    _body: list[Event] = field(default_factory=list)

    def fetch(
        self,
        url: str = PAGE,
        settings: FetchSettings = SETTINGS,
        validators: Validators = NO_VALIDATORS,
        channel: Channel = "page",
        validated_at: Address | None = None,
    ) -> FetchResult:
        job = FetchJob(address(url), validators, channel, None, validated_at)
        flow = fetch_flow(job, settings, lambda: self.clock, NOW)
        try:
            step = next(flow)
            while True:
                self.steps.append(step)
                step = flow.send(self._event(step))
        except StopIteration as end:
            result: FetchResult = end.value
            return result

    def _event(self, step: Step) -> Event:
        match step:
            case NeedRobots():
                return self.robots
            case WaitForSlot():
                return self.turn(step)
            case Drop():
                return Dropped()
            case Read():
                return self._body.pop(0)
            case Send():
                return self._head(step)

    def _head(self, step: Send) -> Head | Fault:
        self.clock += self.seconds_each
        answer = self.answers[step.address.url]
        if isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, Fault):
            return answer
        status, headers, body = answer
        self._body = list(body) if isinstance(body, list) else [Chunk(body), BodyEnd()] if body else [BodyEnd()]
        return Head(status, tuple((name.encode(), value.encode()) for name, value in headers.items()))

    @property
    def sent(self) -> list[Send]:
        return [step for step in self.steps if isinstance(step, Send)]

    def header(self, request: int, name: str) -> str | None:
        return next((value for found, value in self.sent[request].headers if found.lower() == name.lower()), None)


def answering(status: int, **headers: str) -> Web:
    """A web of one page, which answers like this."""
    return Web({PAGE: (status, {name.replace("_", "-"): value for name, value in headers.items()}, b"a page")})
