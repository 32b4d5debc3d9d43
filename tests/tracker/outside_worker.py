"""An outside fetcher as a process of its own: leases pages over HTTP, asks for each once, and hands in what came.

It writes into a journal what it was promised before it acts on it, and is killed at any moment. It asks for no page
whose lease is about to run out, gives some pages back, prolongs some leases, and hands some results in twice.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from http.client import HTTPConnection, HTTPException
from typing import Any, NamedTuple

from ledger_site import TOKEN, WORKER

AT_ONCE = 4
WAIT_S = 0.02
MARGIN_S = 3.0
"""A lease that runs out sooner is not used."""
TRIES = 500


class Task(NamedTuple):
    """What a worker is told at its start."""

    name: str
    service: int
    secret: str
    site: int
    journal: str
    lease_s: float
    seed: int


class Worker:
    """Works until it is told to stop."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._chance = random.Random(task.seed)
        self._journal = os.open(task.journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._service = HTTPConnection("127.0.0.1", task.service, timeout=20)
        self._site = HTTPConnection("127.0.0.1", task.site, timeout=20)
        self.stopping = False

    def run(self) -> None:
        """Lease, fetch and hand in."""
        while not self.stopping:
            answer = self._ask("", {"n": AT_ONCE, "worker": self._task.name})
            offers = [] if answer is None else answer["leases"]
            for offer in offers:
                until = datetime.fromisoformat(offer["until"]).timestamp()
                self._note("leased", token=offer["token"], url=offer["url"], until=until)
            results = list(self._work(offers))
            if results:
                self._hand_in(results)
            else:
                time.sleep(WAIT_S)

    def _work(self, offers: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for offer in offers:
            token, left_s = offer["token"], datetime.fromisoformat(offer["until"]).timestamp() - time.time()
            if left_s < MARGIN_S or (self._chance.random() < 0.1 and not self._prolong(offer)):
                continue
            if self._chance.random() < 0.05:
                self._note("back", token=token)
                yield {"token": token, "outcome": "deferred"}
                continue
            yield {"token": token, "outcome": "ok", "status": 200, "text": self._fetch(offer["url"], token)}

    def _prolong(self, offer: dict[str, Any]) -> bool:
        """Prolong a lease; whether it may be used."""
        until = time.time() + self._task.lease_s
        answer = self._ask("/heartbeat", {"tokens": [offer["token"]]})
        if answer is None:
            return datetime.fromisoformat(offer["until"]).timestamp() - time.time() >= MARGIN_S
        if answer["good"] == [offer["token"]]:
            self._note("leased", token=offer["token"], url=offer["url"], until=until)
            return True
        return False

    def _fetch(self, url: str, token: int) -> str:
        host, _, path = url.removeprefix("http://").partition("/")
        self._site.request("GET", f"/{path}", headers={"Host": host, WORKER: self._task.name, TOKEN: str(token)})
        return self._site.getresponse().read().decode()

    def _hand_in(self, results: list[dict[str, Any]]) -> None:
        """Hand in until an answer comes; sometimes once more."""
        for _ in range(TRIES):
            answer = self._ask("/complete", {"results": results})
            if answer is not None:
                break
            time.sleep(WAIT_S)
        else:
            return
        self._note_answers("answer", results, answer["answers"])
        if self._chance.random() < 0.1:
            again = self._ask("/complete", {"results": results})
            if again is not None:
                self._note_answers("again", results, again["answers"])

    def _note_answers(self, what: str, results: list[dict[str, Any]], answers: list[str]) -> None:
        for result, answer in zip(results, answers, strict=True):
            self._note(what, token=result["token"], answer=answer, fetched=result["outcome"] == "ok")

    def _ask(self, path: str, body: dict[str, Any]) -> Any:
        """The answer of the tracker; None if it is not there, or did not live to give one."""
        headers = {"Authorization": f"Bearer {self._task.secret}", "Content-Type": "application/json"}
        try:
            self._service.request("POST", f"/api/v1/leases{path}", json.dumps(body).encode(), headers)
            response = self._service.getresponse()
            text = response.read()
        except (OSError, HTTPException):
            self._service.close()
            return None
        if response.status != 200:
            self._note("refused", status=response.status, said=text.decode(errors="replace"))
            return None
        return json.loads(text)

    def _note(self, what: str, **facts: Any) -> None:
        os.write(self._journal, json.dumps({"what": what, **facts}).encode() + b"\n")

    def stop(self, *_: object) -> None:
        """Finish what is under way."""
        self.stopping = True


if __name__ == "__main__":
    worker = Worker(Task(*json.loads(sys.argv[1])))
    signal.signal(signal.SIGTERM, worker.stop)
    worker.run()
