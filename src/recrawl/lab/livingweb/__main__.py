"""Run the living web as a process of its own: `python -m recrawl.livingweb --port 0 --pages 2000 --speedup 60`.

Prints one JSON line, then serves until it is stopped. The line has the port, what a crawler must set to reach it
(`allow`, `resolve`), and what another process makes the same clock and the same world from:

    RunningClock(**line["clock"])
    LivingWorld(WorldSettings(**line["settings"]))
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import asdict, fields
from typing import Any

from recrawl.errors import InvalidInput
from recrawl.lab.livingweb.clock import RunningClock
from recrawl.lab.livingweb.server import LivingWeb
from recrawl.lab.livingweb.world import LivingWorld
from recrawl.lab.livingweb.world_settings import WorldSettings

_MEANINGS = {
    "laws": "by which pages change: mixed, poisson, bursty or rhythm",
    "decades": "powers of ten between change rates",
    "clicks_per_day": "mean clicks of a page",
    "interest": "lognormal, pareto or uniform clicks",
    "kilobytes": "mean size of a page",
    "noise_share": "share of pages with noise",
    "domain": "what all host names end with",
}


def main(arguments: list[str] | None = None) -> int:
    """Serve until a signal; 2 for settings that cannot be used."""
    asked = _parser().parse_args(arguments)
    try:
        given = {each.name: getattr(asked, each.name) for each in fields(WorldSettings)}
        given["hosts"] = min(asked.hosts, asked.pages)
        given["epoch"] = int(time.time()) if asked.epoch is None else asked.epoch
        given["every_host"] = dict(_pair(text) for text in asked.every_host)
        settings = WorldSettings(**given)
        clock = RunningClock(settings.epoch, time.time(), asked.speedup)
        web = LivingWeb(LivingWorld(settings), clock, asked.port)
        run = asyncio.run if sys.platform == "win32" else _fast_run()
        run(_serve(web, clock, with_stdin=asked.with_stdin))
    except (InvalidInput, OSError) as problem:  # settings that make no web, or a port that is taken
        print(f"recrawl.lab.livingweb: {problem}", file=sys.stderr)  # noqa: T201 - a command speaks
        return 2
    return 0


async def _serve(web: LivingWeb, clock: RunningClock, *, with_stdin: bool) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # where loops take no signals, the interrupt ends the run
            loop.add_signal_handler(number, stopped.set)
    if with_stdin:
        loop.add_reader(sys.stdin.fileno(), _stop_at_end, sys.stdin.fileno(), stopped)
    async with web:
        print(json.dumps(_facts(web, clock)), flush=True)  # noqa: T201 - the one line it prints
        await stopped.wait()


def _stop_at_end(stdin: int, stopped: asyncio.Event) -> None:
    if not os.read(stdin, 4096):
        asyncio.get_running_loop().remove_reader(stdin)
        stopped.set()


def _facts(web: LivingWeb, clock: RunningClock) -> dict[str, object]:
    return {
        "port": web.port,
        "truth": f"http://{web.answers.control_name}:{web.port}/truth",
        "allow": web.allow,
        "resolve": web.resolve,
        "clock": {"epoch": clock.epoch, "started_at": clock.started_at, "speedup": clock.speedup},
        "settings": asdict(web.world.settings),
    }


def _fast_run() -> Callable[[Coroutine[Any, Any, None]], None]:
    import uvloop

    return uvloop.run


def _pair(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidInput(f"is {text!r}: write a field and its value, such as trouble=calm", field="every-host")
    known: dict[str, object] = {"True": True, "False": False, "None": None}
    return name, int(value) if value.isdecimal() else known.get(value, value)


def _parser() -> argparse.ArgumentParser:
    usual = WorldSettings()
    parser = argparse.ArgumentParser("recrawl.livingweb", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 lets the system choose")
    parser.add_argument("--speedup", type=float, default=1.0, help="seconds of the web in one real second")
    parser.add_argument("--epoch", type=int, help="when the web begins, in Unix seconds; now by default")
    for name, value in asdict(usual).items():
        if name not in ("epoch", "every_host"):
            parser.add_argument(
                f"--{name.replace('_', '-')}", type=type(value), default=value, help=_MEANINGS.get(name)
            )
    parser.add_argument("--with-stdin", action="store_true", help="also stop when standard input ends")
    parser.add_argument("--every-host", action="append", default=[], metavar="FIELD=VALUE", help="such as trouble=calm")
    return parser


if __name__ == "__main__":
    sys.exit(main())
