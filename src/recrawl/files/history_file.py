"""Open a change history, whatever it is: a trace, a crawl log, or a git repository.

    open_history → ChangeHistory → a world of the laboratory

Every error is one sentence that names the path and, where there is one, the row and the field.
"""

from __future__ import annotations

from pathlib import Path

from recrawl.errors import InvalidFile, InvalidInput
from recrawl.files.history import ChangeHistory


def open_history(path: Path | str, *, seed: int = 0, since: float | str | None = None) -> ChangeHistory:
    """Read a history.

    Args:
        path: a trace (`folder/NAME`, `folder/NAME.events.parquet` or `.csv`, or a folder with one trace); or a crawl
            log with columns url, time and changed (.csv, .tsv, .jsonl, .ndjson, .parquet); or a git repository, or a
            folder in one.
        seed: where the changes of a crawl log are placed in their intervals.
        since: where the history of a git repository begins, an ISO 8601 date or unix seconds.
    """
    if seed < 0:
        raise InvalidInput(f"is {seed}, but must be 0 or more", field="seed")
    path = Path(path)
    history = _read(path, seed, since)
    if history.end <= history.start:
        raise InvalidFile(str(path), "has everything at one time: a history needs at least two times")
    return history


def _read(path: Path, seed: int, since: float | str | None) -> ChangeHistory:
    from recrawl.files.git_history import read_git_history
    from recrawl.files.trace_file import find_trace, read_trace

    events = find_trace(path)
    if events is None and _is_folder(path):
        return read_git_history(path, since)
    if since is not None:
        raise InvalidInput("is for git repositories only: leave it out", field="since")
    if events is not None:
        return read_trace(events)
    from recrawl.files.crawl_log_file import read_crawl_log
    from recrawl.files.source import check_file

    check_file(path)  # that it is not there says more than that its ending is unknown
    return read_crawl_log(path, seed)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
