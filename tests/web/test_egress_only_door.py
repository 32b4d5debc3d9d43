"""No code but the gate makes sockets, and no code but the transport sends requests: read from the source itself."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import recrawl

PACKAGE = Path(recrawl.__file__).parent
NOWHERE: tuple[str, ...] = ()

# Servers listen; they do not go out.
LISTENERS = ("lab/livingweb/", "service/")
# Modules that can open connections, and the only files that may import them.
MODULES: dict[str, tuple[str, ...]] = {
    "socket": ("web/fetch/egress.py", "web/fetch/resolver.py", *LISTENERS),
    "aiohttp": ("web/fetch/", "web/push/delivery.py", *LISTENERS),
    "feedparser": ("web/feeds/feed.py",),
    **dict.fromkeys(
        ("requests", "httpx", "urllib3", "pycurl", "curl_cffi", "wreq", "niquests", "primp", "grpc", "websockets"),
        NOWHERE,
    ),
    **dict.fromkeys(("urllib.request", "ftplib", "smtplib", "poplib", "imaplib", "xmlrpc"), NOWHERE),
    # The bench plays a stranger who calls our own service on loopback.
    "http.client": ("bench/living_telling.py", "bench/service_process.py", "bench/signals_flood.py"),
}
# Made in one file, used in two.
CLIENTS = ("web/fetch/connection.py", "web/fetch/transport.py", "web/push/delivery.py")
# Functions and classes that open connections, whatever they are reached through.
OPENERS: dict[str, tuple[str, ...]] = {
    "TCPConnector": ("web/fetch/connection.py", "web/fetch/transport.py"),
    "KeptConnections": ("web/fetch/connection.py",),
    "ClientSession": CLIENTS,
    **dict.fromkeys(
        ("open_connection", "open_unix_connection", "create_connection", "create_unix_connection"), NOWHERE
    ),
    **dict.fromkeys(("create_datagram_endpoint", "sock_connect", "urlopen"), NOWHERE),
}


def _used(tree: ast.AST) -> tuple[set[str], set[str]]:
    """Modules that a file imports, and names that it imports from one or reaches through a dot."""
    modules: set[str] = set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.add(node.module)
            modules.update(f"{node.module}.{alias.name}" for alias in node.names)
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
    return modules, names


def _asks_only_for_its_own_name(tree: ast.AST) -> bool:
    """Whether a file uses sockets for nothing but the name of this machine."""
    uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "socket"]
    asked = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "socket"
    ]
    imported = [
        alias
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if alias.name.split(".")[0] == "socket" or (isinstance(node, ast.ImportFrom) and node.module == "socket")
    ]
    plainly = all(alias.name == "socket" and alias.asname is None for alias in imported)
    return plainly and len(uses) == len(asked) > 0 and {node.attr for node in asked} == {"gethostname"}


def _breaches(path: str, source: str) -> list[str]:
    tree = ast.parse(source)
    modules, names = _used(tree)
    if _asks_only_for_its_own_name(tree):
        modules.discard("socket")
    doors = [
        (door, files)
        for door, files in MODULES.items()
        if any(module == door or module.startswith(door + ".") for module in modules)
    ]
    doors += [(door, files) for door, files in OPENERS.items() if door in names]
    return [f"{path} uses {door}" for door, files in doors if not any(path.startswith(file) for file in files)]


def test_only_the_gate_makes_sockets_and_only_the_transport_sends_requests() -> None:
    breaches = [
        breach
        for file in sorted(PACKAGE.rglob("*.py"))
        for breach in _breaches(file.relative_to(PACKAGE).as_posix(), file.read_text(encoding="utf-8"))
    ]
    assert breaches == []


@pytest.mark.parametrize(
    "source",
    [
        "import socket",
        "from socket import create_connection",
        "import urllib.request",
        "from urllib import request\nrequest.urlopen('http://x')",
        "import http.client",
        "import aiohttp\naiohttp.ClientSession()",
        "from aiohttp import ClientSession",
        "import asyncio\nasyncio.open_connection('x', 80)",
        "from asyncio import open_connection",
        "async def f(loop): await loop.create_connection(None, 'x', 80)",
        "import feedparser",
        "import requests",
        "import socket\nsocket.gethostname()\nsocket.socket()",
        "import socket as s\nimport socket\nsocket.gethostname()",
        "import socket\nsocket.gethostname()\nf(socket)",
        "import socket\nfrom socket import socket as s\nsocket.gethostname()",
    ],
)
def test_the_scan_sees_every_way_out(source: str) -> None:
    assert _breaches("tracker/somewhere.py", source)


@pytest.mark.parametrize(
    "source",
    [
        "from urllib.parse import quote\nimport asyncio\nasyncio.sleep(0)",
        "def count(flow): return flow.requests",
        "import http",
        "import socket\nsocket.gethostname()",
    ],
)
def test_the_scan_lets_ordinary_code_pass(source: str) -> None:
    assert _breaches("tracker/somewhere.py", source) == []


def test_even_the_transport_makes_no_sockets_of_its_own() -> None:
    assert _breaches("web/fetch/transport.py", "import aiohttp\naiohttp.ClientSession()") == []
    assert _breaches("web/fetch/transport.py", "import socket") == ["web/fetch/transport.py uses socket"]
