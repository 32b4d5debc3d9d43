"""Pages may come, go and pause at any moment of a busy tracker; the counts add up and nothing breaks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import get_args

import pytest
from small_site import Site
from tracker_ground import running

from recrawl.store.opening import open_store
from recrawl.tracker.admission import Wanted
from recrawl.tracker.commands.commands import Add, Pause, Remove, Resume
from recrawl.tracker.usage import End

PAGES = 20
ENDS = get_args(End)


@pytest.mark.parametrize("kind", ["page", "host", "removal"])
def test_commands_in_the_midst_of_fetches_break_nothing(tmp_path: Path, kind: str) -> None:
    async def story() -> None:
        async with Site({f"/{n}": f"<p>{n}</p>" for n in range(PAGES)}) as site:
            async with running(site, tmp_path) as ground:
                urls = [site.url(f"/{n}") for n in range(PAGES)]
                add = Add([Wanted(url) for url in urls])
                await ground.do(add)
                for _ in range(25):
                    if kind == "removal":
                        away, back = Remove(urls[: PAGES // 2]), add
                    else:
                        names = urls[: PAGES // 2] if kind == "page" else ["a.site.test"]
                        away, back = Pause(kind, names), Resume(kind, names)  # type: ignore[arg-type,assignment]
                    await ground.do(away)
                    await asyncio.sleep(0.01)
                    await ground.do(back)
                    await asyncio.sleep(0.01)
                seen = len(site.log)
                await ground.until(lambda: len(site.log) > seen + PAGES)
                accounts = ground.accounts
            assert ground.said == []
            assert accounts.taken == sum(accounts.ended.values())
            store = await open_store(str(tmp_path), owner=False)
            counted = await store.tallies()
            await store.close()
            ended = sum(count for name, count in counted.items() if name.partition(":")[0] in ENDS)
            assert counted["taken"] == accounts.taken == ended

    asyncio.run(story())
