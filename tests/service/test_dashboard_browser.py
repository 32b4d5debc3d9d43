"""The dashboard in a real browser: found on PATH or named by RECRAWL_BROWSER, driven headless; skipped without one.

Screenshots are kept in the folder `recrawl-out/screenshots`, or where RECRAWL_SCREENSHOTS says.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from litestar import Litestar
from selectolax.lexbor import LexborHTMLParser
from service_ground import PLENTY, SETTINGS
from tracker_harness import TrackerHarness

from patience import PATIENCE_S
from recrawl.service.app import make_app
from recrawl.service.auth.access import Access
from recrawl.service.listening import Listening
from recrawl.service.monitor.monitor import Watch
from recrawl.service.monitor.timeline import Sample, Timeline
from recrawl.store.bodies import packed
from recrawl.store.rows import (
    DeadLetter,
    NewChange,
    NewPage,
    NewVersion,
    Observation,
    Result,
    SinkRow,
    SourceKind,
    SourceRow,
    edited,
)
from recrawl.tracker.discovery.memory import Memory, to_bytes
from recrawl.tracker.process import serving
from recrawl.tracker.tracker import Tracker

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SCREENSHOTS = Path(os.environ.get("RECRAWL_SCREENSHOTS", "recrawl-out/screenshots"))
HOSTILE = "</title><script>document.title='owned'</script>\"><img src=x onerror=\"document.title='owned'\">"


def browser() -> str:
    named = os.environ.get("RECRAWL_BROWSER")
    found = shutil.which(named) if named else next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser: install one of {', '.join(BROWSERS)}, or set RECRAWL_BROWSER to one")
    return found


class Window:
    """A browser that is started anew for each look, in a profile of its own: signed in once, it stays so."""

    def __init__(self, program: str, profile: Path, address: str) -> None:
        self._call = [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--mute-audio",
            "--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-dev-shm-usage",
            "--virtual-time-budget=4000", f"--user-data-dir={profile}",
        ]  # fmt: skip
        self.address = address

    def look(self, path: str, *options: str) -> str:
        """The document of a page after its scripts ran, as text."""
        call = [*self._call, *options, "--dump-dom", f"{self.address}{path}"]
        return subprocess.run(call, capture_output=True, timeout=PATIENCE_S, check=True, text=True).stdout

    def shoot(self, path: str, name: str, size: tuple[int, int], *, dark: bool = False) -> Path:
        """A picture of a page, kept."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        picture = (SCREENSHOTS / f"{name}.png").resolve()
        scheme = "0" if dark else "1"
        call = [
            *self._call, f"--window-size={size[0]},{size[1]}", f"--blink-settings=preferredColorScheme={scheme}",
            f"--screenshot={picture}", f"{self.address}{path}",
        ]  # fmt: skip
        subprocess.run(call, capture_output=True, timeout=PATIENCE_S, check=True)
        return picture


class WithToken:
    """An application to which every look at a page brings a token; signing in is left to the browser.

    There is no news: a stream that does not end would be waited for. `ends_after` is the page that is the last to be
    shown: nobody is signed in from then on, as after a restart, and all else is answered by the service itself.
    """

    def __init__(self, app: Litestar, token: str) -> None:
        self._app = app
        self._header = (b"authorization", f"Bearer {token}".encode())
        self.signed_in_by_cookie = False
        self.ends_after = ""
        self._ended = False

    def end_after(self, path: str) -> None:
        """End what is signed in with the next look at a page; "" begins again."""
        self.ends_after, self._ended = path, False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope["headers"])
        if self._ended:
            await self._app(scope, receive, send)
            return
        self._ended = scope["path"] == self.ends_after
        if scope["path"] == "/live":
            await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        if b"cookie" in headers:
            self.signed_in_by_cookie = True
        elif not scope["path"].startswith("/login"):
            scope = {**scope, "headers": [*scope["headers"], self._header]}
        await self._app(scope, receive, send)


class Running:
    """A service on a socket, in a thread of its own, over a store with some pages."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._server: uvicorn.Server | None = None
        self.address = self.link = ""
        self.app: WithToken

    def __enter__(self) -> Running:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.should_exit = True
        self._thread.join(30)

    async def _serve(self) -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            async with serving(replace(SETTINGS, store=str(self._folder), discover=True), lambda _: None) as tracker:
                access = Access(tracker.store, Listening(), TrackerHarness(tracker).now, PLENTY)
                await _fill(tracker)
                watch = Watch(tracker)
                await watch.look()
                token, _ = await access.make(["read"], "browser")
                self.app = WithToken(make_app(tracker, access, watch), token)
                quiet = {"log_config": None, "lifespan": "off", "ws": "none", "timeout_graceful_shutdown": 1}
                config = uvicorn.Config(self.app, **quiet)  # type: ignore[arg-type]
                self._server = uvicorn.Server(config)
                self._server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
                self.address = f"http://127.0.0.1:{listener.getsockname()[1]}"
                self.link = f"/login#{access.sessions.new_code(access.now())}"
                serving_it = asyncio.ensure_future(self._server.serve([listener]))
                self._ready.set()
                await serving_it


def _past(now: float) -> Timeline:
    """Eight minutes of measurements."""
    past = Timeline()
    for i in range(240):
        fresh = 0.8 + 0.1 * math.sin(i / 25)
        price = 0.5 + 0.1 * math.cos(i / 9)
        past.add(Sample(now - 480 + 2 * i, fresh, fresh - 0.1, 600 + i, 2000 + 3 * i, price, 0.97, 60, 9))
    return past


async def _fill(tracker: Tracker) -> None:
    """Sixty pages with a copy, some of them changed; one with a hostile name."""
    store, now = tracker.store, TrackerHarness(tracker).now()
    await store.save_facts(_past(now).to_facts(everything=True))
    urls = [f"https://site-{i % 6}.example/page/{i}" for i in range(59)] + [f"https://evil.example/{HOSTILE}"]
    added = await TrackerHarness(tracker).add_pages(
        [NewPage(url, url.split("/")[2], importance=1.0 + i % 7) for i, url in enumerate(urls)]
    )
    for i, (page_id, _) in enumerate(added):
        for version in (1, 2)[: 1 + i % 2]:
            ((page, lease),) = await store.lease([page_id], "outside:test", now, now + 60)
            at, digest = now - 600 + i + 60 * version, bytes([version]) * 16
            kind = "discovered" if version == 1 else "changed"
            event = NewChange(kind, at, page.url, page_id=page_id, new_digest=digest)  # type: ignore[arg-type]
            seen = Observation(page_id, lease.token, at, "ok", "first" if version == 1 else "changed", gap_s=60.0)
            row = edited(page, fetched_at=at, changed_at=at, outcome="ok", visits=version, version=version)
            text = NewVersion(version, at, digest, packed(f"{HOSTILE} version {version} of page {i}".encode()))
            await store.complete([Result(seen, row, None, (event,), text)], {"fetched:ok": 1, "requests": 1})

    await _find(tracker, now)


async def _find(tracker: Tracker, now: float) -> None:
    """A feed, and a sitemap and a hub that cannot be read whole; a sink that could not take some events."""
    store = tracker.store
    named: dict[SourceKind, Memory] = {
        "hub": Memory(problem="the page asks not to follow its links", problem_at=now - 4000.0),
        "feed": Memory(refused={"robots": 12, "no-page": 3}),
        "sitemap": Memory(problem=f"the sitemap {HOSTILE}", problem_at=now - 60.0, refused={"out-of-scope": 1200}),
    }
    pages = [NewPage(f"https://site-0.example/{kind}", "site-0.example", role="source") for kind in named]
    ids = [number for number, _ in await store.add_pages(pages)]
    await store.save_sources([
        SourceRow(number, kind, found_by="robots", polls=9, found=4, useful_at=now - 500.0, memory=to_bytes(memory))
        for number, (kind, memory) in zip(ids, named.items(), strict=True)
    ])  # fmt: skip
    await TrackerHarness(tracker).sources.load()
    letters = [DeadLetter("search index", 40 + i, now - 300.0 + i, "its target answered 422") for i in range(14)]
    await store.save_sink(SinkRow("search index", 60), letters)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    browser()
    with Running(tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture(scope="module")
def window(service: Running, tmp_path_factory: pytest.TempPathFactory) -> Window:
    """A browser whose looks at pages are allowed."""
    return Window(browser(), tmp_path_factory.mktemp("profile"), service.address)


def test_the_printed_link_signs_in(service: Running, tmp_path: Path) -> None:
    """Its code is posted by the page itself, and the cookie opens the overview, now and with the next start."""
    window = Window(browser(), tmp_path / "profile", service.address)
    assert "Overview" in window.look(service.link)
    assert service.app.signed_in_by_cookie
    assert 'name="csrf_token"' in window.look("/#still")


@pytest.mark.parametrize("path", ["/", "/changes", "/pages/1"])
def test_an_open_page_whose_session_ended_leads_to_the_sign_in(service: Running, window: Window, path: str) -> None:
    """A restart ends all sessions: the page says so by the form, instead of waiting for a stream that never comes."""
    service.app.end_after(path)
    try:
        tree = LexborHTMLParser(window.look(path, "--virtual-time-budget=60000"))
    finally:
        service.app.end_after("")
    assert tree.css_first("form#sign-in") is not None, tree.css_first("#live")


def test_the_overview_draws_its_charts(window: Window) -> None:
    """Four of them and the curve, in SVG, by the script, under the policy that allows no other."""
    tree = LexborHTMLParser(window.look("/#still"))
    assert len(tree.css("figure[data-chart] svg")) == 4
    assert tree.css("figure[data-chart] svg path.line")
    assert tree.css("#curve svg path.line")
    assert tree.css(".tile .spark path")
    bought = tree.css_first("#bought")
    assert bought is not None
    assert re.search(r"\d % fresh", bought.text())
    slider = tree.css_first("#budget")
    assert slider is not None
    assert "disabled" not in slider.attributes


def test_hostile_text_stays_text_in_a_browser(window: Window) -> None:
    """Titles, addresses and diffs: no script of theirs runs, no element comes of them."""
    for path in ("/changes#still", "/pages?host=evil.example#still", "/pages/60#still", "/sources#still"):
        tree = LexborHTMLParser(window.look(path))
        title, main = tree.css_first("title"), tree.css_first("main")
        assert title is not None
        assert main is not None
        assert title.text() != "owned", path
        assert "document.title='owned'" in main.text(), path
        assert not tree.css("img[onerror], script:not([src])"), path


def test_the_theme_is_that_of_the_system_or_the_one_chosen(window: Window) -> None:
    """Pictures in light, in dark, and as wide as a phone; none is blank, and they differ."""
    light = window.shoot("/#still", "overview-light", (1280, 1500))
    dark = window.shoot("/#still", "overview-dark", (1280, 1500), dark=True)
    phone = window.shoot("/#still", "overview-phone", (390, 1600))
    others = [
        window.shoot("/changes#still", "changes-light", (1280, 900)),
        window.shoot("/pages/1#still", "page-dark", (1280, 900), dark=True),
        window.shoot("/sources#still", "sources-light", (1280, 900)),
        window.shoot("/sources#still", "sources-phone", (390, 1200)),
        window.shoot("/settings#still", "settings-light", (1280, 1100)),
    ]
    for picture in (light, dark, phone, *others):
        assert picture.stat().st_size > 20_000, picture
    assert light.read_bytes() != dark.read_bytes()
