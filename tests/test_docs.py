"""Documents say what is true: commands parse, options are all there, examples run, links resolve, lists are equal."""

from __future__ import annotations

import doctest
import json
import re
import shlex
import shutil
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import recrawl
from recrawl.cli import main
from recrawl.cli.main import COMMANDS, cli
from recrawl.files import columns, formats
from recrawl.pages import OBJECTIVES
from recrawl.planning import solve
from recrawl.plots.save import FORMATS

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "THREAT_MODEL.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")


def text(name: str) -> str:
    """A document of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(document: str, *languages: str) -> list[str]:
    """The fenced blocks in these languages."""
    return [body for language, body in FENCE.findall(document) if language in languages]


def code_lines(document: str) -> list[str]:
    """Everything in a document that a reader might type: lines of blocks, and code within sentences."""
    fenced = [line for body in blocks(document, "sh", "console") for line in body.splitlines()]
    indented = re.findall(r"^ {4}(\S.*)$", document, re.MULTILINE)
    inline = INLINE.findall(FENCE.sub("", document))
    return [line.split("  #")[0].strip().removeprefix("$ ") for line in fenced + indented + inline]


def section(document: str, heading: str) -> str:
    """The part of a document under a heading, down to the next of the same level or above."""
    level = len(heading) - len(heading.lstrip("#"))
    _, found, rest = document.partition(f"\n{heading}\n")
    assert found, heading
    return re.split(rf"^#{{1,{level}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def first_column(part: str) -> list[str]:
    """The names in backticks in the first column of the tables of a section, in order."""
    cells = re.findall(r"^\| (`[^|]*) \|", part, re.MULTILINE)
    return [name for cell in cells for name in INLINE.findall(cell)]


def documented_calls() -> list[tuple[str, str]]:
    """Every call of a recrawl command that a document shows."""
    call = re.compile(rf"(?:sudo -u \w+ )?(?:\S*/)?(recrawl (?:{'|'.join(COMMANDS)})\b[^\[…<]*)")
    found = [
        (path.name, call.fullmatch(line)) for path in DOCUMENTS for line in code_lines(path.read_text(encoding="utf-8"))
    ]
    return [(name, match[1]) for name, match in found if match is not None]


def test_there_are_calls_to_check() -> None:
    """The tests below look at something."""
    assert {shlex.split(line)[1] for _, line in documented_calls()} == set(COMMANDS)


@pytest.mark.parametrize(("document", "line"), documented_calls())
def test_every_documented_call_parses(document: str, line: str) -> None:
    """Against the real commands and options, without running them."""
    _, name, *arguments = shlex.split(line)
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    if arguments or document == "commands.md":
        command.make_context(f"recrawl {name}", arguments if arguments else ["PAGES"] * (name == "plan"))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented_and_no_other(name: str) -> None:
    """In the order of the command's own help."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    options = command.get_params(click.Context(command, info_name=name))
    real = [option.opts[-1] for option in options if isinstance(option, click.Option)]
    part = section(text("docs/commands.md"), f"## recrawl {name}")
    assert [found for found in first_column(part) if found.startswith("--")] == real


def test_exit_codes_are_those_of_the_command() -> None:
    """The table lists them all."""
    codes = [int(code) for code in re.findall(r"^\| (\d+) \|", text("docs/commands.md"), re.MULTILINE)]
    assert codes == [0, main.BAD_INPUT, main.INTERRUPTED, main.READER_LEFT]


def test_every_make_target_named_exists() -> None:
    """A target in a document is a target in the Makefile, and the main ones are in the README."""
    (phony,) = re.findall(r"^\.PHONY: (.*)$", text("Makefile"), re.MULTILINE)
    for path in DOCUMENTS:
        named = {line.split()[1] for line in code_lines(path.read_text(encoding="utf-8")) if line.startswith("make ")}
        assert named <= set(phony.split()), path.name
    assert {"make run", "make test"} <= set(code_lines(text("README.md")))


def test_every_target_is_made_in_one_place() -> None:
    targets = re.findall(r"^([^\s#.=][^\s=]*):(?: |$)", text("Makefile"), re.MULTILINE)
    assert "test-quick" in targets
    assert len(targets) == len(set(targets))


@pytest.mark.parametrize(
    "path",
    [path for path in DOCUMENTS if blocks(path.read_text(encoding="utf-8"), "python")],
    ids=lambda path: path.name,
)
def test_python_examples_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a session at the root of the repository, each line giving what is written below it."""
    monkeypatch.chdir(ROOT)
    examples = blocks(path.read_text(encoding="utf-8"), "python")
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for number, example in enumerate(examples):
        test = parser.get_doctest(example, {}, f"{path.name}[{number}]", str(path), 0)
        assert test.examples, "a Python example is written as a session, with >>>"
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_local_links_resolve(path: Path) -> None:
    """To files of the repository, and to headings in them."""
    for target, anchor in LINK.findall(path.read_text(encoding="utf-8")):
        if target.startswith(("http://", "https://")):
            continue
        file = (path.parent / target).resolve()
        assert file.is_file(), target
        assert ROOT in file.parents, target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {"#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, target + anchor


def test_objectives_are_the_real_ones() -> None:
    """In the table of the commands page, all of them, in order."""
    assert first_column(section(text("docs/commands.md"), "### Objectives")) == list(OBJECTIVES)


def test_solvers_and_their_objectives_are_the_real_ones() -> None:
    """In order, each with the objectives it can be asked for."""
    part = section(text("docs/commands.md"), "### Solvers")
    rows = re.findall(r"^\| `([\w-]+)` \|.*\| ([^|]+) \|$", part, re.MULTILINE)
    documented = {name: tuple(INLINE.findall(objectives)) for name, objectives in rows}
    assert list(documented) == list(solve.SOLVERS)
    assert documented == solve._OBJECTIVES


def test_the_mathematics_cover_every_solver() -> None:
    """Section 3 has a row for each."""
    named = first_column(section(text("docs/math.md"), "## 3. Optimal rates under a budget"))
    assert set(named) == set(solve.SOLVERS)


def test_columns_and_endings_are_the_real_ones() -> None:
    """What a file may hold, and how its name may end."""
    part = section(text("docs/commands.md"), "### Files of pages")
    assert set(first_column(part)) == {*columns.NUMBER_COLUMNS, *columns.WORD_COLUMNS}
    endings = {name for name in INLINE.findall(part) if name.startswith(".")}
    assert endings - {".gz"} == {ending for ending in formats._KINDS if not ending.endswith(".gz")}
    assert set(columns.LABEL_COLUMNS) <= set(INLINE.findall(part))
    plot = next(line for line in text("docs/commands.md").splitlines() if line.startswith("| `--plot`"))
    assert {f".{name}" for name in FORMATS} <= set(INLINE.findall(plot))


def test_json_fields_are_the_real_ones() -> None:
    """Every field of a plan in JSON is documented, in order, and so are the fields within."""
    result = CliRunner().invoke(cli, ["plan", str(ROOT / "examples" / "pages.csv"), "--budget", "9/day", "--json"])
    read = json.loads(result.stdout)
    part = section(text("docs/commands.md"), "### Fields of --json")
    assert first_column(part) == list(read)
    for name in ("more_budget", "shortfall", "never_crawled"):
        (row,) = re.findall(rf"^\| `{name}` \| (.*) \|$", part, re.MULTILINE)
        assert set(read[name]) == set(INLINE.findall(row)), name
    (row,) = re.findall(r"^\| `most_crawled`, `least_crawled` \| (.*) \|$", part, re.MULTILINE)
    assert set(read["most_crawled"][0]) == set(INLINE.findall(row))


def test_the_report_of_a_plan_is_what_the_command_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Word for word, on the example of the repository."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    (session,) = blocks(text("docs/get-started.md"), "console")
    call, _, report = session.partition("\n")
    result = CliRunner().invoke(cli, shlex.split(call)[2:], prog_name="recrawl")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == report


def test_rooms_and_files_of_the_architecture_exist() -> None:
    """Every package has its row, and every file named is there."""
    document = text("docs/architecture.md")
    source = Path(recrawl.__file__).parent
    packages = {f"{path.parent.name}/" for path in source.glob("*/__init__.py")}
    rooms = {
        name for row in re.findall(r"^\| \d+ \| ([^|]*) \|", document, re.MULTILINE) for name in INLINE.findall(row)
    }
    assert {room for room in rooms if room.endswith("/")} == packages
    for name in {*rooms, *re.findall(r"^(?: {4}\d| {5}) (\w+/\w+\.py)", document, re.MULTILINE)}:
        assert (source / name).exists(), name


def test_the_glossary_is_sorted() -> None:
    """Words are looked up by their place."""
    words = re.findall(r"^\| ([a-z][a-z ]*) \|", text("docs/glossary.md"), re.MULTILINE)[1:]
    assert words == sorted(words)
    assert len(words) > 30
