"""Pages: add, list, read, change, remove, pause; their history, texts and reasons."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, delete, get, patch, post
from litestar.params import FromQuery, JSONBody, PathParameter, QueryParameter

from recrawl.service.api.json_body import JsonBody
from recrawl.service.api.markdown import markdown_of
from recrawl.service.api.schemas import (
    MOST_LISTED,
    Done,
    Fetch,
    Name,
    Page,
    Url,
    Urls,
    done,
    fetch_of,
    page_of,
)
from recrawl.service.context import InHand, InTracker
from recrawl.service.errors import Asked, Refusal
from recrawl.store.packing import unpacked
from recrawl.store.rows import PageEdit, PageRow, PauseKind
from recrawl.tracker.admission import PageRequest, Rejected, address_of, admit
from recrawl.tracker.clock import iso
from recrawl.tracker.commands.commands import Add, Explain, Pause, Remove, Resume
from recrawl.tracker.tracker import Tracker

MOST_ADDED = 1000
_ADD_BYTES = 16 << 20
PageId = Annotated[int, PathParameter(ge=1, le=2**63 - 1, description="of the page")]
TextForm = Literal["text", "markdown"]
Limit = Annotated[int, QueryParameter(ge=1, le=MOST_LISTED)]
After = Annotated[int, QueryParameter(ge=0, le=2**63 - 1, description="the `next` of the answer before")]


class NewPage(msgspec.Struct, forbid_unknown_fields=True):
    """A page to be tracked; what is not said is as its group has it."""

    url: Url
    importance: float | None = None
    group: Name | None = None
    min_interval_s: float | None = None
    max_interval_s: float | None = None


class NewPages(msgspec.Struct, forbid_unknown_fields=True):
    """Pages to be tracked; `dry_run` only says what would be done."""

    pages: Annotated[list[NewPage], msgspec.Meta(min_length=1, max_length=MOST_ADDED)]
    dry_run: bool = False


class PageChanges(msgspec.Struct, forbid_unknown_fields=True):
    """What is to be changed of a page; what is not said stays."""

    importance: float | None = None
    group: Name | None = None
    min_interval_s: float | None = None
    max_interval_s: float | None = None


class Named(msgspec.Struct, forbid_unknown_fields=True):
    """Pages by address."""

    urls: Urls


class Held(msgspec.Struct, forbid_unknown_fields=True):
    """Pages, groups or hosts, by address or name."""

    kind: PauseKind
    names: Annotated[list[Url], msgspec.Meta(min_length=1, max_length=1000)]


class PageList(msgspec.Struct):
    """Some pages; `next` goes into `after` for those that follow, None at the end."""

    pages: list[Page]
    next: int | None


class History(msgspec.Struct):
    """The last fetches of a page, the newest first."""

    observations: list[Fetch]


class Version(msgspec.Struct):
    """A version of a page that was published."""

    version: int
    at: str | None
    digest: str


class Versions(msgspec.Struct):
    """Versions of a page, the newest first."""

    versions: list[Version]


@post("/pages", opt={"scope": "write"}, dto=JsonBody[NewPages], return_dto=None, status_code=200,
      request_max_body_size=_ADD_BYTES)  # fmt: skip
async def add_pages(data: JSONBody[NewPages], hand: InHand, tracker: InTracker) -> Done:
    """Track pages from now on. Added again, a page keeps what is known of it."""
    wanted = [
        PageRequest(page.url, page.importance, page.group, page.min_interval_s, page.max_interval_s)
        for page in data.pages
    ]
    return done(await hand.do(Add(wanted, dry_run=data.dry_run), tracker.clock.now()))


@get("/pages", opt={"scope": "read"})
async def list_pages(
    tracker: InTracker,
    after: After = 0,
    limit: Limit = 100,
    host: FromQuery[str | None] = None,
    group: FromQuery[str | None] = None,
    url: FromQuery[str | None] = None,
) -> PageList:
    """Pages in the order of their ids, all of them or those of a host or a group; or the one with an address."""
    if url is not None:
        found = await _by_url(tracker, url)
        return PageList([page_of(found)] if found is not None else [], None)
    rows = await tracker.store.list_pages(after, limit, group=group, host=host)
    return PageList([page_of(row) for row in rows], rows[-1].id if len(rows) == limit else None)


@get("/pages/{page_id:int}", opt={"scope": "read"})
async def read_page(tracker: InTracker, page_id: PageId) -> Page:
    """A page."""
    return page_of(await page_or_404(tracker, page_id))


@patch("/pages/{page_id:int}", opt={"scope": "write"}, dto=JsonBody[PageChanges], return_dto=None)
async def change_page(tracker: InTracker, data: JSONBody[PageChanges], page_id: PageId) -> Page:
    """Change importance, group or bounds of a page. A fetch of it under way is given back."""
    row = await page_or_404(tracker, page_id)
    if row.state == "retired":
        raise Refusal(409, "the page is no longer tracked: add it again")
    if row.role != "page":
        raise Refusal(409, "it is fetched as a source only: add it as a page first")
    wanted = PageRequest(
        row.url,
        row.importance if data.importance is None else data.importance,
        data.group if data.group is not None else row.group or None,
        row.min_interval_s if data.min_interval_s is None else data.min_interval_s,
        row.max_interval_s if data.max_interval_s is None else data.max_interval_s,
    )
    checked = admit(wanted, tracker.settings, row.added_at)
    if isinstance(checked, Rejected):
        raise Refusal(422, checked.reason)
    edit = PageEdit(
        row.id,
        group=data.group,
        importance=data.importance,
        objective=checked.objective if data.group is not None else None,
        min_interval_s=data.min_interval_s,
        max_interval_s=data.max_interval_s,
    )
    await tracker.store.edit_pages([edit])
    await tracker.registry.drop([row.id])
    await tracker.registry.apply_pauses("page", [row.url])
    return page_of(await page_or_404(tracker, page_id))


@delete("/pages/{page_id:int}", opt={"scope": "write"}, status_code=200)
async def remove_page(tracker: InTracker, hand: InHand, page_id: PageId) -> Done:
    """Stop tracking a page; what was seen of it stays."""
    row = await page_or_404(tracker, page_id)
    if row.state == "retired" or row.role != "page":
        return Done({"removed": 0, "rejected": 0}, [])
    return done(await hand.do(Remove([row.url]), tracker.clock.now()))


@post("/pages/remove", opt={"scope": "write"}, dto=JsonBody[Named], return_dto=None, status_code=200,
      request_max_body_size=_ADD_BYTES)  # fmt: skip
async def remove_pages(data: JSONBody[Named], hand: InHand, tracker: InTracker) -> Done:
    """Stop tracking pages by address."""
    return done(await hand.do(Remove(data.urls), tracker.clock.now()))


@post("/pause", opt={"scope": "write"}, dto=JsonBody[Held], return_dto=None, status_code=200)
async def pause(data: JSONBody[Held], hand: InHand, tracker: InTracker) -> Done:
    """Hold back pages, groups or hosts until they are resumed."""
    return done(await hand.do(Pause(data.kind, data.names), tracker.clock.now()))


@post("/resume", opt={"scope": "write"}, dto=JsonBody[Held], return_dto=None, status_code=200)
async def resume(data: JSONBody[Held], hand: InHand, tracker: InTracker) -> Done:
    """Crawl again what was paused, or a page that was quarantined."""
    return done(await hand.do(Resume(data.kind, data.names), tracker.clock.now()))


@get("/pages/{page_id:int}/observations", opt={"scope": "read"})
async def history(tracker: InTracker, page_id: PageId, limit: Limit = 100) -> History:
    """The last fetches of a page."""
    await page_or_404(tracker, page_id)
    return History([fetch_of(each) for each in await tracker.store.observations(page_id, limit)])


@get("/pages/{page_id:int}/versions", opt={"scope": "read"})
async def versions(tracker: InTracker, page_id: PageId) -> Versions:
    """Versions of a page that were published and are kept."""
    await page_or_404(tracker, page_id)
    kept = await tracker.store.versions(page_id)
    return Versions([Version(number, iso(at), digest.hex()) for number, at, digest in kept])


@get("/pages/{page_id:int}/text", opt={"scope": "read"}, media_type="text/plain")
async def text(
    request: Asked,
    tracker: InTracker,
    page_id: PageId,
    version: Annotated[int | None, QueryParameter(ge=1, le=2**31)] = None,
    form: Annotated[TextForm, QueryParameter(description="`markdown` is the main text, if bodies are kept")] = "text",
) -> Response[bytes]:
    """The text of a version, by default the last: as plain text that no browser takes for anything else."""
    await page_or_404(tracker, page_id)
    if form == "markdown":
        content = await markdown_of(request.app.state, tracker.store, page_id, version)
    else:
        packed = await tracker.store.read_text(page_id, version)
        content = None if packed is None else unpacked(packed)
    if content is None:
        raise Refusal(404, f"no {'body' if form == 'markdown' else 'text'} of that version is kept")
    headers = {"Content-Security-Policy": "default-src 'none'; sandbox", "Content-Disposition": "inline"}
    return Response(content, headers=headers, media_type="text/plain; charset=utf-8")


@get("/pages/{page_id:int}/explain", opt={"scope": "read"})
async def explain_page(tracker: InTracker, hand: InHand, page_id: PageId) -> dict[str, Any]:
    """Why a page is, or is not, crawled now: as `recrawl explain --json`."""
    row = await page_or_404(tracker, page_id)
    return await _explained(tracker, hand, row.url)


@get("/explain", opt={"scope": "read"})
async def explain_url(tracker: InTracker, hand: InHand, url: FromQuery[str]) -> dict[str, Any]:
    """The same by address."""
    return await _explained(tracker, hand, url)


async def _explained(tracker: Tracker, hand: Any, url: str) -> dict[str, Any]:
    reply = await hand.do(Explain(url), tracker.clock.now())
    if reply.rejected:
        raise Refusal(404, f"{reply.rejected[0].url} {reply.rejected[0].reason}", "url")
    facts: dict[str, Any] = reply.facts
    return facts


async def page_or_404(tracker: Tracker, page_id: int) -> PageRow:
    """The row of a page."""
    rows = await tracker.store.read_pages([page_id])
    if not rows:
        raise Refusal(404, f"there is no page {page_id}")
    return rows[0]


async def _by_url(tracker: Tracker, url: str) -> PageRow | None:
    address, problem = address_of(url)
    found = await tracker.store.find_pages([address])
    if problem and not found:
        raise Refusal(422, problem, "url")
    rows = await tracker.store.read_pages(list(found.values()))
    return rows[0] if rows else None


ROUTES = Router(
    "/api/v1",
    tags=["pages"],
    route_handlers=[
        add_pages, list_pages, read_page, change_page, remove_page, remove_pages, pause, resume, history, versions,
        text, explain_page, explain_url,
    ],
)  # fmt: skip
