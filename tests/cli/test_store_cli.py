"""Commands on a store as a user gives them, with no tracker running."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from recrawl.cli.main import COMMANDS, cli
from recrawl.web.push.webhook import read_secret

URL = "https://shop.example.com/p/1"
SETTINGS = """
contact = "me@example.com"
[[groups]]
name = "shop"
patterns = ["https://shop.example.com/*"]
importance = 5
"""
ON_A_STORE = (
    "add", "import", "remove", "pause", "resume", "signal", "changes", "status", "explain", "export", "backup",
    "doctor", "track",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RECRAWL_STORE", raising=False)


def recrawl(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), prog_name="recrawl")


def said(*arguments: str) -> Any:
    """What a command says as JSON."""
    result = recrawl(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def refused(*arguments: str) -> str:
    """The sentence with which a command is refused."""
    result = recrawl(*arguments)
    assert result.exit_code == 2, result.output
    return result.stderr


def test_pages_are_added_known_and_removed() -> None:
    assert said("add", URL, "HTTPS://shop.example.com/p/1#x")["added"] == 1
    assert said("add", URL)["known"] == 1
    assert said("status")["pages"]["active"] == 1
    assert said("remove", URL)["removed"] == 1
    assert "is not tracked" in refused("remove", URL)
    assert said("status")["pages"] == {"active": 0, "removed": 0, "quarantined": 0, "retired": 1}
    assert said("add", URL)["added"] == 1


def test_a_dry_run_begins_no_store(tmp_path: Path) -> None:
    assert said("add", URL, "--dry-run")["added"] == 1
    assert "none of it could be done" in refused("add", "nonsense")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [name for name in ON_A_STORE if name not in ("add", "import", "track", "doctor")])
def test_what_needs_a_store_says_that_there_is_none(name: str, tmp_path: Path) -> None:
    given = {"pause": ["--page", URL], "resume": ["--page", URL], "backup": ["b"]}
    arguments = given.get(name, [URL] if name in ("remove", "signal", "explain") else [])
    assert "there is no store in recrawl-data: begin one with" in refused(name, *arguments)
    assert list(tmp_path.iterdir()) == []


def test_the_settings_file_of_the_folder_holds_and_the_variable_names_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("recrawl.toml").write_text(SETTINGS)
    monkeypatch.setenv("RECRAWL_STORE", "elsewhere")
    said("add", URL)
    assert (tmp_path / "elsewhere" / "recrawl.db").exists()
    facts = said("explain", URL)
    assert (facts["group"], facts["importance"]) == ("shop", 5.0)
    assert "did you mean 'budget'" in _with_settings("budgit = 1\n", lambda: refused("status"))
    assert "which is not a file" in refused("status", "--settings", "nowhere.toml")


def _with_settings(text: str, then: Callable[[], str]) -> str:
    Path("recrawl.toml").write_text(text)
    return then()


def test_pauses_are_named_and_ended() -> None:
    said("add", URL, "https://a.example.com/")
    assert said("pause", "--page", URL, "--host", "A.example.com")["paused"] == 2
    status = said("status")
    assert status["paused_pages"] == 2
    assert {(each["kind"], each["name"]) for each in status["pauses"]} == {("page", URL), ("host", "a.example.com")}
    assert "say what is meant" in refused("pause")
    assert "is no group of any page" in refused("pause", "--group", "nobody")
    assert said("resume", "--page", URL, "--host", "a.example.com")["resumed"] == 2
    assert recrawl("resume", "--page", URL).stdout == "nothing to do\n"


def test_a_least_interval_is_said_of_new_and_of_tracked_pages() -> None:
    def least() -> float:
        return float(said("explain", URL)["bounds"]["min_interval_s"])

    said("add", URL)
    assert least() == 60.0
    assert said("add", URL, "--min-interval", "0")["changed"] == 1
    assert least() == 0.0
    assert "changed" not in said("add", URL)
    assert least() == 0.0
    assert said("add", URL, "--min-interval", "10min", "--dry-run")["changed"] == 1
    assert least() == 0.0
    Path("pages.csv").write_text(f"url,min_interval\n{URL},90s\n")
    said("import", "pages.csv")
    assert least() == 90.0
    assert "--min-interval is '90': write a number and a unit" in refused("add", URL, "--min-interval", "90")


def test_a_page_that_settings_no_longer_allow_is_found_and_can_be_removed() -> None:
    url = "https://shop.example.com:8443/p/1"
    Path("recrawl.toml").write_text("[network]\nports = [80, 443, 8443]\n")
    assert said("add", url)["added"] == 1
    Path("recrawl.toml").unlink()
    assert "only the ports 80, 443" in refused("add", url)
    assert said("explain", url)["url"] == url
    assert said("pause", "--page", url)["paused"] == 1
    assert said("resume", "--page", url)["resumed"] == 1
    assert said("fetch", url)["wanted"] == 1
    assert said("signal", "HTTPS://shop.example.com:8443/p/1#x")["heard"] == 1
    assert said("remove", url)["removed"] == 1
    assert "is not tracked" in refused("remove", url)
    assert "none of it could be done" in refused("remove", "nonsense \udcff")


def test_signals_are_heard() -> None:
    said("add", URL)
    assert said("signal", URL, "--kind", "cms")["heard"] == 1
    assert said("explain", URL)["signals"][0]["kind"] == "cms"
    assert "--kind" in refused("signal", URL, "--kind", "No Kind!")
    assert "itself" in refused("signal", URL, "--kind", "now"), "a wish is no signal"


def test_explain_says_that_no_tracker_runs() -> None:
    said("add", URL)
    result = recrawl("explain", URL)
    assert "no tracker runs on this store" in result.stdout
    assert said("explain", URL)["tracker_runs"] is False
    assert "is not tracked" in refused("explain", "https://unknown.example.com/")


def test_an_import_tells_files_apart_and_names_bad_rows() -> None:
    Path("recrawl.toml").write_text(SETTINGS)
    Path("pages.csv").write_text("url,importance\nhttps://a.example.com/,2\nnonsense,1\n")
    Path("feeds.xml").write_text('<opml><body><outline xmlUrl="https://b.example.com/feed"/></body></opml>')
    Path("urls.yaml").write_text("url: https://c.example.com/\n---\ncommand: ls\n")
    Path("watches.json").write_text('{"watching": {"x": {"url": "https://d.example.com/", "paused": true}}}')
    Path("sitemap.xml").write_text("<urlset><url><loc>https://e.example.com/</loc></url></urlset>")
    Path("list.txt").write_text("https://f.example.com/\nhttps://a.example.com/\n")
    files = ["pages.csv", "feeds.xml", "urls.yaml", "watches.json", "sitemap.xml", "list.txt"]
    would = said("import", *files, "--dry-run")
    done = said("import", *files, "--group", "shop", "--importance", "3")
    for counts in (would, done):
        assert (counts["rows"], counts["added"], counts["refused"]) == (9, 6, 2)
        assert counts["known"] + counts["same"] == 1
    assert [(each["file"], each["row"]) for each in done["refusals"]] == [("pages.csv", 2), ("urls.yaml", 2)]
    assert done["paused"] == 1
    again = said("import", *files)
    assert (again["added"], again["known"], again["paused"]) == (0, 7, 0)
    pages = {row["url"]: row for row in csv.DictReader(io.StringIO(recrawl("export").stdout))}
    assert pages["https://a.example.com/"]["importance"] == "2.0"
    assert pages["https://f.example.com/"]["importance"] == "3.0"
    assert pages["https://f.example.com/"]["group"] == "shop"


def test_a_strict_import_writes_nothing_if_a_row_is_bad() -> None:
    Path("list.txt").write_text("https://a.example.com/\nnonsense\n")
    assert "list.txt row 2: it must begin with http" in refused("import", "list.txt", "--strict")
    assert not Path("recrawl-data").exists()
    Path("list.txt").write_text("https://a.example.com/\n")
    assert said("import", "list.txt", "--strict")["added"] == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere.txt"], "does not exist"),
        (["."], "is a folder"),
        (["empty.txt", "--format", "xls"], "must be one of list, csv"),
        (["empty.txt", "--group", "nobody"], "no group of the settings"),
        (["empty.csv"], "nothing could be imported"),
        (["https://example.com/sitemap.xml"], "contact is missing"),
    ],
)
def test_an_import_that_cannot_be_is_a_sentence(arguments: list[str], says: str) -> None:
    Path("empty.txt").write_text("")
    Path("empty.csv").write_text("")
    assert says in refused("import", *arguments)


def test_export_guards_against_formulas_unless_raw(tmp_path: Path) -> None:
    said("add", URL, "--store", "data")
    exported = said("export", "--store", "data", "--out", "pages.jsonl")
    assert exported == {"out": "pages.jsonl", "format": "jsonl", "rows": 1}
    assert json.loads((tmp_path / "pages.jsonl").read_text())["url"] == URL
    assert recrawl("export", "--store", "data", "--observations").stdout.startswith("url,time,changed,outcome")
    assert "needs --out" in refused("export", "--store", "data", "--json")
    assert "must be a file in a folder" in refused("export", "--store", "data", "--out", "no/where.csv")


def test_a_backup_is_restored_elsewhere_and_overwrites_nothing() -> None:
    said("add", URL)
    assert said("backup", "copy")["bytes"] > 0
    assert "is there already" in refused("backup", "copy")
    assert "make it first" in refused("backup", "no/copy")
    assert said("restore", "copy", "--store", "again")["pages"] == 1
    assert said("explain", URL, "--store", "again")["url"] == URL
    assert "is there already" in refused("restore", "copy", "--store", "again")
    assert "is not there" in refused("restore", "nothing", "--store", "third")
    Path("broken").write_bytes(b"x" * 5000)
    assert refused("restore", "broken", "--store", "fourth")
    assert not Path("fourth", "recrawl.db").exists()


def test_the_doctor_says_who_set_what_and_shows_no_secret() -> None:
    secret = said("doctor", "--new-secret")["secret"]
    assert len(read_secret(secret, "secret")) == 32
    Path("recrawl.toml").write_text(
        SETTINGS
        + f'[[sinks]]\nname = "hook"\nkind = "webhook"\ntarget = "https://a.example.com/"\nsecret = "{secret}"\n'
        + '[headers."https://a.example.com"]\nAuthorization = "Bearer hidden"\n[limits]\ntotal = "9s"\n'
    )
    said("add", URL)
    for result in (recrawl("doctor", "--check", "--replay"), recrawl("doctor", "--check", "--replay", "--json")):
        assert result.exit_code == 0
        assert secret not in result.output
        assert "hidden" not in result.output
    seen = said("doctor", "--check", "--replay", "--store", "recrawl-data")
    settings = {each["name"]: each for each in seen["settings"]}
    assert settings["contact"] == {"name": "contact", "value": "me@example.com", "unit": None, "from": "file"}
    assert settings["store"]["from"] == "flag"
    assert settings["lease"]["from"] == "default"
    assert (settings["limits.total"]["value"], settings["limits.total"]["from"]) == (9.0, "file")
    assert settings["sinks"]["value"] == ["hook"]
    assert seen["problems"] == []
    assert seen["replay"]["differ"] == 0
    assert {"recrawl", "python", "sqlite", "expat", "aiohttp", "pyarrow"} <= set(seen["versions"])


def test_the_doctor_warns_and_refuses_nothing() -> None:
    Path("recrawl.toml").write_text("budgit = 1\n")
    assert any("did you mean 'budget'" in each for each in said("doctor", "--check")["warnings"])
    Path("recrawl.toml").unlink()
    assert any("there is no store" in each for each in said("doctor", "--check")["warnings"])
    password = said("doctor", "--store", "postgresql://me:hidden@127.0.0.1:1/x")
    assert "hidden" not in json.dumps(password)


@pytest.mark.parametrize("name", ON_A_STORE)
def test_every_command_has_an_example_and_json(name: str) -> None:
    text = recrawl(name, "--help").stdout
    assert f"recrawl {name} " in text.partition("Example:")[2]
    assert "--json" in text
    assert name in COMMANDS
