"""What others send: pings, signed hooks and WebSub signal known pages, are coalesced, and open nothing else."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from service_ground import SECRET, Ground

from recrawl.cli.main import cli
from recrawl.errors import InvalidInput
from recrawl.tracker.settings.file import read_settings
from recrawl.web.push.webhook import headers as signed_headers
from recrawl.web.push.webhook import read_secret

SITE = "pinged.example"


def key_of(ground: Ground) -> str:
    return ground.headers("signal")["Authorization"].partition(" ")[2]


def ping(ground: Ground, urls: list[str], key: str | None = None) -> httpx.Response:
    body = {"host": SITE, "key": key_of(ground) if key is None else key, "urlList": urls}
    return ground.ask("POST", "/ping", None, json=body)


def pending(ground: Ground, kind: str) -> dict[int, int]:
    """How many signals of a kind wait, by page."""
    rows = ground.run(ground.tracker.store.pending_signals())
    return {row.page_id: row.count for row in rows if row.kind == kind}


def test_a_flood_of_pings_leaves_one_entry_for_each_page(ground: Ground) -> None:
    """A hundred thousand of them, for tracked pages and others; no page is added."""
    urls = [f"https://{SITE}/{i}" for i in range(100)]
    numbers = ground.add(*urls)
    strangers = [f"https://{SITE}/stranger/{i}" for i in range(900)]
    before = ground.run(ground.tracker.store.counts()).pages
    for _ in range(100):
        assert ping(ground, urls + strangers).status_code == 200
    waiting = pending(ground, "indexnow")
    assert set(waiting) == set(numbers)
    of_them = ground.run(ground.tracker.store.pending_signals(numbers))  # pages of other tests may wait, too
    assert len(of_them) == len(numbers)
    assert ground.run(ground.tracker.store.counts()).pages == before


def test_a_ping_for_one_page_by_get(ground: Ground) -> None:
    (number,) = ground.add(f"https://{SITE}/by-get")
    answer = ground.ask("GET", "/indexnow", None, params={"url": f"https://{SITE}/by-get", "key": key_of(ground)})
    assert answer.status_code == 200
    assert number in pending(ground, "indexnow")


def test_pings_with_wrong_keys_are_refused(ground: Ground) -> None:
    """Also with the right key of someone who may do more: keys travel in addresses."""
    (number,) = ground.add(f"https://{SITE}/forged")
    strong = ground.headers("admin")["Authorization"].partition(" ")[2]
    for key in ("recrawl-0123456789ab-" + "0" * 64, strong):
        assert ping(ground, [f"https://{SITE}/forged"], key).status_code == 403
    assert ping(ground, [f"https://{SITE}/forged"], "0123456789abcdef").status_code == 202  # a site's own, unproven
    assert number not in pending(ground, "indexnow")


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (b"", 400, "body"),
        (b"{}", 400, "host"),
        (
            b'{"host": "pinged.example", "key": "0123456789abcdef", "urlList": ["https://other.example/"]}',
            422,
            "urlList",
        ),
        (json.dumps({"host": SITE, "key": "0123456789abcdef", "urlList": ["x"] * 10_001}).encode(), 413, "urlList"),
        (b'{"host": "pinged.example", "key": "?", "urlList": ["https://pinged.example/"]}', 422, "key"),
    ],
)
def test_pings_that_cannot_be_read(ground: Ground, body: bytes, status: int, field: str) -> None:
    answer = ground.ask("POST", "/ping", None, content=body)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["field"] == field


def hook(ground: Ground, body: bytes, at: float, message: str, **changed: Any) -> httpx.Response:
    headers = signed_headers(read_secret(changed.get("secret", SECRET), "secret"), message, int(at), body)
    return ground.ask(
        "POST", f"/hooks/{changed.get('name', 'cms')}", None, content=changed.get("sent", body), headers=headers
    )


def test_a_signed_hook_is_heard_once(ground: Ground) -> None:
    """A replay is answered as if it had been taken, and counts no more."""
    url = f"https://{SITE}/hooked"
    (number,) = ground.add(url)
    body = json.dumps({"urls": [url], "kind": "sitemap"}).encode()
    now = time.time()
    for _ in range(3):
        assert hook(ground, body, now, "msg-1").status_code == 200
    assert pending(ground, "webhook")[number] == 1
    assert number not in pending(ground, "sitemap")


def test_hooks_that_prove_nothing_are_all_answered_alike(ground: Ground) -> None:
    """Wrong secret, other body, old message, unknown hook, no signature."""
    body, now = json.dumps({"urls": [f"https://{SITE}/x"]}).encode(), time.time()
    other = "whsec_" + "WllYV1ZVVFNSUVBPTk1MS0pJSEdGRURDQkE="
    answers = [
        hook(ground, body, now, "a", secret=other),
        hook(ground, body, now, "b", sent=body + b" "),
        hook(ground, body, now - 3600, "c"),
        hook(ground, body, now, "d", name="nobody"),
        ground.ask("POST", "/hooks/cms", None, content=body),
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1


def test_websub_knows_no_strangers(ground: Ground) -> None:
    """A callback that nobody asked for is 404, a push to it is taken in silence."""
    assert ground.ask("GET", "/websub/nobody?hub.mode=subscribe&hub.topic=x&hub.challenge=c", None).status_code == 404
    pushed = ground.ask("POST", "/websub/nobody", None, content=b"news", headers={"X-Hub-Signature": "sha256=00"})
    assert pushed.status_code == 202


def test_signals_over_the_api_cannot_borrow_the_tracker_s_own_kinds(ground: Ground) -> None:
    url = f"https://{SITE}/signalled"
    (number,) = ground.add(url)
    for kind in ("sitemap", "feed", "websub", "neighbour", "now", "Bad Kind"):
        assert ground.ask("POST", "/api/v1/signals", "signal", json={"urls": [url], "kind": kind}).status_code == 422
    done = ground.ask("POST", "/api/v1/signals", "signal", json={"urls": [url, f"{url}/nowhere"], "kind": "cms"}).json()
    assert (done["done"]["heard"], done["done"]["rejected"]) == (1, 1)
    assert number in pending(ground, "cms")


@pytest.mark.parametrize(
    ("kind", "good"),
    [
        ("cms", True),
        ("cms_publish-2", True),
        ("c" * 40, True),
        ("c" * 41, False),
        ("2nd", False),
        ("CMS", False),
        ("cms\n", False),
    ],
)
def test_api_commands_hooks_and_settings_take_the_same_names_of_kinds(
    ground: Ground, tmp_path: Path, kind: str, good: bool
) -> None:
    url = f"https://{SITE}/kinds"
    ground.add(url)
    answer = ground.ask("POST", "/api/v1/signals", "signal", json={"urls": [url], "kind": kind})
    assert (answer.status_code == 200) is good
    body = json.dumps({"urls": [url], "kind": kind}).encode()
    assert (hook(ground, body, time.time(), f"kind-{kind}").status_code == 200) is good
    store = ["--store", str(tmp_path / "data")]
    assert CliRunner().invoke(cli, ["add", url, *store]).exit_code == 0
    assert (CliRunner().invoke(cli, ["signal", url, "--kind", kind, *store]).exit_code == 0) is good
    (tmp_path / "recrawl.toml").write_text(f"[signals]\nkinds = [{json.dumps(kind)}]\n")
    if good:
        assert read_settings(tmp_path / "recrawl.toml").settings.signals.hears(kind)
    else:
        with pytest.raises(InvalidInput, match=r"signals\.kinds"):
            read_settings(tmp_path / "recrawl.toml")


def test_a_page_can_be_wished_for(ground: Ground) -> None:
    url = f"https://{SITE}/wished"
    (number,) = ground.add(url)
    done = ground.ask("POST", "/api/v1/fetch-now", "write", json={"urls": [url]}).json()
    assert done["done"]["wanted"] == 1
    assert number in pending(ground, "now")
