"""Pages: add, list, read, change, remove, pause; their history, texts and reasons.

Markdown is the main text of a page, made from the body when it is asked for. It takes some milliseconds of a parse
process, so few are made together, and only of pages whose bodies are kept (`bodies` under `[retention]`).
"""

from __future__ import annotations

import asyncio
import weakref
from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, delete, get, patch, post
from litestar.datastructures import State
from litestar.params import FromQuery, JSONBody, PathParameter, QueryParameter

from recrawl.extras import is_installed, missing
from recrawl.service.api.json_body import JsonBody
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
from recrawl.service.context import InService, Service
from recrawl.service.errors import ApiError, Asked
from recrawl.store.bodies import unpacked
from recrawl.store.history import HistoryStore
from recrawl.store.rows import PageEdit, PageRow, PauseKind
from recrawl.tracker.admission import PageRequest, Rejected, address_of, admit
from recrawl.tracker.clock import iso
from recrawl.tracker.commands.commands import Add, Explain, Pause, Remove, Resume
from recrawl.web.workers import ParseWorkers

MOST_ADDED = 1000
AT_ONCE = 2
MOST_WAITING = 20
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
async def add_pages(data: JSONBody[NewPages], service: InService) -> Done:
    """Track pages from now on. Added again, a page keeps what is known of it."""
    wanted = [
        PageRequest(page.url, page.importance, page.group, page.min_interval_s, page.max_interval_s)
        for page in data.pages
    ]
    return done(await service.run(Add(wanted, dry_run=data.dry_run)))


@get("/pages", opt={"scope": "read"})
async def list_pages(
    service: InService,
    after: After = 0,
    limit: Limit = 100,
    host: FromQuery[str | None] = None,
    group: FromQuery[str | None] = None,
    url: FromQuery[str | None] = None,
) -> PageList:
    """Pages in the order of their ids, all of them or those of a host or a group; or the one with an address."""
    if url is not None:
        found = await _by_url(service, url)
        return PageList([page_of(found)] if found is not None else [], None)
    rows = await service.store.list_pages(after, limit, group=group, host=host)
    return PageList([page_of(row) for row in rows], rows[-1].id if len(rows) == limit else None)


@get("/pages/{page_id:int}", opt={"scope": "read"})
async def read_page(service: InService, page_id: PageId) -> Page:
    """A page."""
    return page_of(await page_or_404(service, page_id))


@patch("/pages/{page_id:int}", opt={"scope": "write"}, dto=JsonBody[PageChanges], return_dto=None)
async def change_page(service: InService, data: JSONBody[PageChanges], page_id: PageId) -> Page:
    """Change importance, group or bounds of a page. A fetch of it under way is given back."""
    row = await page_or_404(service, page_id)
    if row.state == "retired":
        raise ApiError(409, "the page is no longer tracked: add it again")
    if row.role != "page":
        raise ApiError(409, "it is fetched as a source only: add it as a page first")
    wanted = PageRequest(
        row.url,
        row.importance if data.importance is None else data.importance,
        data.group if data.group is not None else row.group or None,
        row.min_interval_s if data.min_interval_s is None else data.min_interval_s,
        row.max_interval_s if data.max_interval_s is None else data.max_interval_s,
    )
    checked = admit(wanted, service.settings, row.added_at)
    if isinstance(checked, Rejected):
        raise ApiError(422, checked.reason)
    edit = PageEdit(
        row.id,
        group=data.group,
        importance=data.importance,
        objective=checked.objective if data.group is not None else None,
        min_interval_s=data.min_interval_s,
        max_interval_s=data.max_interval_s,
    )
    await service.store.edit_pages([edit])
    await service.tracker.registry.drop([row.id])
    await service.tracker.registry.apply_pauses("page", [row.url])
    return page_of(await page_or_404(service, page_id))


@delete("/pages/{page_id:int}", opt={"scope": "write"}, status_code=200)
async def remove_page(service: InService, page_id: PageId) -> Done:
    """Stop tracking a page; what was seen of it stays."""
    row = await page_or_404(service, page_id)
    if row.state == "retired" or row.role != "page":
        return Done({"removed": 0, "rejected": 0}, [])
    return done(await service.run(Remove([row.url])))


@post("/pages/remove", opt={"scope": "write"}, dto=JsonBody[Named], return_dto=None, status_code=200,
      request_max_body_size=_ADD_BYTES)  # fmt: skip
async def remove_pages(data: JSONBody[Named], service: InService) -> Done:
    """Stop tracking pages by address."""
    return done(await service.run(Remove(data.urls)))


@post("/pause", opt={"scope": "write"}, dto=JsonBody[Held], return_dto=None, status_code=200)
async def pause(data: JSONBody[Held], service: InService) -> Done:
    """Hold back pages, groups or hosts until they are resumed."""
    return done(await service.run(Pause(data.kind, data.names)))


@post("/resume", opt={"scope": "write"}, dto=JsonBody[Held], return_dto=None, status_code=200)
async def resume(data: JSONBody[Held], service: InService) -> Done:
    """Crawl again what was paused, or a page that was quarantined."""
    return done(await service.run(Resume(data.kind, data.names)))


@get("/pages/{page_id:int}/observations", opt={"scope": "read"})
async def history(service: InService, page_id: PageId, limit: Limit = 100) -> History:
    """The last fetches of a page."""
    await page_or_404(service, page_id)
    return History([fetch_of(each) for each in await service.store.observations(page_id, limit)])


@get("/pages/{page_id:int}/versions", opt={"scope": "read"})
async def versions(service: InService, page_id: PageId) -> Versions:
    """Versions of a page that were published and are kept."""
    await page_or_404(service, page_id)
    kept = await service.store.versions(page_id)
    return Versions([Version(number, iso(at), digest.hex()) for number, at, digest in kept])


@get("/pages/{page_id:int}/text", opt={"scope": "read"}, media_type="text/plain")
async def text(
    request: Asked,
    service: InService,
    page_id: PageId,
    version: Annotated[int | None, QueryParameter(ge=1, le=2**31)] = None,
    form: Annotated[TextForm, QueryParameter(description="`markdown` is the main text, if bodies are kept")] = "text",
) -> Response[bytes]:
    """The text of a version, by default the last: as plain text that no browser takes for anything else."""
    await page_or_404(service, page_id)
    if form == "markdown":
        content = await markdown_of(request.app.state, service.store, page_id, version)
    else:
        packed = await service.store.read_text(page_id, version)
        content = None if packed is None else unpacked(packed)
    if content is None:
        raise ApiError(404, f"no {'body' if form == 'markdown' else 'text'} of that version is kept")
    headers = {"Content-Security-Policy": "default-src 'none'; sandbox", "Content-Disposition": "inline"}
    return Response(content, headers=headers, media_type="text/plain; charset=utf-8")


@get("/pages/{page_id:int}/explain", opt={"scope": "read"})
async def explain_page(service: InService, page_id: PageId) -> dict[str, Any]:
    """Why a page is, or is not, crawled now: as `recrawl explain --json`."""
    row = await page_or_404(service, page_id)
    return await _explained(service, row.url)


@get("/explain", opt={"scope": "read"})
async def explain_url(service: InService, url: FromQuery[str]) -> dict[str, Any]:
    """The same by address."""
    return await _explained(service, url)


async def _explained(service: Service, url: str) -> dict[str, Any]:
    reply = await service.run(Explain(url))
    if reply.rejected:
        raise ApiError(404, f"{reply.rejected[0].url} {reply.rejected[0].reason}", "url")
    return reply.facts


async def page_or_404(service: Service, page_id: int) -> PageRow:
    """The row of a page."""
    rows = await service.store.read_pages([page_id])
    if not rows:
        raise ApiError(404, f"there is no page {page_id}")
    return rows[0]


async def _by_url(service: Service, url: str) -> PageRow | None:
    address, problem = address_of(url)
    found = await service.store.find_pages([address])
    if problem and not found:
        raise ApiError(422, problem, "url")
    rows = await service.store.read_pages(list(found.values()))
    return rows[0] if rows else None


class Makers:
    """The parse processes that make Markdown, and how many requests wait for one."""

    def __init__(self) -> None:
        self.turns = asyncio.Semaphore(AT_ONCE)
        self.workers = ParseWorkers(AT_ONCE)
        weakref.finalize(self, self.workers.close)
        self.asked = 0


async def markdown_of(state: State, store: HistoryStore, page_id: int, version: int | None) -> bytes | None:
    """The main text of a version, by default the last; None if its body is not kept.

    Raises:
        ApiError: if it cannot be made here, there are too many already, or this page has no main text.
    """
    if not is_installed("trafilatura"):
        raise ApiError(409, missing("trafilatura", "Markdown"), "form")
    makers: Makers = state.setdefault("markdown", Makers())
    if makers.asked >= MOST_WAITING:
        raise ApiError(429, f"{MOST_WAITING} texts are being made already", headers={"Retry-After": "2"})
    makers.asked += 1
    try:
        async with makers.turns:
            body = await store.version_body(page_id, version)
            if body is None:
                return None
            made = await asyncio.to_thread(makers.workers.main_text, body)
    finally:
        makers.asked -= 1
    if made.problem:
        raise ApiError(404, made.problem)
    return made.text.encode()


ROUTES = Router(
    "/api/v1",
    tags=["pages"],
    route_handlers=[
        add_pages, list_pages, read_page, change_page, remove_page, remove_pages, pause, resume, history, versions,
        text, explain_page, explain_url,
    ],
)  # fmt: skip
