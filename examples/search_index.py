"""Keep a full-text index in step with the pages that recrawl tracks: copy this file and make it yours.

    export RECRAWL_TOKEN=recrawl-…                         # a token with the scope `read`
    python search_index.py index.db                        # follow the change stream for ever
    python search_index.py index.db --once                 # catch up and end
    python search_index.py index.db --search "two words"   # ask the index

It needs Python alone. The change stream says what happened to a page, the API gives its text, and SQLite keeps both
the index and the cursor of the last event that is in it. They are written in one transaction: whenever this program is
killed, it goes on where the index is, and nothing is lost or done twice. For another index keep to the same rule: the
cursor belongs where the entries are.

    discovered, changed, restored    the entry is written with the text as it is now
    moved                            the entry gets its new address
    removed                          the entry is deleted
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

KINDS = "discovered,changed,restored,moved,removed"
PAGE_OF_EVENTS = 100
RETRY_S = 2.0
SILENCE_S = 60.0  # the stream says something every 15 s

SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (page INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS place (row INTEGER PRIMARY KEY CHECK (row = 1), cursor INTEGER NOT NULL);
INSERT OR IGNORE INTO place VALUES (1, 0);

CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(body, content=entries, content_rowid=page);
CREATE TRIGGER IF NOT EXISTS entry_written AFTER INSERT ON entries BEGIN
    INSERT INTO words (rowid, body) VALUES (new.page, new.body);
END;
CREATE TRIGGER IF NOT EXISTS entry_deleted AFTER DELETE ON entries BEGIN
    INSERT INTO words (words, rowid, body) VALUES ('delete', old.page, old.body);
END;
CREATE TRIGGER IF NOT EXISTS entry_changed AFTER UPDATE ON entries BEGIN
    INSERT INTO words (words, rowid, body) VALUES ('delete', old.page, old.body);
    INSERT INTO words (rowid, body) VALUES (new.page, new.body);
END;
"""

# A page that moved has its new address before it is seen there under a number of its own: then that number takes over.
WRITE = """
INSERT INTO entries (page, url, body) VALUES (:page, :url, :body)
ON CONFLICT (page) DO UPDATE SET url = excluded.url, body = excluded.body
ON CONFLICT (url) DO UPDATE SET page = excluded.page, body = excluded.body
"""


class Api:
    """The API of a tracker.

    Args:
        address: such as http://127.0.0.1:8472.
        token: with the scope `read`.
        form: of the texts: `text`, or `markdown` if the tracker keeps bodies.
    """

    def __init__(self, address: str, token: str, form: str = "text") -> None:
        self._address = address.rstrip("/")
        self._token = token
        self._form = form

    def _open(self, path: str, **query: Any) -> Any:
        asked = Request(f"{self._address}/api/v1/{path}?{urlencode(query)}")
        asked.add_header("Authorization", f"Bearer {self._token}")
        return urlopen(asked, timeout=SILENCE_S)

    def changes(self, after: int) -> tuple[list[dict[str, Any]], int]:
        """Some events after a cursor, and the cursor to go on from."""
        with self._open("changes", after=after, limit=PAGE_OF_EVENTS, kinds=KINDS) as answer:
            told = json.load(answer)
        return told["changes"], told["next"]

    def stream(self, after: int) -> Iterator[dict[str, Any]]:
        """Events after a cursor, and then as they happen; ends when the tracker ends it."""
        with self._open("changes/stream", after=after, kinds=KINDS) as answer:
            data = b""
            for line in answer:
                if line.startswith(b"data: "):
                    data = line.removeprefix(b"data: ")
                elif data and not line.strip():  # the empty line that ends an event: it is whole
                    yield json.loads(data)
                    data = b""

    def text(self, page: int) -> str:
        """The text of a page as it is now: never older than the event that made us ask."""
        for form in dict.fromkeys((self._form, "text")):  # a page without a body still has its text
            try:
                with self._open(f"pages/{page}/text", form=form) as answer:
                    return str(answer.read().decode("utf-8", "replace"))
            except HTTPError as error:
                if error.code != 404:
                    raise
        return ""


def open_index(path: str) -> sqlite3.Connection:
    """The index at a path, made if it is not there."""
    index = sqlite3.connect(path, isolation_level=None)
    index.execute("PRAGMA journal_mode = WAL")
    index.executescript(SCHEMA)
    return index


def place_of(index: sqlite3.Connection) -> int:
    """The cursor of the last event that is in the index."""
    (cursor,) = index.execute("SELECT cursor FROM place").fetchone()
    return int(cursor)


def take(index: sqlite3.Connection, api: Api, events: Iterable[dict[str, Any]], cursor: int) -> None:
    """Bring the index to a cursor: what is needed is asked for first, then all is written at once or nothing."""
    ready = [(event, "" if event["kind"] in ("moved", "removed") else api.text(event["page"])) for event in events]
    index.execute("BEGIN IMMEDIATE")
    try:
        for event, body in ready:
            write(index, event, body)
        index.execute("UPDATE place SET cursor = ?", (cursor,))
        index.execute("COMMIT")
    except BaseException:
        index.execute("ROLLBACK")
        raise


def write(index: sqlite3.Connection, event: dict[str, Any], body: str) -> None:
    """One event, one write."""
    page, kind = event["page"], event["kind"]
    if kind == "removed":
        index.execute("DELETE FROM entries WHERE page = ?", (page,))
    elif kind == "moved":
        url = event["detail"]["to"]
        known = index.execute("SELECT 1 FROM entries WHERE url = ? AND page <> ?", (url, page)).fetchone()
        if known:  # the page is tracked there already
            index.execute("DELETE FROM entries WHERE page = ?", (page,))
        else:
            index.execute("UPDATE entries SET url = ? WHERE page = ?", (url, page))
    else:
        # A page that comes back to an address at which another stands by now takes that one's place.
        index.execute(
            "DELETE FROM entries WHERE url = ? AND page <> ? AND EXISTS (SELECT 1 FROM entries WHERE page = ?)",
            (event["url"], page, page),
        )
        index.execute(WRITE, {"page": page, "url": event["url"], "body": body})


def catch_up(index: sqlite3.Connection, api: Api) -> None:
    """Take all events that there are."""
    cursor = place_of(index)
    events, after = api.changes(cursor)
    while after != cursor:
        cursor = after
        take(index, api, events, cursor)
        events, after = api.changes(cursor)


def follow(index: sqlite3.Connection, api: Api) -> None:
    """Take events as they happen, for ever; what is in the way is said and tried again."""
    while True:
        try:
            for event in api.stream(place_of(index)):
                take(index, api, [event], event["cursor"])
        except HTTPError as error:
            if error.code in (401, 403):
                raise
            sys.stderr.write(f"{error}\n")
        except (OSError, HTTPException) as error:  # also a stream that fell silent, or broke off
            sys.stderr.write(f"{error!r}\n")
        time.sleep(RETRY_S)


def search(index: sqlite3.Connection, words: str, most: int = 10) -> list[tuple[str, str]]:
    """Addresses of pages with these words, the best first, each with a piece of its text."""
    wanted = " ".join('"' + word.replace('"', '""') + '"' for word in words.split())
    found = index.execute(
        "SELECT url, snippet(words, 0, '[', ']', '…', 12) FROM words JOIN entries ON page = words.rowid "
        "WHERE words MATCH ? ORDER BY rank LIMIT ?",
        (wanted, most),
    )
    return list(found)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Keep a full-text index in step with a recrawl tracker.")
    parser.add_argument("index", help="the file of the index")
    parser.add_argument("--address", default="http://127.0.0.1:8472", help="of the tracker")
    parser.add_argument("--form", choices=("text", "markdown"), default="text", help="of the texts")
    parser.add_argument("--once", action="store_true", help="catch up and end")
    parser.add_argument("--search", metavar="WORDS", help="ask the index instead")
    asked = parser.parse_args()
    index = open_index(asked.index)
    if asked.search:
        for url, piece in search(index, asked.search):
            sys.stdout.write(f"{url}\n  {piece}\n")
        return
    api = Api(asked.address, os.environ.get("RECRAWL_TOKEN", ""), asked.form)
    catch_up(index, api) if asked.once else follow(index, api)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except (OSError, sqlite3.Error) as error:
        sys.exit(f"search_index: {error}")
