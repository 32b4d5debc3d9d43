"""The pages of the documentation site, in the order of its navigation.

A page comes from a document of the repository or is generated: the command line from the commands themselves, the HTTP
API from the OpenAPI document of the service. To add a document, name it in `CONTENTS`; a test fails until you do.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CLI_PAGE = Path("docs/reference-cli.md")
API_PAGE = Path("docs/reference-api.md")

CONTENTS: dict[str, tuple[str, ...]] = {
    "Start": ("README.md", "docs/get-started.md", "docs/concepts.md", "docs/objectives.md", "docs/dashboard.md"),
    "Run it": (
        "docs/tracker.md",
        "docs/discovery.md",
        "docs/signals.md",
        "docs/search-index.md",
        "docs/operations.md",
        "docs/security.md",
        "docs/reliability.md",
    ),
    "Look up": (
        "docs/commands.md",
        str(CLI_PAGE),
        "docs/settings.md",
        "docs/api.md",
        str(API_PAGE),
        "docs/glossary.md",
        "CHANGELOG.md",
    ),
    "How it works": (
        "docs/math.md",
        "docs/scheduler.md",
        "docs/learning.md",
        "docs/learning-filter.md",
        "docs/web.md",
        "docs/architecture.md",
    ),
    "What was measured": ("docs/laboratory.md", "docs/results/results.md", "docs/bench.md"),
    "Take part": ("docs/extending.md", "CONTRIBUTING.md", "SECURITY.md", "THREAT_MODEL.md"),
}
_SHORT = {Path("README.md"): "recrawl"}
_METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Page:
    """A page.

    Args:
        source: the document, from the root of the repository; of a generated page the place where it would be.
        text: Markdown.
        listed: in the navigation.
    """

    source: Path
    text: str
    listed: bool = True

    @property
    def place(self) -> str:
        """Its file in the site."""
        if self.source == Path("README.md"):
            return "index.html"
        return str(self.source.with_suffix(".html")).removeprefix("docs/")

    @property
    def title(self) -> str:
        """Its first heading."""
        found = re.search(r"^# (.+)$", self.text, re.MULTILINE)
        assert found, f"{self.source} has no heading"
        return _SHORT.get(self.source, found[1].replace("`", ""))


def pages() -> Iterator[Page]:
    """All pages: those of the navigation, then those that only results link to."""
    generated = {CLI_PAGE: cli_reference, API_PAGE: api_reference}
    named = [Path(name) for names in CONTENTS.values() for name in names]
    for source in named:
        make = generated.get(source)
        yield Page(source, (ROOT / source).read_text(encoding="utf-8") if make is None else make())
    for path in sorted((ROOT / "docs" / "results").glob("*.md")):
        source = path.relative_to(ROOT)
        if source not in named:
            yield Page(source, path.read_text(encoding="utf-8"), listed=False)


def sections(known: Mapping[Path, Page]) -> list[tuple[str, list[Page]]]:
    """The navigation, of those pages that there are."""
    return [(title, [known[Path(name)] for name in names if Path(name) in known]) for title, names in CONTENTS.items()]


def cli_reference() -> str:
    """Every command as it explains itself."""
    import click

    from recrawl.cli.main import COMMANDS, cli

    top = click.Context(cli, info_name="recrawl", max_content_width=100)
    parts = ["# Command line", "What `--help` of each command prints; [commands](commands.md) says more."]
    parts += [_help(cli, top)]
    for name in COMMANDS:
        command = cli.get_command(top, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=top, max_content_width=100)
        parts += [f"## recrawl {name}", _help(command, context)]
    return "\n\n".join(parts) + "\n"


def _help(command: Any, context: Any) -> str:
    return f"```text\n{command.get_help(context)}\n```"


def api_reference() -> str:
    """The routes and shapes of the HTTP API, from its OpenAPI document."""
    document = asyncio.run(_openapi_document())
    parts = [
        "# HTTP API, route by route",
        "From the OpenAPI document of the service; [the API](api.md) says how to use it.",
    ]
    by_tag: dict[str, list[str]] = {}
    for path, operations in sorted(document["paths"].items()):
        for method in _METHODS:
            if method in operations:
                tag = (operations[method].get("tags") or ["other"])[0]
                by_tag.setdefault(tag, []).append(_route(method.upper(), path, operations[method]))
    for tag, routes in sorted(by_tag.items()):
        parts += [f"## {tag}", *routes]
    parts += ["## Shapes"]
    for name, schema in sorted(document["components"]["schemas"].items()):
        parts += [f"### {name}", *_shape(schema)]
    return "\n\n".join(parts) + "\n"


async def _openapi_document() -> dict[str, Any]:
    from recrawl.service.app import make_app
    from recrawl.service.auth.access import Access
    from recrawl.service.listening import Listening
    from recrawl.tracker.process import serving
    from recrawl.tracker.settings.settings import Settings

    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(store=folder, contact="docs@example.com", listen="off")
        async with serving(settings, lambda _: None) as tracker:
            app = make_app(tracker, Access(tracker.store, Listening(), time.time))
            document: dict[str, Any] = app.openapi_schema.to_schema()
            return document


def _route(method: str, path: str, operation: dict[str, Any]) -> str:
    """A route: what it does, what it is given, what it takes."""
    lines = [f"### {method} {path}", str(operation.get("description") or operation.get("summary") or "")]
    given = operation.get("parameters", ())
    if given:
        rows = [
            f"| `{each['name']}` | {each['in']} | {_kind(each.get('schema', {}))} | {_said(each)} |" for each in given
        ]
        lines.append("\n".join(["| parameter | in | type | |", "|---|---|---|---|", *rows]))
    content = operation.get("requestBody", {}).get("content", {})
    if content:
        lines.append(
            "Body: " + ", ".join(f"`{kind}` {_kind(each.get('schema', {}))}" for kind, each in content.items())
        )
    return "\n\n".join(line for line in lines if line)


def _shape(schema: dict[str, Any]) -> list[str]:
    said = [str(schema["description"])] if schema.get("description") else []
    required = set(schema.get("required", ()))
    rows = [
        f"| `{name}` | {_kind(each)} | {'yes' if name in required else 'no'} |"
        for name, each in schema.get("properties", {}).items()
    ]
    if not rows:
        return [*said, _kind(schema)]
    return [*said, "\n".join(["| field | type | required |", "|---|---|---|", *rows])]


def _kind(schema: dict[str, Any]) -> str:
    """The type of a value in a few words; shapes are links."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    options = schema.get("oneOf") or schema.get("anyOf")
    if options:
        return " or ".join(dict.fromkeys(_kind(each) for each in options))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    kind = schema.get("type", "anything")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _said(described: dict[str, Any]) -> str:
    """What is said of a value, fit for a cell of a table."""
    return " ".join(str(described.get("description", "")).split()).replace("|", "\\|")
