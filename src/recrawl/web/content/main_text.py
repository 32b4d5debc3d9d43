"""The main text of a page, plain or as Markdown, by trafilatura: for people and for models, not for detection.

It takes some milliseconds a page and is optional (`pip install 'recrawl[markdown]'`), so it stands outside the path of
every fetch. `workers.py` calls `extract` in a process with a deadline, after `guarded` has made the markup harmless.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from recrawl.errors import InvalidInput
from recrawl.extras import need
from recrawl.web.content.charset import as_utf8, read_charset

Form = Literal["markdown", "text"]
FORMS: tuple[Form, ...] = get_args(Form)
MAX_BYTES = 2 << 20  # what is read of a page
MAX_TEXT = 1 << 20  # characters kept
_TRAFILATURA_FORMS = {"markdown": "markdown", "text": "txt"}


class MainText(NamedTuple):
    """The main text of a page; empty with a problem if there is none."""

    text: str
    problem: str = ""


def guarded(body: bytes, content_type: str | None = None) -> bytes:
    """Return a page in UTF-8 that a parser reads in linear time. O(bytes), at most 2 MiB.

    Args:
        body: the decoded body of the answer.
        content_type: the `Content-Type` header, None if there was none.
    """
    from recrawl.web.content.html_guard import harmless  # compiled: a parse process must not load it

    body = body[:MAX_BYTES]
    return harmless(as_utf8(body, read_charset(body, content_type)))[0]


def extract(html: bytes, form: Form = "markdown") -> str:
    """Return the main text of a guarded page; empty if there is none. O(bytes) for most pages.

    Raises:
        InvalidInput: for another form, or if trafilatura is not installed.
    """
    check_form(form)
    import trafilatura

    found = trafilatura.extract(
        html.decode("utf-8", "replace"),
        output_format=_TRAFILATURA_FORMS[form],
        include_comments=False,
        include_links=form == "markdown",
    )
    return (found or "")[:MAX_TEXT]


def check_form(form: str) -> None:
    """Refuse another form, or any if trafilatura is not installed.

    Raises:
        InvalidInput: with a sentence that says what to choose or to install.
    """
    if form not in FORMS:
        raise InvalidInput(f"is {form!r}, but must be one of {', '.join(FORMS)}", field="form")
    need("trafilatura", "main text")
