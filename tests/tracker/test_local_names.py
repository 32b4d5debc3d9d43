"""Hosts of a local network: crawled if the settings list their names and open their network, and not otherwise."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from followed_site import FOLLOWING, article, page_of_links
from small_site import Site
from tracker_ground import FAST, Ground, running

from patience import patience
from recrawl.lab.livingweb.hostile import HostileWeb, answers, page
from recrawl.tracker.admission import PageRequest
from recrawl.tracker.commands.commands import Add, Reply
from recrawl.tracker.settings.file import read_settings
from recrawl.tracker.settings.settings import Settings
from recrawl.web.fetch.egress import EgressPolicy, egress_policy

TLS = Path(__file__).parent.parent / "livingweb" / "tls"


class LocalSite(Site):
    """A site that is reached by names of a local network."""

    @property
    def egress(self) -> EgressPolicy:
        names = dict.fromkeys(("wiki", "*.corp.internal", "*.site.test"), "127.0.0.1")
        return egress_policy(allow={"site": f"127.0.0.1/32:{self.port}"}, resolve=names)

    def at(self, name: str, path: str) -> str:
        return f"http://{name}:{self.port}{path}"


def _listing(folder: Path, base: Settings, *names: str) -> Settings:
    """Settings with local names, as a user writes them."""
    path = folder / "settings.toml"
    path.write_text(f"[network]\nlocal-names = {list(names)}\n")
    return replace(base, address_rules=read_settings(path).settings.address_rules)


async def _add(ground: Ground, *urls: str) -> Reply:
    return await ground.do(Add([PageRequest(url) for url in urls]))


async def _seen(ground: Ground, url: str) -> list[str]:
    """The outcomes of the fetches of a page, the last first, once there is one; the page may have left by then."""
    async with patience(f"a visit of {url}"):
        while True:
            (number,) = (await ground.store.find_pages([url], retired=True)).values()
            seen = await ground.store.observations(number, 100)
            if seen:
                return [each.outcome for each in seen]
            await asyncio.sleep(0.01)


def test_hosts_of_a_local_network_are_crawled_and_followed_if_they_are_listed(tmp_path: Path) -> None:
    async def story() -> None:
        async with LocalSite() as site:
            named = f"Sitemap: {site.at('wiki', '/map.xml')}\n".encode()
            site.answers["/robots.txt"] = (200, {}, named)
            site.answers["/"] = page_of_links("/near", site.at("wiki", "/whole"), site.at("other", "/no"))
            listed = f"<urlset><url><loc>{site.at('wiki', '/listed')}</loc></url></urlset>"
            site.answers["/map.xml"] = (200, {"Content-Type": "application/xml"}, listed.encode())
            for path in ("/near", "/whole", "/listed", "/handbook"):
                site.answers[path] = article(path)
            settings = _listing(tmp_path, FOLLOWING, "Wiki", "*.corp.internal")
            async with running(site, tmp_path / "store", settings) as ground:
                reply = await _add(ground, site.at("wiki", "/"), site.at("docs.corp.internal", "/handbook"))
                assert not reply.rejected
                for path in ("/", "/near", "/whole", "/listed", "/handbook"):
                    await ground.until(lambda path=path: bool(site.asked_for(path)))  # type: ignore[misc]
                assert not site.asked_for("/no")

    asyncio.run(story())


def test_a_local_name_that_is_not_listed_is_refused_with_the_setting_that_allows_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with LocalSite() as site, running(site, tmp_path, FAST) as ground:
            reply = await _add(ground, site.at("wiki", "/"))
            (rejected,) = reply.rejected
            assert "`local-names`" in rejected.reason

    asyncio.run(story())


def test_a_local_name_opens_no_network(tmp_path: Path) -> None:
    """The gate decides by the address that is dialled: the network has to be opened as well."""

    async def story() -> None:
        async with Site() as site:
            closed = replace(_listing(tmp_path, FAST, "wiki"), egress=egress_policy(resolve={"wiki": "127.0.0.1"}))
            async with running(site, tmp_path / "store", closed) as ground:
                reply = await ground.do(Add([PageRequest("http://wiki/")]), closed)
                (rejected,) = reply.rejected
                assert "open it by name" in rejected.reason

    asyncio.run(story())


def test_a_redirect_leads_to_a_local_name_only_if_it_is_listed(tmp_path: Path) -> None:
    async def story() -> None:
        async with LocalSite() as site:
            for name in ("wiki", "docs.corp.internal"):
                site.answers[f"/to-{name}"] = (302, {"Location": site.at(name, f"/at-{name}")}, b"")
                site.answers[f"/at-{name}"] = article(name)
            async with running(site, tmp_path / "store", _listing(tmp_path, FAST, "wiki")) as ground:
                await ground.add(["/to-wiki", "/to-docs.corp.internal"])
                allowed = await ground.until_visited("/to-wiki", 3)
                assert (await ground.store.observations(allowed.id, 1))[0].outcome == "ok"
                await ground.until(lambda: bool(site.asked_for("/to-docs.corp.internal")))
                assert len(await _seen(ground, site.url("/to-docs.corp.internal"))) >= 1
                assert not site.asked_for("/at-docs.corp.internal")

    asyncio.run(story())


def test_a_page_whose_local_name_is_listed_no_longer_is_not_fetched(tmp_path: Path) -> None:
    async def story() -> None:
        async with LocalSite() as site:
            site.answers["/"] = site.answers["/other"] = article("a page")
            async with running(site, tmp_path / "store", _listing(tmp_path, FAST, "wiki")) as ground:
                await _add(ground, site.at("wiki", "/"))
                await ground.until(lambda: len(site.asked_for("/")) >= 2)
            asked = len(site.asked_for("/"))
            async with running(site, tmp_path / "store", FAST) as ground:
                await ground.add(["/other"])
                await ground.until_visited("/other", 3)
                async with patience("the page to be refused"):
                    while (await _seen(ground, site.at("wiki", "/")))[0] != "refused":
                        await asyncio.sleep(0.01)
            assert len(site.asked_for("/")) == asked

    asyncio.run(story())


@pytest.mark.parametrize("named", [True, False])
def test_a_certificate_goes_unchecked_for_the_origins_alone_that_are_named(tmp_path: Path, named: bool) -> None:
    """Another name of the same server is another origin."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(TLS / "self_signed.pem")

    async def story() -> None:
        async with HostileWeb(tls=serving) as web:
            web.on("/page", answers(page(b"<p>text</p>")))
            path = tmp_path / "settings.toml"
            origin = web.url("", "a.hostile.test" if named else "b.hostile.test")
            path.write_text(
                f'contact = "https://example.com/bot"\nbudget = "100/s"\n[network]\nunverified-tls = ["{origin}"]\n'
                f'allow = {{web = "127.0.0.1/32:{web.port}"}}\nresolve = {{"*.hostile.test" = "127.0.0.1"}}\n'
            )
            settings = read_settings(path).settings

            class Opened(Site):
                @property
                def egress(self) -> EgressPolicy:
                    return settings.egress

            async with Opened() as site, running(site, tmp_path / "store", settings) as ground:
                await _add(ground, web.url("/page"))
                (*_, first) = await _seen(ground, web.url("/page"))
                assert first == ("ok" if named else "network-error")
                assert bool([visitor for visitor in web.log if visitor.target == "/page"]) is named

    asyncio.run(story())
