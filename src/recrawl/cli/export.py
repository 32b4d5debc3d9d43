"""`recrawl export`: pages, or fetches, as a file for people and programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from recrawl.cli.store_options import chosen_settings, settings_option
from recrawl.cli.terminal import print_json, progress
from recrawl.errors import InvalidInput


@click.command(name="export")
@settings_option
@click.option(
    "--format", "form", type=click.Choice(["csv", "jsonl"]), help="By default by the ending of --out, or csv."
)
@click.option("--observations", is_flag=True, help="Fetches instead of pages: those that are still kept.")
@click.option("--crawls", is_flag=True, help="Only fetches that brought a page: a crawl log for recrawl backtest.")
@click.option("--raw", is_flag=True, help="CSV without the ' that keeps spreadsheets from running text as a formula.")
@click.option("--out", type=click.Path(path_type=Path), help="File to write; by default standard output.")
@click.option("--json", "as_json", is_flag=True, help="With --out, print one JSON line on what was written.")
def command(settings_path: Path | None, store: str | None, form: str | None, out: Path | None, **how: bool) -> None:
    """Write all pages, or all fetches that are kept, also while a tracker runs.

    \b
    Example:
      recrawl export --out pages.csv
      recrawl export --crawls --out crawls.csv
    """
    from recrawl._event_loop import run

    if form is None:
        form = "jsonl" if out is not None and out.suffix in (".jsonl", ".ndjson") else "csv"
    if how["as_json"] and out is None:
        raise InvalidInput("needs --out: standard output is taken by the rows", field="--json")
    where = chosen_settings(settings_path, {"store": store}).settings.store
    if out is None:
        run(_write(where, form, how, lambda text: click.echo(text, nl=False)))
        return
    rows = _write_file(where, form, how, out)
    if how["as_json"]:
        print_json({"out": out, "format": form, "rows": rows})
    else:
        click.echo(f"{out}: {rows:,} rows")


def _write_file(where: str, form: str, how: dict[str, bool], out: Path) -> int:
    """Write a file whole or not at all."""
    from recrawl._event_loop import run
    from recrawl.files.formats import FileKind
    from recrawl.files.writing import replacing

    if out.is_dir() or not out.parent.is_dir():
        raise InvalidInput(f"is {str(out)!r}, but must be a file in a folder that is there", field="--out")
    with replacing(out, FileKind("csv" if form == "csv" else "jsonl")) as file:
        return run(_write(where, form, how, lambda text: file.write(text.encode("utf-8", "backslashreplace"))))


async def _write(where: str, form: str, how: dict[str, bool], write: Callable[[str], Any]) -> int:
    from recrawl.store.opening import open_store
    from recrawl.tracker.commands import export

    fetches = how["observations"] or how["crawls"]
    store = await open_store(where, owner=False, create=False)
    try:
        counts = await store.counts()
        total = counts.observations if fetches else sum(counts.pages.values())
        if form == "csv":
            write(",".join(export.FETCH_COLUMNS if fetches else export.PAGE_COLUMNS) + "\r\n")
        rows = export.fetch_rows(store, crawls_only=how["crawls"]) if fetches else export.page_rows(store)
        written = 0
        with progress("exporting") as report:
            async for row in rows:
                write(export.csv_line(row, raw=how["raw"]) if form == "csv" else export.json_line(row))
                written += 1
                if written % export.BATCH == 0:
                    report(written, total)
        return written
    finally:
        await store.close()
