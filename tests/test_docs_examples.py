"""What documents show besides Python: shell lines, settings, JSON, names of files, measures and metrics, deployment."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest
import yaml

import draw_concepts
from recrawl.cli.main import BAD_INPUT, cli
from recrawl.pages import Floats
from recrawl.tracker.settings.file import read_settings
from recrawl.tracker.settings.settings import Settings
from recrawl.values import harmonic_due
from test_docs import DOCUMENTS, INLINE, ROOT, blocks, text

PROGRAMS = {"cp", "createdb", "curl", "export", "install", "make", "pip", "podman", "pytest", "python", "python3",
            "recrawl", "systemctl", "busy_test", "useradd"}  # fmt: skip
SMALL_PICTURE_BYTES = 40_000
NAMED_FILE = re.compile(r"(?:tests|src|tools|deploy|examples|docs)/[\w./-]*\w/?")


def documents_with(*languages: str) -> pytest.MarkDecorator:
    """A test of each document that has examples in one of these languages."""
    found = [path for path in DOCUMENTS if blocks(path.read_text(encoding="utf-8"), *languages)]
    assert found, languages
    return pytest.mark.parametrize("path", found, ids=lambda path: path.name)


def shell_lines(document: str) -> list[str]:
    """Lines of shell blocks, those that go on joined."""
    joined = "\n".join(blocks(document, "sh")).replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.strip()]


def parses(command: list[str]) -> bool:
    """Whether a recrawl command takes these arguments."""
    name, *arguments = command
    found = cli.get_command(click.Context(cli), name)
    assert found is not None, name
    return found.make_context(name, arguments) is not None


@documents_with("sh")
def test_shell_examples_are_shell_and_call_programs_that_we_know(path: Path) -> None:
    lines = shell_lines(path.read_text(encoding="utf-8"))
    done = subprocess.run(["bash", "-n"], input="\n".join(lines), text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    for line in lines:
        program = shlex.split(re.sub(r"^sudo (?:-u \w+ )?", "", line), comments=True)[0]
        assert Path(program).name in PROGRAMS, line


@documents_with("toml")
def test_settings_examples_are_accepted(path: Path, tmp_path: Path) -> None:
    for number, example in enumerate(blocks(path.read_text(encoding="utf-8"), "toml")):
        file = tmp_path / f"{number}.toml"
        file.write_text(example, encoding="utf-8")
        assert read_settings(file).origins, example


@documents_with("json", "yaml")
def test_json_and_yaml_examples_can_be_read(path: Path) -> None:
    document = path.read_text(encoding="utf-8")
    for example in blocks(document, "json"):
        assert json.loads(example)
    for example in blocks(document, "yaml"):
        assert yaml.safe_load(example)


def test_files_that_are_named_exist() -> None:
    named = {
        (path.name, name)
        for path in DOCUMENTS
        for name in INLINE.findall(path.read_text(encoding="utf-8"))
        if NAMED_FILE.fullmatch(name)
    }
    assert len(named) > 20
    assert {each for each in named if not (ROOT / each[1]).exists()} == set()


def test_measures_that_the_readme_names_are_measured() -> None:
    readme = text("README.md")
    named = set(re.findall(r"`(\w+)`(?: and its neighbours)? of `recrawl bench", readme))
    rows = set(re.findall(r"^\| `(\w+)` \|", text("docs/bench.md"), re.MULTILINE))
    assert len(named) >= 4
    assert named <= rows


@pytest.mark.parametrize("name", ["docs/operations.md", "docs/api.md", "docs/get-started.md"])
def test_metrics_that_are_named_are_in_the_table(name: str) -> None:
    table = set(re.findall(r"^\| `(recrawl_\w+)` \|", text("docs/dashboard.md"), re.MULTILINE))
    assert {found for found in INLINE.findall(text(name)) if re.fullmatch(r"recrawl_\w+", found)} <= table
    assert table


def test_the_library_example_of_the_readme_is_short() -> None:
    (example,) = blocks(text("README.md"), "python")
    assert len([line for line in example.splitlines() if line]) <= 20


def test_rules_of_others_in_the_readme_can_be_run() -> None:
    from recrawl.lab.simulation.scenarios import make_contender

    rows = re.findall(r"^\| .* \| (`[^|]+`) \|$", text("README.md"), re.MULTILINE)
    names = [name for row in rows for name in INLINE.findall(row) if re.fullmatch(r"[a-z-]+", name)]
    assert len(names) >= 7
    for name in names:
        assert make_contender(name).name == name


def test_pictures_are_drawn_from_the_plan_that_is_reported() -> None:
    """The price of the pictures spends the budget, and due times are those of the plan."""
    example = draw_concepts.example()
    assert draw_concepts.wanted(example.plan.price) == pytest.approx(draw_concepts.BUDGET)
    rates: Floats = example.plan.rates
    for url in draw_concepts.SHOWN:
        due = harmonic_due(*example.page(url), example.plan.price)
        assert 1 / due == pytest.approx(rates[example.urls.index(url)])


@pytest.mark.parametrize("name", draw_concepts.PICTURES)
def test_pictures_are_shown_and_small(name: str) -> None:
    shown = text("docs/concepts.md") + text("docs/objectives.md")
    assert f"](images/{name})" in shown
    assert (draw_concepts.IMAGES / name).stat().st_size <= SMALL_PICTURE_BYTES


def test_the_unit_starts_a_command_that_exists_and_gives_it_time_to_drain() -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # names of systemd have capitals
    unit.read(ROOT / "deploy" / "recrawl.service", encoding="utf-8")
    service = unit["Service"]
    program, *command = shlex.split(service["ExecStart"])
    assert Path(program).name == "recrawl"
    assert parses(command)
    assert int(service["TimeoutStopSec"]) > Settings().drain_s
    assert int(service["RestartPreventExitStatus"]) == BAD_INPUT
    assert (service["KillSignal"], service["NoNewPrivileges"], service["ProtectSystem"]) == ("SIGTERM", "yes", "strict")


def test_the_container_runs_a_command_that_exists_without_root() -> None:
    lines = text("deploy/Containerfile").splitlines()
    given = {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in lines if re.match(r"[A-Z]+ ", line)}
    assert json.loads(given["ENTRYPOINT"]) == ["recrawl"]
    assert parses(json.loads(given["CMD"]))
    assert given["USER"] == "recrawl"
    copied = [word for line in lines if line.startswith("COPY") for word in line.split()[1:-1]]
    assert all((ROOT / name).exists() for name in copied)
