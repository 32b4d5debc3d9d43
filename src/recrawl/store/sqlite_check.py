"""What can be wrong with the data of a SQLite store, looked at from beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw

from recrawl.store.bodies import BodyFiles
from recrawl.store.sqlite.errors import as_store_error
from recrawl.store.sqlite.session import Access, Session

# The log is copied into the file long before this, unless someone reads for very long.
_LONG_LOG_BYTES = 256 * 1024 * 1024


def check_data(file: Path, access: Access, bodies: BodyFiles) -> list[str]:
    """Sentences on what is wrong; none if nothing is. O(everything)."""
    try:
        with bodies.held(), closing(Session(file, access, "reader")) as session, session.snapshot():
            found = [text for (text,) in session.rows("check_integrity") if text != "ok"]
            return found or [*_odd_counts(session), *_missing_bodies(session, bodies), *long_log(file)]
    except (OSError, apsw.Error) as error:
        raise as_store_error(error, file) from error


def log_bytes(file: Path) -> int:
    """The size of the log that is not yet copied into the file."""
    log = file.with_name(file.name + "-wal")
    return log.stat().st_size if log.exists() else 0


def long_log(file: Path, limit_bytes: int = _LONG_LOG_BYTES) -> list[str]:
    """A sentence on a log that has grown too long."""
    size = log_bytes(file)
    if size <= limit_bytes:
        return []
    return [
        f"the log of {file} has grown to {size / 1e6:,.0f} MB: someone reads for long, such as an open `sqlite3` shell"
    ]


def _odd_counts(session: Session) -> Iterator[str]:
    events, last = session.rows("check_log")[0]
    if events != last:
        yield f"the change log ends at cursor {last} but holds {events} events"
    pages, addresses, highest = session.rows("check_pages")[0]
    if not pages == addresses == highest:
        yield f"there are {pages} pages, {addresses} addresses and {highest} ids, which must be equal"
    wrong = session.value("check_counts")
    if wrong:
        yield f"the counts of pages and hosts are {wrong} off"
    leases = session.value("check_leases")
    if leases:
        yield f"{leases} leases belong to no page that may be leased, or have a token that was never given out"
    tokens = session.value("check_tokens")
    if tokens:
        yield f"{tokens} pages have a token that was never given out"
    kept, counted, numbered = session.rows("check_observations")[0]
    if kept != counted or not numbered:
        yield f"{kept} observations are kept, but {counted} were counted"
    twice = session.value("check_twice")
    if twice:
        yield f"{twice} results were written twice"
    strangers = session.value("check_strangers")
    if strangers:
        yield f"{strangers} observations, versions, events or sources belong to pages that are unknown"
    memories = session.value("check_sources")
    if memories:
        yield f"{memories} memories belong to pages that are no sources"


def _missing_bodies(session: Session, bodies: BodyFiles) -> Iterator[str]:
    lost = sum(not bodies.has(digest) for (digest,) in session.rows("bodies_named"))
    if lost:
        yield f"{lost} bodies are missing in {bodies.folder}: their texts are still there"
