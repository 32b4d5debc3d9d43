"""The main text of a page, plain or as Markdown, by trafilatura: for people and for models, not for detection.

It takes some milliseconds a page and is optional (`pip install 'recrawl[markdown]'`), so it stands outside the path of
every fetch. The work is done in a process of its own, with a deadline and limited memory, after the markup has been
made harmless: a page that makes it slow costs its deadline and nothing else.

    main_text(body).text            from anywhere, in a process of its own
    extract(body, "markdown")       here and now, without a deadline
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Literal, NamedTuple, get_args

from recrawl.errors import InvalidInput
from recrawl.extras import need
from recrawl.web.content.charset import as_utf8, read_charset
from recrawl.web.content.html_guard import harmless

Form = Literal["markdown", "text"]
FORMS: tuple[Form, ...] = get_args(Form)
MOST_BYTES = 2 << 20  # what is read of a page
MOST_TEXT = 1 << 20  # characters kept
_MEMORY_BYTES = 1 << 30
_COMMAND: tuple[str, ...] = (sys.executable, "-m", "recrawl.web.content.main_text")
_TRAFILATURA_FORMS = {"markdown": "markdown", "text": "txt"}


class MainText(NamedTuple):
    """The main text of a page; empty with a problem if there is none."""

    text: str
    problem: str = ""


def main_text(
    body: bytes, content_type: str | None = None, *, form: Form = "markdown", deadline_s: float = 20.0
) -> MainText:
    """The main text of a page, made in another process. O(bytes), at most the deadline.

    Args:
        body: the decoded body of the answer; at most 2 MiB are read.
        content_type: the `Content-Type` header, None if there was none.
        form: `markdown` keeps headings, lists, tables and links.
        deadline_s: seconds, the start of the process included.

    Raises:
        InvalidInput: for another form, a deadline that is not above 0, or if trafilatura is not installed.
    """
    _check(form)
    if not deadline_s > 0:
        raise InvalidInput(f"is {deadline_s}, but must be above 0", field="deadline_s")
    request = json.dumps({"form": form, "content_type": content_type}).encode() + b"\n" + body[:MOST_BYTES]
    try:
        done = subprocess.run(_COMMAND, input=request, capture_output=True, timeout=deadline_s, check=False)
        text = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return MainText("", f"the main text could not be found within {deadline_s:g} s")
    except (OSError, ValueError):
        return MainText("", "the main text could not be found within the memory of a worker")
    if not isinstance(text, str):
        return MainText("", "the main text could not be found within the memory of a worker")
    return MainText(text, "" if text else "the page has no main text")


def extract(body: bytes, form: Form = "markdown", content_type: str | None = None) -> str:
    """The main text of a page, made here without a deadline; empty if there is none. O(bytes) for most pages."""
    _check(form)
    import trafilatura

    body = body[:MOST_BYTES]
    html, _ = harmless(as_utf8(body, read_charset(body, content_type)))
    found = trafilatura.extract(
        html.decode("utf-8", "replace"),
        output_format=_TRAFILATURA_FORMS[form],
        include_comments=False,
        include_links=form == "markdown",
    )
    return (found or "")[:MOST_TEXT]


def _check(form: str) -> None:
    if form not in FORMS:
        raise InvalidInput(f"is {form!r}, but must be one of {', '.join(FORMS)}", field="form")
    need("trafilatura", "main text")


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # no such limits on Windows; the deadline still holds
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))


def _serve() -> None:
    """The life of a worker: one request on standard input, one answer on standard output."""
    header, _, body = sys.stdin.buffer.read().partition(b"\n")
    request = json.loads(header)
    sys.stdout.write(json.dumps(extract(body, request["form"], request["content_type"])))


if __name__ == "__main__":
    _limit_memory()
    _serve()
