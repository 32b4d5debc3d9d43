"""New pages compete by their age: of what a source lists, the youngest is fetched first."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from followed_site import FOLLOWING, a_site, article, sitemap
from small_site import Site
from tracker_ground import running

_DAY_S = 86_400.0


@pytest.mark.parametrize("order", [("/old", "/young"), ("/young", "/old")])
def test_of_new_pages_the_youngest_is_fetched_first(tmp_path: Path, order: tuple[str, str]) -> None:
    """A sitemap that dates new pages tells their age: what is three days old is worth less than what just came."""
    rules = replace(FOLLOWING.discovery, found="once", fades_s=_DAY_S)
    settings = replace(FOLLOWING, discovery=rules, max_in_flight=1)

    async def story() -> None:
        async with Site() as site, running(site, tmp_path, settings) as ground:
            a_site(site)
            await ground.add(["/"])
            await ground.until(lambda: any(each.path == "/by-map" for each in site.log))
            now = ground.now()
            dates = {"/old": now - 3 * _DAY_S, "/young": now - 1.0}
            site.answers.update({path: article(path) for path in order})
            site.answers["/map.xml"] = sitemap(site, ("/by-map", 1e9), *((path, dates[path]) for path in order))
            await ground.until(lambda: {"/old", "/young"} <= {each.path for each in site.log})
            asked = [each.path for each in site.log]
            assert asked.index("/young") < asked.index("/old")

    asyncio.run(story())
