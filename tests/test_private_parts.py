"""Parts of uvicorn and aiohttp that recrawl overrides or reads although private: capped, and as they were read.

To allow a later version: read the parts that this test names in it, run the tests of the rooms that use them
(`tests/service/test_api_floods.py`, `tests/web/test_transport*.py`, `tests/web/test_hostile_floods.py`), then write the
series and the new digests here and raise the cap in `pyproject.toml` and the version in `constraints.txt`.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvicorn
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest, ConnectionKey
from aiohttp.connector import BaseConnector, Connection, TCPConnector
from aiohttp.helpers import TimerNoop
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EofStream, StreamReader
from packaging.version import Version
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

ROOT = Path(__file__).parents[1]
SERIES = {"uvicorn": "0.54", "aiohttp": "3.14"}
READ: dict[Any, str] = {
    # service/server.py
    uvicorn.Server.capture_signals: "e1bbcd4770d1",
    uvicorn.Server.serve: "112ef41af521",
    # service/connections.py
    HttpToolsProtocol.connection_made: "6efb565ff3d3",
    HttpToolsProtocol.connection_lost: "c91a4c9bf2e2",
    HttpToolsProtocol.data_received: "010a7ae59a5d",
    HttpToolsProtocol.on_message_begin: "96d377fdc7c2",
    HttpToolsProtocol.on_header: "65d62c044f61",
    HttpToolsProtocol.on_headers_complete: "1ea8589acfad",
    HttpToolsProtocol.on_message_complete: "1fbad42dc31f",
    # web/fetch/connection.py
    ResponseHandler: "da5da6215c0e",
    TCPConnector.__init__: "1ec3ee542f09",
    BaseConnector._release: "105426e5b03d",
    BaseConnector.connect: "b9fe1f4d3e57",
    BaseConnector._get: "4795a63c99f2",
    TCPConnector._create_connection: "1fc9f0b5725d",
    TCPConnector._create_direct_connection: "c009b18bcc35",
    Connection: "b87e0588fdd9",
    ClientRequest.connection_key: "0976f2a8d42a",
    ConnectionKey: "4b3c0f409e1c",
    TimerNoop: "b4f13ddb0874",
    HttpProcessingError: "b61eac9d5cd8",
    EofStream: "8de8e7288034",
    StreamReader.read_nowait: "e340a15bd631",
    StreamReader.readany: "766f946ae360",
}


def function_of(part: Any) -> Any:
    return part.fget if isinstance(part, property) else part


def digest_of(part: Any) -> str:
    return hashlib.sha256(inspect.getsource(function_of(part)).encode()).hexdigest()[:12]


def name_of(part: Any) -> str:
    return str(function_of(part).__qualname__)


def pinned(library: str) -> str:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^{library}==(.+)$", text, re.MULTILINE)
    return str(found)


def following(series: str) -> str:
    major, minor = series.split(".")
    return f"{major}.{int(minor) + 1}"


@pytest.mark.parametrize("library", SERIES)
def test_no_later_series_is_installed_than_the_one_that_was_read(library: str) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    (needed,) = [each for each in declared if re.match(rf"{library}\b", each)]
    assert needed.endswith(f",<{following(SERIES[library])}"), f"{needed}: read the private parts of the later series"
    assert pinned(library).startswith(f"{SERIES[library]}.")
    assert version(library).startswith(f"{SERIES[library]}.")


@pytest.mark.parametrize("part", READ, ids=name_of)
def test_a_private_part_is_as_it_was_read(part: Any) -> None:
    """One that has changed is read first: recrawl replaces it, calls it or leans on what it does."""
    library = function_of(part).__module__.partition(".")[0]
    if digest_of(part) != READ[part] and Version(version(library)) < Version(pinned(library)):
        pytest.skip(f"{name_of(part)} was not read in {library} {version(library)}, older than the one that was")
    assert digest_of(part) == READ[part], f"{name_of(part)} has changed: read it"


def test_every_class_that_recrawl_extends_is_among_them() -> None:
    """So that a new override of these libraries is read, too."""
    sources = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}
    imported = re.compile(r"^from ((?:uvicorn|aiohttp)\.(?!abc\b)\S+) import (.+)$", re.MULTILINE)
    names = {
        name.strip() for text in sources.values() for _, found in imported.findall(text) for name in found.split(",")
    }
    read = {name_of(part).split(".")[0] for part in READ}
    assert names - {"EMPTY_PAYLOAD"} <= read
    assert aiohttp.streams.EMPTY_PAYLOAD.at_eof()
