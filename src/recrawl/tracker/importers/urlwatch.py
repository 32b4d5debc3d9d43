"""urlwatch: the jobs of `urls.yaml`, one document each. Pure.

Only events of the YAML parser are read, and of these only plain keys and values of a job: nothing is constructed, no
alias is followed, nothing grows. Jobs that run commands or steer a browser are refused; filters are not taken over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import yaml

from recrawl.tracker.admission import PageRequest
from recrawl.tracker.importers.rows import BadRow, GoodRow, Hints, Item, printable, whole

_DEEPEST = 50
_LONGEST_VALUE = 8192
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_urlwatch(stream: IO[bytes], _hints: Hints) -> Iterator[Item]:
    """The addresses of url jobs; rows are jobs."""
    content = whole(stream)
    if isinstance(content, BadRow):
        yield content
        return
    row = 0
    try:
        for job in _jobs(content):
            row += 1
            yield _item(row, job)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        yield BadRow(0, f"breaks off after job {row}: {printable(str(error).replace(chr(10), ' '))}")


def _jobs(content: bytes) -> Iterator[dict[str, str]]:
    """The plain values of every mapping that is a document, or an item of a list that is one."""
    job: dict[str, str] | None = None
    key: str | None = None
    depth = job_depth = 0
    for event in yaml.parse(content, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                raise ValueError(f"it is nested more than {_DEEPEST} deep")
            if job is None and isinstance(event, yaml.MappingStartEvent) and depth <= 2:
                job, key, job_depth = {}, None, depth
            elif job is not None and depth == job_depth + 1:
                key = _set(job, key, "")
        elif isinstance(event, yaml.CollectionEndEvent):
            if job is not None and depth == job_depth:
                yield job
                job = None
            depth -= 1
        elif isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent)) and job is not None and depth == job_depth:
            value = event.value if isinstance(event, yaml.ScalarEvent) else ""
            key = value if key is None else _set(job, key, value)


def _set(job: dict[str, str], key: str | None, value: str) -> str | None:
    """Set a value; what comes next is a key. A collection in the place of a key is one that nobody asks for."""
    if key is None:
        return "?"
    job.setdefault(key[:200], value[:_LONGEST_VALUE])
    return None


def _item(row: int, job: dict[str, str]) -> Item:
    name = f" ({printable(job['name'], 60)})" if job.get("name") else ""
    if "command" in job or job.get("kind") == "shell":
        return BadRow(row, f"runs a command{name}: only pages are tracked")
    if "navigate" in job or job.get("kind") == "browser" or job.get("use_browser", "").lower() in ("true", "yes"):
        return BadRow(row, f"needs a browser{name}: only pages that come by themselves are tracked")
    if "data" in job or job.get("method", "GET").upper() not in ("GET", "HEAD", ""):
        return BadRow(row, f"sends data{name}: only pages that can be asked for are tracked")
    if not job.get("url"):
        return BadRow(row, f"has no url{name}")
    return GoodRow(
        row, PageRequest(job["url"], source="import"), paused=job.get("enabled", "").lower() in ("false", "no")
    )
