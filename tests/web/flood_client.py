"""A client in a process of its own, for floods: prints outcome, CPU (in units) and the rise of memory of each path.

    python flood_client.py 40001 /one /two

Its memory is limited to what it has at first and three times the cap.
"""

from __future__ import annotations

import json
import resource
import sys
import time

from hostile_ground import AllAllowed, fetch, guarded

from patience import PATIENCE_S, cpu_unit_s
from recrawl.web.fetch.egress import egress_policy
from recrawl.web.fetch.settings import FetchLimits, FetchSettings, user_agent
from recrawl.web.fetch.transport import Transport

CAP = 10 << 20


def _pages_of_memory(place: int) -> int:
    with open("/proc/self/statm") as statm:  # noqa: PTH123
        return int(statm.read().split()[place]) * resource.getpagesize()


async def _main(port: str, *paths: str) -> None:
    egress = egress_policy(allow={"hostile": f"127.0.0.1/32:{port}"})
    settings = FetchSettings(user_agent("https://example.org/bot"), FetchLimits(total_s=PATIENCE_S / 3), egress)
    async with Transport(settings, keeper=AllAllowed()) as transport:
        await fetch(transport, f"http://127.0.0.1:{port}/warm-up")
        unit_s = cpu_unit_s()
        most = _pages_of_memory(0) + 3 * CAP
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        for path in paths:
            memory, began_s = _pages_of_memory(1), time.process_time()
            result = await fetch(transport, f"http://127.0.0.1:{port}{path}")
            units = (time.process_time() - began_s) / unit_s
            grown = _pages_of_memory(1) - memory
            sys.stdout.write(json.dumps([path, result.outcome, result.fault, units, grown]) + "\n")


if __name__ == "__main__":
    guarded(_main(*sys.argv[1:]))
