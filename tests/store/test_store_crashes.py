"""The process is killed at each point that a store passes; what was acknowledged is there, and nothing twice."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from store_samples import NOW, StoreMaker, changed_result, lease_all, opened, run

from recrawl.errors import InvalidInput
from recrawl.store.bodies import body_digest
from recrawl.store.crash_points import CRASH_POINTS, crash_point, plan_crash

BODY = b"<p>Good day</p>" * 500

# Says what it was told before it goes on: the lines are what was acknowledged.
_SCRIPT = """
import asyncio, sys
from store_samples import NOW, add, changed_result, lease_all
from test_store_crashes import BODY
from recrawl.store.bodies import body_digest
from recrawl.store.crash_points import plan_crash
from recrawl.store.store import open_store

async def main():
    store = await open_store(sys.argv[1], owner=True)
    ids = await add(store, 4)
    print("added", len(ids), flush=True)
    plan_crash(sys.argv[2])
    for page_id in ids:
        [(page, lease)] = await lease_all(store, [page_id])
        print("leased", page.id, lease.token, flush=True)
        await store.put_body(body_digest(BODY), BODY)
        print("put", page.id, flush=True)
        [answer] = await store.complete([changed_result(page, lease)], {"fetches": 1})
        print("applied", page.id, lease.token, flush=True)

asyncio.run(main())
"""
POINTS = ["lease-selected:2", "lease-committed:2", "blob-tmp", "blob-renamed", "before-txn:2", "after-txn:2"]


@pytest.mark.parametrize("point", POINTS)
def test_nothing_acknowledged_is_lost_and_nothing_counts_twice(store_maker: StoreMaker, point: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, store_maker.where, point],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    said = [line.split() for line in done.stdout.splitlines()]
    leased = {
        int(token): int(page) for word, page, token in (line for line in said if len(line) == 3) if word == "leased"
    }
    applied = [int(line[2]) for line in said if line[0] == "applied"]

    async def story() -> None:
        async with opened(store_maker) as store:
            assert await store.check() == []
            assert (await store.counts()).pages["active"] == 4
            seen = [one.token for _number, one in await store.all_observations()]
            assert seen[: len(applied)] == applied
            assert len(seen) == len(set(seen)) <= len(applied) + 1
            assert [change.event.token for change in await store.changes()] == seen
            assert (await store.tallies()).get("fetches", 0) == len(seen)
            open_leases = {lease.token: lease.page_id for lease in await store.leases()}
            assert leased.items() <= {**open_leases, **{token: leased.get(token) for token in seen}}.items()
            if any(line[0] == "put" for line in said):
                assert await store.read_body(body_digest(BODY)) == BODY
            await store.release(list(open_leases))
            for page, lease in await lease_all(store, [1, 2, 3, 4]):
                assert lease.token > max([*leased, *seen, *open_leases])
                await store.put_body(body_digest(BODY), BODY)
                assert await store.complete([changed_result(page, lease, at=NOW + 9)]) == ["applied"]
            assert await store.check() == []

    run(story())


def test_the_points_are_those_that_are_documented() -> None:
    assert len(CRASH_POINTS) == len(set(CRASH_POINTS)) == 12


@pytest.mark.parametrize(
    "text", ["nowhere", "robots:", "robots:0", "robots:-1", "robots:x", "robots:1:2", ":3", "robots:²"]
)
def test_a_plan_that_names_no_point_is_refused(text: str) -> None:
    if text == "robots:":
        plan_crash(text)  # as without a number
    else:
        with pytest.raises(InvalidInput, match="RECRAWL_CRASH"):
            plan_crash(text)
    plan_crash(None)


def test_points_that_are_not_planned_are_passed() -> None:
    plan_crash("robots:2")
    crash_point("robots")
    crash_point("connect")
    plan_crash("")
    for point in CRASH_POINTS:
        crash_point(point)
