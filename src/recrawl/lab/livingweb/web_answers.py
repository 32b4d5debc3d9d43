"""From a request and a moment to an answer: what each address of the living web says. No IO.

host known? ─> robots.txt ─> trouble? ─> sitemap, feed ─> home, section ─> page, article ─> missing
"""

from __future__ import annotations

from recrawl.lab.livingweb.answers import (
    FEED_PATHS,
    FEED_TYPES,
    Answer,
    Request,
    Shown,
    feed_file,
    http_date,
    is_not_modified,
    redirect,
    sitemap_file,
    validators,
)
from recrawl.lab.livingweb.articles import SOFT_MISSING, article_html, find_article, home_html, page_html, section_html
from recrawl.lab.livingweb.hosts import Audit, HostProfile, phase_end
from recrawl.lab.livingweb.text import Moment
from recrawl.lab.livingweb.truth import TruthHost
from recrawl.lab.livingweb.world import SECTIONS, LivingWorld

_XML = b"application/xml"
_TEXT = b"text/plain; charset=utf-8"
_NOT_FOUND = Answer(404, b"<!doctype html><title>Not found</title><p>There is no such page.</p>")
_GONE = Answer(410, b"<!doctype html><title>Gone</title><p>This page was removed.</p>")
_SOFT = Answer(200, SOFT_MISSING)
_UNKNOWN_HOST = Answer(421, b"no such host here; ask for site-0 and so on\n", _TEXT)
_SECTION_PATHS = {b"/%b/" % section.encode(): i for i, section in enumerate(SECTIONS)}


class WebAnswers:
    """Answers for all hosts of a web and for its control host.

    Args:
        world: the web.
    """

    def __init__(self, world: LivingWorld) -> None:
        self.world = world
        self.audit = Audit(world.hosts)
        self.control_name = f"truth.{world.settings.domain}"
        self._control = self.control_name.encode()
        self._truth = TruthHost(world, self.audit)

    def answer(self, request: Request, now: float) -> Answer:
        """The answer at a moment, in Unix seconds of the web."""
        host = self.world.host_numbers.get(request.host)
        if host is None:
            return self._truth.answer(request, now) if request.host == self._control else _UNKNOWN_HOST
        profile = self.world.hosts[host]
        end: float | None = None
        if request.path == b"/robots.txt":
            answer = self._robots(profile, host, request, now)
        elif profile.trouble != "calm" and (ends := self._phase_end(host, now)) is not None:
            end = ends
            answer = _trouble(profile, end, now)
        else:
            answer = self._content(profile, host, request, now)
        self.audit.note(host, request.path, now, answer.status, end)
        return answer

    def _phase_end(self, host: int, now: float) -> float | None:
        end = phase_end(self.world.seed, host, now - self.world.epoch)
        return None if end is None else self.world.epoch + end

    def _robots(self, profile: HostProfile, host: int, request: Request, now: float) -> Answer:
        if profile.robots == "missing":
            return _NOT_FOUND
        if profile.robots == "failing" and self._phase_end(host, now) is not None:
            return Answer(503, b"try later\n", _TEXT)
        rule = {
            "deny": b"Disallow: /private/\n",
            "crawl-delay": b"Crawl-delay: %d\n" % profile.crawl_delay_s,
        }.get(profile.robots, b"Allow: /\n")
        sitemap = b"" if profile.sitemap == "none" else b"Sitemap: %b/sitemap.xml\n" % _origin(request)
        return Answer(200, b"User-agent: *\n%b\n%b" % (rule, sitemap), _TEXT)

    def _content(self, profile: HostProfile, host: int, request: Request, now: float) -> Answer:
        found = self.world.find(host, request.path)
        if found is not None:
            return self._page(profile, request, found, now)
        if request.path.startswith(b"/sitemap"):
            body = sitemap_file(self.world, host, request.path, _origin(request), now)
            return _NOT_FOUND if body is None else Answer(200, body, _XML)
        if request.path == FEED_PATHS.get(profile.feed):
            return Answer(200, feed_file(self.world, host, _origin(request), now), FEED_TYPES[profile.feed])
        return self._lists(profile, host, request, now)

    def _page(self, profile: HostProfile, request: Request, found: tuple[int, bool], now: float) -> Answer:
        page, at_new_address = found
        state = self.world.state(page, now)
        if state == "gone":
            return _missing(profile, was_there=True)
        if state == "unborn" or (at_new_address and state == "alive"):
            return _missing(profile, was_there=False)
        if state == "moved" and not at_new_address:
            return redirect(301 if page % 2 else 308, self._location(page, request, now))
        return self._living_page(profile, request, page, now)

    def _living_page(self, profile: HostProfile, request: Request, page: int, now: float) -> Answer:
        world, columns = self.world, self.world.pages
        version, changed = world.version_and_time(page, now)
        redesigns = world.redesigns(columns.host[page])
        design = redesigns.count(now - world.epoch)
        born, noisy = world.epoch + columns.born[page], columns.noise[page] != 0
        modified = max(changed, world.epoch + (redesigns.last(now - world.epoch) or 0.0)) if design else changed
        sent = validators(profile, Shown(page, version, design, born, modified, noisy), now)
        headers = sent.lines()
        if profile.max_age_s is not None:
            headers += b"Cache-Control: max-age=%d\r\n" % profile.max_age_s
        if is_not_modified(request, sent):
            return Answer(304, headers=headers)
        moment = Moment(page, now, columns.clicks[page], born, changed)
        return Answer(200, page_html(world, page, version, moment, design), headers=headers)

    def _lists(self, profile: HostProfile, host: int, request: Request, now: float) -> Answer:
        world, path = self.world, request.path
        design = world.redesigns(host).count(now - world.epoch)
        if path == b"/":
            return Answer(200, home_html(world, host, now, design, _feed_link(profile)))
        if path == b"/index.html":
            return redirect(301, _origin(request) + b"/")
        if path in _SECTION_PATHS:
            number = request.query.removeprefix(b"page=")
            wanted = int(number) if number.isdigit() and len(number) < 8 else 1
            body = section_html(world, host, _SECTION_PATHS[path], now, wanted)
            return _missing(profile, was_there=False) if body is None else Answer(200, body)
        if path.startswith(b"/go/") and path[4:].isdigit() and len(path) < 14 and int(path[4:]) < len(world):
            return redirect(302, self._location(int(path[4:]), request, now))
        found = find_article(world, host, path, now)
        if found is None or now >= found.gone:
            return _missing(profile, was_there=found is not None)
        return Answer(200, article_html(world, host, found.number, design))

    def _location(self, page: int, request: Request, now: float) -> bytes:
        host, path = self.world.address(page, now)
        return b"http://%b%b%b" % (self.world.hosts[host].name.encode(), request.port, path)


def _origin(request: Request) -> bytes:
    return b"http://%b%b" % (request.host, request.port)


def _feed_link(profile: HostProfile) -> bytes:
    if profile.feed == "none":
        return b""
    return b'<link rel=alternate type="%b" href="%b">' % (FEED_TYPES[profile.feed], FEED_PATHS[profile.feed])


def _trouble(profile: HostProfile, end: float, now: float) -> Answer:
    wait_s = int(end - now) + 1
    if profile.trouble == "too-many":
        return Answer(429, b"too many requests\n", _TEXT, b"Retry-After: %d\r\n" % wait_s)
    return Answer(503, b"back soon\n", _TEXT, b"Retry-After: %b\r\n" % http_date(int(now) + wait_s))


def _missing(profile: HostProfile, *, was_there: bool) -> Answer:
    if profile.gone == "soft":
        return _SOFT
    if was_there and profile.gone == "gone":
        return _GONE
    if was_there and profile.gone == "home":
        return redirect(302, b"/")
    return _NOT_FOUND
