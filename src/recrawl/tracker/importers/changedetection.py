"""changedetection.io: the watches of `url-watches.json`, or of its API. Pure.

A tag that is a group of the settings becomes the group; a check interval becomes the longest time between two crawls,
so that no page is looked at less often than before; a paused watch is paused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import IO, Any

import msgspec

from recrawl.tracker.admission import PageRequest
from recrawl.tracker.importers.rows import BadRow, GoodRow, Hints, Item, printable, whole

_UNITS_S = {"weeks": 604_800.0, "days": 86_400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}
_LONGEST_S = 100 * 366 * 86_400.0
_BROWSERS = ("html_webdriver", "playwright", "puppeteer")


def read_changedetection(stream: IO[bytes], hints: Hints) -> Iterator[Item]:
    """The addresses of watches; rows are watches in their order."""
    content = whole(stream)
    if isinstance(content, BadRow):
        yield content
        return
    try:
        document = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        yield BadRow(0, f"is not JSON: {printable(str(error))}")
        return
    watches = _watches(document)
    if watches is None:
        yield BadRow(0, "has no watches: give url-watches.json, or what the API answers for /api/v1/watch")
        return
    titles = _tag_titles(document)
    for row, watch in enumerate(watches, 1):
        yield _item(row, watch, titles, hints.groups)


def _watches(document: Any) -> list[Any] | None:
    watching = _table(document).get("watching", document)
    if isinstance(watching, dict):
        watching = list(watching.values())
    if not isinstance(watching, list) or not all(isinstance(each, dict) for each in watching):
        return None
    return watching if not watching or any("url" in each for each in watching) else None


def _tag_titles(document: Any) -> dict[str, str]:
    tags = _table(_table(_table(_table(document).get("settings")).get("application")).get("tags"))
    return {name: title for name, tag in tags.items() if isinstance(title := _table(tag).get("title"), str)}


def _item(row: int, watch: Mapping[str, Any], titles: Mapping[str, str], groups: frozenset[str]) -> Item:
    url, title = watch.get("url"), watch.get("title")
    name = f" ({printable(title, 60)})" if isinstance(title, str) and title else ""
    if not isinstance(url, str) or not url.strip():
        return BadRow(row, f"has no url{name}")
    if url.startswith("source:"):
        url = url.removeprefix("source:")
    if "{{" in url or "{%" in url:
        return BadRow(row, f"has an address that is made by a template{name}: write the address itself")
    if str(watch.get("fetch_backend", "")).startswith(_BROWSERS):
        return BadRow(row, f"needs a browser{name}: only pages that come by themselves are tracked")
    if str(watch.get("method") or "GET").upper() != "GET":
        return BadRow(row, f"sends data{name}: only pages that can be asked for are tracked")
    tags = watch.get("tags", watch.get("tag", ()))
    named = tags if isinstance(tags, list) else str(tags).split(",")
    texts = [titles.get(tag, tag).strip() for tag in named if isinstance(tag, str)]
    group = next((each for each in texts if each in groups), None)
    wanted = PageRequest(url, group=group, max_interval_s=_interval_s(watch), source="import")
    return GoodRow(row, wanted, paused=watch.get("paused") is True)


def _interval_s(watch: Mapping[str, Any]) -> float | None:
    """The check interval of a watch; None if it has none of its own, or one that cannot be."""
    if watch.get("time_between_check_use_default") is True:
        return None
    between = _table(watch.get("time_between_check"))
    total = 0.0
    for unit, length_s in _UNITS_S.items():
        count = between.get(unit)
        if isinstance(count, (int, float)) and not isinstance(count, bool) and math.isfinite(count):
            total += count * length_s
    return total if 1.0 <= total <= _LONGEST_S else None


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
