"""The living web as a process: it is the web that was asked for, in every setting."""

from __future__ import annotations

import asyncio
from dataclasses import fields

from patience import patience
from recrawl.lab.demo.running import WebProcess
from recrawl.lab.livingweb.world import LivingWorld
from recrawl.lab.livingweb.world_settings import WorldSettings

OTHER = WorldSettings(
    pages=31, hosts=7, seed=9, epoch=1_700_000_000, changes_per_day=2.5, laws="poisson", decades=1.5,
    clicks_per_day=77.25, interest="uniform", noise_share=0.125, kilobytes=2.5, domain="elsewhere.test",
    every_host={"robots": "allow", "hub": True, "max_age_s": None, "crawl_delay_s": 3},
)  # fmt: skip


def test_every_setting_reaches_the_process() -> None:
    """Each differs from its default, so that one that is left out shows."""
    usual = WorldSettings()
    assert all(getattr(OTHER, each.name) != getattr(usual, each.name) for each in fields(WorldSettings))

    async def main() -> LivingWorld:
        async with patience("the web"), WebProcess(OTHER, 60.0) as web:
            assert web.clock.speedup == 60.0
            return web.world()

    world = asyncio.run(main())
    assert world.settings == OTHER
    assert world.pages.clicks == LivingWorld(OTHER).pages.clicks
    assert {host.name.partition(".")[2] for host in world.hosts} == {"elsewhere.test"}
