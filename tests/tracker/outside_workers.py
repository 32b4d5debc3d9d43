"""Outside fetchers that tests start, kill and start again, and what their journals say that they were promised."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import outside_worker
from crash_evidence import Evidence
from outside_worker import Task

from patience import patience
from recrawl.service.auth.access import Access
from recrawl.service.listening import Listening
from recrawl.store.store import open_store


async def fetch_token(where: str) -> str:
    """A token for outside fetchers of a store that nobody owns now."""
    store = await open_store(where, owner=True)
    try:
        return (await Access(store, Listening(), time.time).make(["fetch"], "workers"))[0]
    finally:
        await store.close()


@dataclass(slots=True)
class Promises:
    """What journals say: leases and until when, which were given back, and the answers to results."""

    until: dict[int, float] = field(default_factory=dict)
    urls: dict[int, str] = field(default_factory=dict)
    back: set[int] = field(default_factory=set)
    answers: dict[int, list[str]] = field(default_factory=dict)
    refused: list[Any] = field(default_factory=list)

    def note(self, line: dict[str, Any]) -> None:
        """One line of a journal."""
        if line["what"] == "leased":
            token = line["token"]
            self.until[token], self.urls[token] = line["until"], line["url"]
        elif line["what"] == "back":
            self.back.add(line["token"])
        elif line["what"] == "refused":
            self.refused.append(line)
        elif line["fetched"]:
            self.answers.setdefault(line["token"], []).append(line["answer"])

    def applied(self) -> set[int]:
        """Tokens of results that were acknowledged."""
        return {token for token, answers in self.answers.items() if answers[0] != "stale"}


@dataclass(slots=True)
class Workers:
    """Some outside fetchers.

    Args:
        folder: of their journals.
        service: port of the tracker's service.
        secret: token of the service.
        site: port of the web.
        lease_s: of the tracker.
    """

    folder: Path
    service: int
    secret: str
    site: int
    lease_s: float
    processes: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)
    starts: int = 0

    async def start(self, name: str) -> None:
        """Start one."""
        self.starts += 1
        journal = str(self.folder / f"{name}.jsonl")
        task = Task(name, self.service, self.secret, self.site, journal, self.lease_s, self.starts)
        with (self.folder / "workers-said.txt").open("ab") as said:
            self.processes[name] = await asyncio.create_subprocess_exec(
                sys.executable, outside_worker.__file__, json.dumps(task), stdout=said, stderr=said
            )

    async def kill(self, name: str) -> None:
        """Have one gone, whatever it does."""
        process = self.processes[name]
        assert process.returncode is None, f"a worker ended by itself: {self.said}"
        process.kill()
        await process.wait()

    async def stop(self) -> None:
        """Let all finish what is under way."""
        for process in self.processes.values():
            process.terminate()
        async with patience("the workers to end"):
            assert [await process.wait() for process in self.processes.values()] == [0] * len(self.processes), self.said

    async def end(self) -> None:
        """Have all gone."""
        for process in self.processes.values():
            if process.returncode is None:
                process.kill()
                await process.wait()

    @property
    def said(self) -> str:
        """What they said, in all their lives."""
        return (self.folder / "workers-said.txt").read_text(encoding="utf-8")

    def promises(self) -> Promises:
        """What they were promised; a line that a kill cut short is none."""
        found = Promises()
        for path in self.folder.glob("*.jsonl"):
            for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
                if line.endswith("}\n"):
                    found.note(json.loads(line))
        return found


def check_promises(promises: Promises, after: Evidence, now: float) -> None:
    """What was acknowledged is there, and what was leased and has not run out is leased still, or has ended.

    The promises are read before the evidence, and the evidence after the tracker has died.
    """
    assert promises.refused == []
    seen = {row.token: row for row in after.seen}
    assert promises.applied() <= seen.keys(), "a result that was acknowledged is lost"
    for token, answers in promises.answers.items():
        assert answers[0] != "stale" or token not in seen, "a result that was refused counts"
        assert set(answers[1:]) <= ({"stale"} if answers[0] == "stale" else {"duplicate"})
    for token, until in promises.until.items():
        if token in seen:
            assert after.pages[seen[token].page_id].url == promises.urls[token]
        elif until > now and token not in promises.back and token not in promises.answers:
            assert after.lent.get(token) == promises.urls[token], "a lease is lost"
