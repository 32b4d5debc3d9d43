"""The container file, its context and the systemd unit name what there is: files, commands, options, routes."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import click
import pytest

from recrawl.cli.main import cli
from recrawl.service.api.about import healthz
from recrawl.tracker.settings.settings import LISTEN

ROOT = Path(__file__).parents[1]
CONTAINER = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
UNIT = (ROOT / "deploy" / "recrawl.service").read_text(encoding="utf-8")


def steps(name: str) -> list[str]:
    """What follows an instruction of the container file, each time."""
    return re.findall(rf"^{name} (.+)$", CONTAINER, re.MULTILINE)


def checked(arguments: list[str]) -> click.Context:
    """A command line that the command understands."""
    top = click.Context(cli, info_name="recrawl")
    command = cli.get_command(top, arguments[0])
    assert command is not None, arguments
    return command.make_context(arguments[0], arguments[1:], parent=top)


def test_what_is_copied_is_there_and_in_the_context() -> None:
    """The context lets through just that: no environment, no data."""
    copied = [name for step in steps("COPY") for name in step.split()[:-1]]
    assert copied
    assert all((ROOT / name).exists() for name in copied)
    rules = [line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    assert rules[0] == "*"
    assert {rule.removeprefix("!") for rule in rules if rule.startswith("!")} == set(copied)


def test_the_build_has_all_that_the_package_needs() -> None:
    """What the project file names is copied before it is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = {project["project"]["readme"], *project["project"]["license-files"]}
    needed |= {path.partition("/")[0] for path in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]}
    assert needed <= {name for step in steps("COPY") for name in step.split()[:-1]}
    (entry,) = (json.loads(step) for step in steps("ENTRYPOINT"))
    assert set(entry) <= set(project["project"]["scripts"])
    assert CONTAINER.index("USER recrawl") < CONTAINER.index("ENTRYPOINT")


def test_container_and_unit_call_a_command_that_there_is() -> None:
    (command,) = (json.loads(step) for step in steps("CMD"))
    assert checked(command).params["settings_path"] == Path("/etc/recrawl/recrawl.toml")
    (started,) = re.findall(r"^ExecStart=(\S+) (.+)$", UNIT, re.MULTILINE)
    assert started[0].endswith("/bin/recrawl")
    assert checked(started[1].split()).params["store"]


def test_health_is_asked_where_the_service_answers_everybody() -> None:
    (step,) = steps("HEALTHCHECK")
    asked = json.loads(step.partition(" CMD ")[2])
    compile(asked[-1], "healthcheck", "exec")
    (url,) = re.findall(r"HEALTH_URL=(\S+)", CONTAINER)
    assert url == f"http://{LISTEN}/healthz"
    assert healthz.opt["scope"] == "public"
    assert "HEALTH_HOST" in asked[-1]


@pytest.mark.parametrize("folder", ["service/dashboard/static", "service/dashboard/templates", "store/sql/sqlite"])
def test_data_files_are_beside_the_code_that_reads_them(folder: str) -> None:
    """So that a wheel, which takes the package as it is, has them; nothing there is left out of version control."""
    ignored = {line.strip("/*\n") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()}
    files = list((ROOT / "src" / "recrawl" / folder).iterdir())
    assert files
    for file in files:
        assert not ignored & {*file.relative_to(ROOT).parts, file.suffix}
