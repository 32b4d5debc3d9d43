"""A site's own IndexNow key: looked for on the site, believed from then on; wrong ones are refused, and few checked."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx
from service_ground import PLENTY
from small_site import Site
from tracker_ground import running

from recrawl.service.app import make_app
from recrawl.service.auth.access import Access
from recrawl.service.incoming.pings import BY_SITE
from recrawl.service.listening import Listening

KEY = "0123456789abcdef"


def test_a_key_that_the_site_holds_is_believed(tmp_path: Path) -> None:
    """202 until it was found, then 200; what was pinged before is heard as well."""

    async def main() -> None:
        async with Site() as site, running(site, tmp_path) as ground:
            site.answers.update({"/a": "<p>a</p>", f"/{KEY}.txt": (200, {"Content-Type": "text/plain"}, KEY.encode())})
            await ground.add(["/a"])
            await ground.until_visited("/a")
            app: Any = make_app(ground.tracker, Access(ground.store, Listening(), time.time, PLENTY))
            keys = app.state["site_keys"]
            heard: list[str] = []
            signal = keys.heard

            async def hearing(ping: Any) -> None:
                heard.extend(ping.urls.urls)
                await signal(ping)

            keys.heard = hearing
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:

                async def ping(key: str, path: str = "/a") -> int:
                    location = site.url(f"/{key}.txt")
                    host = location.split("/")[2]
                    body = {"host": host, "key": key, "keyLocation": location, "urlList": [site.url(path)]}
                    return (await client.post("/ping", json=body)).status_code

                assert await ping(KEY) == 202
                await keys.checked()
                assert heard == [site.url("/a")]
                assert await ping(KEY) == 200
                assert await ping("wrong-key-1") == 202
                await keys.checked()
                assert await ping("wrong-key-1") == 403
                assert len(heard) == 2
                statuses = [await ping(f"wrong-key-{number}") for number in range(2, 12)]
                assert statuses.count(202) == BY_SITE.burst - 2
                assert statuses.count(429) == 10 - (BY_SITE.burst - 2)
                await keys.checked()
                assert len([each for each in site.log if each.path.endswith(".txt") and "key" in each.path]) < 6
                stranger = {"host": "b.site.test", "key": KEY, "urlList": ["https://b.site.test/"]}
                asked = len(site.log)
                assert (await client.post("/ping", json=stranger)).status_code == 202
                await keys.checked()
                assert not [each for each in site.log[asked:] if each.host == "b"]

    asyncio.run(main())
