"""Settings from a file and flags: who wins, what is refused and in which words, and what the document says."""

from __future__ import annotations

import re
import tomllib
from dataclasses import MISSING, fields, make_dataclass
from pathlib import Path
from typing import Any

import pytest

from recrawl.errors import InvalidFile, InvalidInput
from recrawl.tracker.settings import settings as readers
from recrawl.tracker.settings.file import read_settings, settings_of
from recrawl.tracker.settings.settings import Setting, Settings, declared, setting
from recrawl.tracker.settings.table import LISTS, NETWORK, OTHERS, PLAIN, TABLES

DOCUMENT = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")
INNER = [(f"[{name}]", inner) for name, (_, inner) in TABLES.items()]
LISTED = [(f"[[{name}]]", inner) for name, (_, inner) in LISTS.items()]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "recrawl.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_setting_fills_a_field() -> None:
    for kind, settings in ((Settings, PLAIN), *TABLES.values(), *LISTS.values()):
        filled = {each.name for each in fields(kind)}
        assert {each.field for each in settings} <= filled, kind.__name__


def test_a_setting_is_declared_once() -> None:
    """A field with `setting` is all that a new one needs: name, default, reader and meaning follow from it."""
    made = make_dataclass("Made", [("poll_gap_s", float, setting("90s", readers.seconds(0, 3600), "between polls"))])
    (row,) = declared(made)
    assert (row.name, row.field, row.written, row.means) == ("poll-gap", "poll_gap_s", "90s", "between polls")
    assert made().poll_gap_s == row.read("1.5min", row.name) == 90.0
    with pytest.raises(InvalidInput, match="poll-gap"):
        row.read("2h", row.name)


@pytest.mark.parametrize("setting", PLAIN, ids=lambda setting: setting.name)
def test_the_default_of_a_plain_setting_is_written_as_it_is(setting: Setting) -> None:
    (default,) = [each.default for each in fields(Settings) if each.name == setting.field]
    if setting.written:
        assert setting.read(setting.written, setting.name) == default
    else:
        assert default in (None, "")


@pytest.mark.parametrize(
    ("kind", "setting"),
    [(kind, each) for kind, inner in TABLES.values() for each in inner],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_default_of_a_setting_in_a_table_is_written_as_it_is(kind: Any, setting: Setting) -> None:
    (found,) = [each for each in fields(kind) if each.name == setting.field]
    factory: Any = found.default_factory
    default = found.default if found.default is not MISSING else factory()
    if setting.written:
        assert setting.read(setting.written, setting.name) == default
    else:
        assert not default


def test_a_flag_wins_over_the_file_and_the_file_over_the_default(tmp_path: Path) -> None:
    path = written(tmp_path, 'budget = "2/s"\nconcurrency = 5\n[limits]\ntotal = "20s"\n')
    chosen = read_settings(path, {"budget": "7/day", "contact": "me@example.com", "store": None})
    assert chosen.settings.budget_per_day == 7.0
    assert chosen.settings.concurrency == 5
    assert chosen.settings.limits.total_s == 20.0
    assert chosen.settings.lease_s == 300.0
    assert chosen.origins == {
        "budget": "flag",
        "contact": "flag",
        "concurrency": "file",
        "limits": "file",
        "limits.total": "file",
    }


def test_a_whole_file_becomes_settings(tmp_path: Path) -> None:
    text = """
store = "data"
opted-out = ["No.Example.org"]
[[groups]]
name = "shop"
patterns = ["https://shop.example.com/*"]
importance = 3
max-interval = "6h"
hours = "22-6"
[[hosts]]
pattern = "*.example.com"
min-gap = "5s"
[[sinks]]
name = "log"
kind = "jsonl"
target = "-"
[headers."https://wiki"]
Authorization = "Bearer x"
[network]
allow = {lab = "10.1.0.0/16:8080"}
local-names = ["Wiki", "*.corp.internal"]
unverified-tls = ["https://WIKI:443/", "https://b.corp.internal:8443"]
"""
    settings = read_settings(written(tmp_path, text)).settings
    assert settings.groups[0].max_interval_s == 21_600.0
    assert settings.hosts[0].min_gap_s == 5.0
    assert settings.sinks[0].target == "-"
    assert settings.opted_out == {"no.example.org"}
    assert settings.address_rules.local_names == {"wiki", "*.corp.internal"}
    assert settings.unverified_tls == {"https://wiki", "https://b.corp.internal:8443"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('budgt = "2/s"', "'budgt' is no setting: did you mean 'budget'?"),
        ("min_gap = '1s'", "did you mean 'min-gap'?"),
        ("[limits]\ntotl = '1s'", "in limits, 'totl' is no setting: did you mean 'total'?"),
        ("[[groups]]\nname='a'\npattern=['x']", "did you mean 'patterns'?"),
        ("[network]\nport = [80]", "did you mean 'ports'?"),
        ("[network]\nlocal-names = 'wiki'", "network.local-names is 'wiki', but must be a list of texts"),
        ("[network]\nlocal-names = ['*']", "network.local-names holds '*'; write a host name"),
        ("[network]\nlocal-names = ['http://wiki/']", "network.local-names holds 'http://wiki/'; write a host name"),
        ("[network]\nunverified-tls = ['https://wiki']", "network.unverified-tls holds an address that cannot be used"),
        ("[network]\nunverified-tls = ['http://a.example']", "unverified-tls holds 'http://a.example'; write an"),
        ("[network]\nunverified-tls = ['https://a.example/x']", "write an origin alone, such as https://wiki.example"),
        ("zzz = 1", "'zzz' is no setting; there are store, budget"),
        ("[[groups]]\nname='a'", "needs more than name"),
        ("groups = 3", "must be given as [[groups]]"),
        ("limits = 3", "written as [limits]"),
        ("[[groups]]\nname='a'\npatterns=['x']\n[[groups]]\nname='a'\npatterns=['y']", "groups has 'a' twice"),
        ("[[groups]]\nname='a'\npatterns=['" + "*" * 9 + "']", "more than eight"),
        ("lease = '60s'\n[limits]\ntotal='5min'", "a lease must be longer"),
        ("[headers]\nx = 1", "must have a table of texts"),
        ("opted-out = 'x'", "must be a list of texts"),
        ("budget = '20%'", "must be crawls in a time"),
        ("bytes = '2GB'", "must be bytes in a time"),
        ("lease = 300", "must have a unit"),
        ("= 1", "is not TOML"),
    ],
)
def test_what_cannot_be_is_refused_in_words_that_name_it(tmp_path: Path, text: str, says: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InvalidInput, match=re.escape(says)):
        read_settings(path)


def test_a_file_is_named_in_what_is_said_of_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"recrawl\.toml: concurrency is 0"):
        read_settings(written(tmp_path, "concurrency = 0"))


def test_a_flag_is_named_as_one() -> None:
    with pytest.raises(InvalidInput, match="--concurrency is 'many'"):
        read_settings(None, {"concurrency": "many"})


@pytest.mark.parametrize(
    ("read", "good", "bad"),
    [
        (readers.text, ["", "x y"], [1, None, "a\nb", "\x1b"]),
        (readers.one_of("a", "b"), ["a"], ["c", 1, ["a"]]),
        (readers.whole(1, 10), [1, 10, "7"], [0, 11, 1.5, "x", True, None, "1_0", "٣", float("nan")]),
        (readers.number(0, 5), [0, 5, "2.5", "1e0"], [-1, 5.1, "inf", "nan", True, "1,5", float("inf")]),
        (readers.seconds(0, 60), ["0", 0, "0s", "1min"], ["60", "", False, "00"]),
        (readers.seconds(1, 3600), ["1s", "1h", "15min"], ["0", "0.5s", "2h", 60, "x", True, "-1s", "1e999s"]),
        (readers.budget, ["2/s", "5000/day"], ["20%", "x", 5, "-1/s"]),
        (readers.byte_rate, ["2GB/day", "1 MiB / h"], ["2GB", 5, "x/day"]),
        (readers.yes_or_no, [True, False, "true"], [1, "yes", None]),
        (readers.texts, [[], ["a"]], ["a", [1], {}]),
    ],
)
def test_a_reader_takes_what_is_in_its_bounds_and_names_what_is_not(
    read: readers.Reader, good: list[Any], bad: list[Any]
) -> None:
    for value in good:
        read(value, "this")
    for value in bad:
        with pytest.raises(InvalidInput, match="this"):
            read(value, "this")


def _rows(heading: str) -> list[tuple[str, ...]]:
    part = DOCUMENT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [tuple(cell.strip() for cell in row.split("|")[1:-1]) for row in re.findall(r"^\| `.*$", part, re.MULTILINE)]


@pytest.mark.parametrize(
    ("heading", "settings"),
    [("Plain settings", PLAIN), *INNER, *LISTED, ("[network]", NETWORK)],
    ids=lambda v: str(v)[:20],
)
def test_the_document_has_every_setting_as_the_table_does(heading: str, settings: tuple[Setting, ...]) -> None:
    expected = [(f"`{each.name}`", each.means, f"`{each.written}`" if each.written else "") for each in settings]
    assert _rows(heading) == expected


def test_the_document_has_the_others_and_nothing_else() -> None:
    assert _rows("Others") == [(f"`{name}`", means) for name, means in OTHERS.items()]
    headings = re.findall(r"^## (.*)$", DOCUMENT, re.MULTILINE)
    assert headings == ["Plain settings", *(name for name, _ in [*INNER, *LISTED]), "[network]", "Others"]


def test_the_examples_of_the_document_are_settings() -> None:
    examples = re.findall(r"^```toml\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        given = settings_of(tomllib.loads(example))
        given.pop("_names")
        Settings(**given)
