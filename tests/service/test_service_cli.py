"""The commands of the service, as a user types them: serve, token, and track with its service."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from patience import PATIENCE_S, patience
from recrawl.cli.main import cli


async def started(folder: Path, *arguments: str) -> Process:
    command = "from recrawl.cli.main import main; main()"
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", command, *arguments, cwd=folder, stdout=PIPE, stderr=PIPE
    )


async def line_with(stream: asyncio.StreamReader, words: str) -> str:
    """The next line of a process that has these words in it."""
    while line := (await stream.readline()).decode():
        if words in line:
            return line
    raise AssertionError(f"it ended without a line with {words!r}")


@asynccontextmanager
async def serving_process(folder: Path) -> AsyncIterator[tuple[str, str]]:
    """`recrawl serve` in a process of its own: its address and its token; ended by SIGTERM."""
    async with patience():
        process = await started(folder, "serve", "--listen", "127.0.0.1:0", "--budget", "500/s", "--json")
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            address = json.loads(await process.stdout.readline())["listening"]
            token = (await line_with(process.stderr, "token of the API")).split()[-1]
            yield address, token
            process.send_signal(signal.SIGTERM)
            out, err = await process.communicate()
            assert process.returncode == 0, err.decode()
            assert "taken" in json.loads(out.splitlines()[-1])
            assert "login#" not in err.decode()  # nobody sits at a terminal
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()


def call(folder: Path, *arguments: str) -> Any:
    """A command in this process; what it says as JSON."""
    result = CliRunner().invoke(cli, [*arguments, "--store", str(folder), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout.splitlines()[-1])


def test_outside_fetchers_are_served_and_tokens_made_beside_it(tmp_path: Path) -> None:
    """A token that another process makes works, and one that it revokes does not, within seconds."""
    data = tmp_path / "recrawl-data"

    async def main() -> None:
        async with (
            serving_process(tmp_path) as (address, token),
            httpx.AsyncClient(timeout=PATIENCE_S, base_url=address) as client,
        ):
            admin = {"Authorization": f"Bearer {token}"}
            pages = {"pages": [{"url": "https://cli.example/"}]}
            assert (await client.post("/api/v1/pages", json=pages, headers=admin)).json()["done"]["added"] == 1
            made = await asyncio.to_thread(call, data, "token", "new", "--scope", "fetch", "--name", "worker")
            worker = {"Authorization": f"Bearer {made['token']}"}
            wish = {"n": 1, "worker": "w"}
            while (answer := await client.post("/api/v1/leases", json=wish, headers=worker)).status_code == 401:
                await asyncio.sleep(0.5)  # wrong tokens are soon too many
            while not (leases := answer.json()["leases"]):
                await asyncio.sleep(0.05)
                answer = await client.post("/api/v1/leases", json=wish, headers=worker)
            result = {"token": leases[0]["token"], "outcome": "ok", "text": "<p>hi</p>"}
            done = await client.post("/api/v1/leases/complete", json={"results": [result]}, headers=worker)
            assert done.json() == {"answers": ["applied"]}
            assert (await client.get("/healthz")).status_code == 200
            await asyncio.to_thread(call, data, "token", "revoke", made["id"])
            while (await client.post("/api/v1/leases", json=wish, headers=worker)).status_code != 401:
                await asyncio.sleep(0.1)

    asyncio.run(main())
    listed = {each["name"]: each for each in call(data, "token", "list")["tokens"]}
    assert set(listed) == {"first", "worker"}
    assert listed["worker"]["revoked_at"] is not None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("serve", "--listen", "0.0.0.0:8472"), "behind-tls"),
        (("serve", "--listen", "off"), "nothing to serve"),
        (("serve", "--listen", "nonsense"), "HOST:PORT"),
        (("track", "--contact", "a@example.com", "--listen", "0.0.0.0:8472"), "behind-tls"),
        (("token", "new"), "at least one"),
        (("token", "new", "--scope", "everything"), "must be one of"),
        (("token", "revoke"), "goes with revoke"),
        (("token", "list", "--scope", "read"), "new token only"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    """And nothing is begun."""
    result = CliRunner().invoke(cli, [*arguments, "--store", str(tmp_path / "data")])
    assert result.exit_code == 2
    assert said in result.output
    assert len(result.output.strip().splitlines()) == 1
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("command", [("serve",), ("track", "--contact", "a@example.com")])
def test_a_trusted_proxy_that_is_no_address_is_refused_before_anything_begins(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    settings = tmp_path / "recrawl.toml"
    settings.write_text('[service]\ntrusted-proxies = ["127.0.0.1", "proxy.example"]\n', encoding="utf-8")
    result = CliRunner().invoke(cli, [*command, "--settings", str(settings), "--store", str(tmp_path / "data")])
    assert result.exit_code == 2
    assert result.output.count("\n") == 1
    assert "service.trusted-proxies is 'proxy.example', but must be an address or a network, such as" in result.output
    assert not (tmp_path / "data").exists()


def test_serving_ends_when_another_owner_has_taken_its_store(tmp_path: Path) -> None:
    """Else it would answer requests of which nothing is written."""

    async def main() -> None:
        async with patience("the process to end"):
            process = await started(tmp_path, "serve", "--listen", "127.0.0.1:0")
            try:
                assert process.stderr is not None
                await line_with(process.stderr, "listening on")
                with closing(sqlite3.connect(tmp_path / "recrawl-data" / "recrawl.db")) as other, other:
                    other.execute("UPDATE ledger SET generation = generation + 1")
                _, err = await process.communicate()
                assert process.returncode == 2
                assert "another owner has taken over" in err.decode().splitlines()[-1]
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.communicate()

    asyncio.run(main())


def test_serving_compiles_what_is_not_compiled_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECRAWL_KERNELS", raising=False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))

    async def main() -> str:
        async with patience():
            process = await started(tmp_path, "serve", "--listen", "127.0.0.1:0", "--seconds", "0.01")
            _, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        return err.decode()

    assert "compiling for this machine" in asyncio.run(main())


def test_a_tracker_listens_beside_its_work_and_ends_with_it(tmp_path: Path) -> None:
    """It says where, and how a browser signs in is said at terminals only."""

    async def main() -> str:
        arguments = ("track", "--contact", "a@example.com", "--listen", "127.0.0.1:0", "--seconds", "0.5", "--json")
        async with patience():
            process = await started(tmp_path, *arguments)
            _, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        return err.decode()

    said = asyncio.run(main())
    assert "listening on http://127.0.0.1:" in said
    assert "login#" not in said
