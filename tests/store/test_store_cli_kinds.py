"""The commands of a user on both kinds of store: what works on one works on the other, and no password is shown."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from postgres_server import PostgresServer
from store_samples import StoreMaker
from tracker_harness import do_beside

from recrawl.cli.main import cli
from recrawl.tracker.admission import PageRequest
from recrawl.tracker.commands.commands import Add
from recrawl.tracker.page_registry import sync_groups
from recrawl.tracker.settings.settings import GroupRule, Settings

URL = "https://shop.example.com/p/1"


def said(*arguments: str) -> Any:
    result = CliRunner().invoke(cli, [*arguments, "--json"], prog_name="recrawl")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(cli, list(arguments), prog_name="recrawl")
    assert result.exit_code == 2, result.output
    return result.stderr


def test_a_postgresql_store_from_its_first_page_to_its_backup(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = postgres.fresh_database(), postgres.fresh_database()
    try:
        monkeypatch.setenv("RECRAWL_STORE", postgres.dsn(first))
        assert "no store" in refused("status")
        assert said("add", URL)["added"] == 1
        Path("list.txt").write_text(f"{URL}\nhttps://a.example.com/\n")
        assert said("import", "list.txt", "--dry-run")["added"] == 1
        assert said("import", "list.txt")["added"] == 1
        assert said("pause", "--page", URL)["paused"] == 1
        assert said("status")["paused_pages"] == 1
        assert said("resume", "--page", URL)["resumed"] == 1
        assert said("signal", URL)["heard"] == 1
        assert said("explain", URL)["signals"][0]["count"] == 1
        assert said("export", "--out", "pages.csv")["rows"] == 2
        assert said("backup", "copy")["bytes"] > 0
        doctor = said("doctor", "--check", "--replay")
        assert doctor["problems"] == []
        restored = said("restore", "copy", "--store", postgres.dsn(second))
        assert restored["pages"] == 2
        assert "holds a store already" in refused("restore", "copy", "--store", postgres.dsn(second))
        assert refused("restore", "copy", "--store", "folder")
        assert said("explain", URL, "--store", postgres.dsn(second))["url"] == URL
        assert said("remove", URL)["removed"] == 1
    finally:
        postgres.drop(first)
        postgres.drop(second)


def test_groups_that_change_reach_pages_on_both_stores(store_maker: StoreMaker) -> None:
    group = GroupRule("shop", ("https://shop.example.com/*",), 7.0, max_interval_s=60.0)
    old = Settings(groups=(group,))

    async def story() -> None:
        store = await store_maker.open()
        await do_beside(store, old, Add([PageRequest(URL), PageRequest("https://a.example.com/")]))
        await sync_groups(store, old)
        await sync_groups(store, Settings(groups=(replace(group, importance=2.0, max_interval_s=None),)))
        pages = await store.list_pages()
        assert [page.importance for page in pages] == [2.0, 1.0]
        assert pages[0].max_interval_s in (None, math.inf)
        assert (await store.load_schedule()).max_interval_s.tolist() == [math.inf, math.inf]
        await store.close()

    asyncio.run(story())
