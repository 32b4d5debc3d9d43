"""Hits from access logs and tables: what counts is read, everything else is counted, and nothing is fatal."""

from __future__ import annotations

import gzip
import io
import random
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.errors import InvalidInput
from recrawl.lab.livingweb.hostile import gzip_bomb
from recrawl.tracker.signals import access_log
from recrawl.tracker.signals.access_log import Hit, LogCounts, LogRules, read_time, site_of
from recrawl.tracker.signals.hits_file import read_hits
from recrawl.tracker.signals.log_lines import LONGEST_LINE, LineReport, line_blocks

NOW = 1_800_000_000.0
AT = 971_211_336.0
SITE = LogRules(NOW, site_of("https://a.example"))
TIME = "10/Oct/2000:13:55:36 -0700"
AGENT = '"https://b.example/" "Mozilla/5.0 (X11; Linux x86_64)"'


def line(request: str = "GET /x HTTP/1.1", status: int | str = 200, **parts: str) -> str:
    before, time, after = parts.get("before", "192.0.2.7 - -"), parts.get("time", TIME), parts.get("after", AGENT)
    return f'{before} [{time}] "{request}" {status} 512 {after}'.rstrip()


def read(text: str | bytes, rules: LogRules = SITE) -> tuple[list[Hit], LogCounts]:
    counts = LogCounts()
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    return list(read_hits(io.BytesIO(data), rules, counts)), counts


def urls(text: str | bytes, rules: LogRules = SITE) -> list[str]:
    return [hit.url for hit in read(text, rules)[0]]


@pytest.mark.parametrize(
    "text",
    [
        line(),
        line(after=""),
        line(request="GET /x HTTP/1.0"),
        line(request="GET /x HTTP/2.0"),
        line(request="GET /x"),
        line(status=304),
        line(status=206),
        line(before="2001:db8::1 - -"),
        line(before="client.example.net - ann"),
        line(before="192.0.2.7 - Ann Lee Smith"),
        line(request="GET http://a.example/x HTTP/1.1").replace("http://a", "https://a"),
        line(before="a.example:443 192.0.2.7 - -"),
        line(before="a.example:443 2001:db8::1 - ann"),
        line(request="GET /x?utm_source=mail HTTP/1.1"),
        line(after=AGENT + " 0.004 upstream"),
        line(after=r'"-" "say \"hello\" \\"'),
        line(after=""" "-" "it's" """.strip()),
        line(time="10/Oct/2000:20:55:36 +0000"),
        line(time="11/Oct/2000:02:25:36 +0530"),
        line(time="10/oct/2000:20:55:36"),
        line(time="10/Oct/2000:20:55:36.123 Z"),
        line(time="2000-10-10T22:55:36+02:00"),
        line(time="971211336.250"),
        line(after='"-" "Mozilla/5.0 (Linux; Android 9; CUBOT_X19)"'),
        line() + "\r",
        "\n\n" + line(),
    ],
)
def test_a_hit_is_read_in_every_usual_spelling(text: str) -> None:
    hits, counts = read(text + "\n")
    assert [(hit.url, int(hit.at), hit.hits) for hit in hits] == [("https://a.example/x", int(AT), 1.0)]
    assert (counts.lines, counts.hits, counts.refused, counts.skipped) == (1, 1.0, {}, {})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (line("POST /x HTTP/1.1"), "method"),
        (line("HEAD /x HTTP/1.1"), "method"),
        (line("OPTIONS * HTTP/1.0"), "method"),
        (line(status=404), "status"),
        (line(status=301), "status"),
        (line(status=500), "status"),
        (line(after='"-" "Googlebot/2.1 (+http://www.google.com/bot.html)"'), "robot"),
        (line(after='"-" "Mozilla/5.0 (compatible; bingbot/2.0)"'), "robot"),
        (line(after='"-" "curl/8.5.0"'), "robot"),
        (line(after='"-" "recrawl/1.0 (+https://me.example)"'), "robot"),
    ],
)
def test_what_is_no_hit_of_a_reader_is_skipped_by_what_it_is(text: str, reason: str) -> None:
    hits, counts = read(text)
    assert hits == []
    assert (counts.lines, counts.skipped, counts.refused) == (1, {reason: 1}, {})


def test_robots_count_where_they_are_asked_for() -> None:
    robot = line(after='"-" "curl/8.5.0"')
    assert urls(robot, LogRules(NOW, SITE.site, skip_robots=False)) == ["https://a.example/x"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("complete nonsense", "malformed"),
        ("\0" * 100, "malformed"),
        (line().split('"')[0], "malformed"),
        (line()[:60], "malformed"),
        (line(status="20x"), "malformed"),
        (line(status="2000"), "malformed"),
        (line(r"\x16\x03\x01\x02"), "request"),
        (line("-"), "request"),
        (line(""), "request"),
        (line("GET  HTTP/1.1"), "request"),
        (line("GET x HTTP/1.1"), "request"),
        (line("GET ftp://a.example/ HTTP/1.1"), "address-scheme"),
        (line("GET /%00 HTTP/1.1"), "address-encoded-nul"),
        (line("GET /" + "a" * 5000), "address-too-long"),
        (line("GET /\udcff\udcfe HTTP/1.1"), "address-half-character"),
        (line(r"GET /a\x5cb HTTP/1.1"), "address-backslash"),
        (line(time="99/Oct/2000:13:55:36 -0700"), "time"),
        (line(time="31/Feb/2000:13:55:36 -0700"), "time"),
        (line(time="10/Foo/2000:13:55:36 -0700"), "time"),
        (line(time="10/Oct/2000:25:55:36 -0700"), "time"),
        (line(time="10/Oct/0000:13:55:36 -0700"), "time"),
        (line(time="10/Oct/1980:13:55:36 -0700"), "time"),
        (line(time="10/Oct/2999:13:55:36 -0700"), "time"),
        (line(time="yesterday"), "time"),
        (line(before="_ 192.0.2.7 - -"), "address-local-name"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_reason_and_the_next_line_is_read(text: str, reason: str) -> None:
    hits, counts = read(f"{line()}\n{text}\n{line()}\n")
    assert len(hits) == 2
    assert (counts.lines, dict(counts.refused)) == (3, {reason: 1})


def test_a_path_without_a_site_is_refused_unless_the_line_names_its_host() -> None:
    rules = LogRules(NOW)
    hits, counts = read(line() + "\n" + line(before="b.example:80 192.0.2.7 - -"), rules)
    assert [hit.url for hit in hits] == ["http://b.example/x"]
    assert counts.refused == {"no-site": 1}
    assert urls(line(before="b.example:8080 ::1 - -"), rules) == ["http://b.example:8080/x"]


def test_escaped_quotes_do_not_end_a_request() -> None:
    assert urls(line(r"GET /a?q=\"b\" HTTP/1.1")) == ["https://a.example/a?q=%22b%22"]
    assert urls(line(r"GET /a?q=\x22b\x22 HTTP/1.1")) == ["https://a.example/a?q=%22b%22"]


def test_a_table_gives_hits_by_its_columns_in_any_order() -> None:
    table = (
        "\ufeffTime;Who;URL;Hits\r\n971211336;x;/x;3\r\n2000-10-10;x;https://b.example/;\r\n"
        '971211336000;"a;b";"/y";2.5\r\nTue, 10 Oct 2000 20:55:36 GMT;;/z;0\r\n'
    )
    hits, counts = read(table)
    assert hits == [
        Hit("https://a.example/x", AT, 3.0),
        Hit("https://b.example/", 971_136_000.0, 1.0),
        Hit("https://a.example/y", AT, 2.5),
        Hit("https://a.example/z", AT, 0.0),
    ]
    assert (counts.lines, counts.hits, counts.refused) == (4, 6.5, {})


def test_rows_of_a_table_that_cannot_be_used_are_counted() -> None:
    rows = ["/x,971211336,1", "/x,971211336", "/x,soon,1", "/x,971211336,-1", "/x,971211336,nan", "/x,971211336,1e300",
            '/x,"971211336,1', "mailto:a,971211336,1", ",971211336,1", "", "/x,971211336,1_0", "\0,\0,\0"]  # fmt: skip
    hits, counts = read("path,timestamp,count\n" + "\n".join(rows))
    assert len(hits) == 1
    assert dict(counts.refused) == {"malformed": 2, "time": 2, "hits": 4, "request": 2}
    assert counts.lines == 11


def test_gzipped_logs_of_several_members_are_read_and_padding_is_none() -> None:
    data = gzip.compress((line() + "\n").encode()) * 3 + b"\0" * 100
    assert len(urls(data)) == 3
    assert read(data)[1].problem is None


def test_a_gzip_file_that_breaks_off_gives_what_came_before() -> None:
    many = "".join(f"{line(f'GET /{number} HTTP/1.1')}\n" for number in range(2000)).encode()
    packed = gzip.compress(many)
    hits, counts = read(packed[: len(packed) // 2])
    assert 0 < len(hits) < 2000
    assert counts.problem == "the gzip file is cut off"
    hits, counts = read(packed + b"garbage")
    assert len(hits) == 2000
    assert counts.problem is not None


def test_a_file_that_unpacks_without_end_is_given_up_in_bounded_memory() -> None:
    bombs = [gzip_bomb(200), gzip.compress(b"x\n" * 2_000_000, 1)]
    for bomb in bombs:
        hits, counts = read(bomb)
        assert hits == []
        assert counts.problem is not None
        assert "in a row" in counts.problem
        assert counts.report.read_bytes < 65 << 20
    tracemalloc.start()
    read(bombs[0])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20


def test_lines_that_are_too_long_are_counted_and_never_held() -> None:
    long = "GET /" + "a" * 2_000_000
    hits, counts = read(f"{line()}\n{long}\n{line()}\n{long[: LONGEST_LINE + 1]}\n{line()}\n{long}")
    assert len(hits) == 3
    assert (counts.refused, counts.lines) == ({"too-long": 3}, 6)


def test_a_line_of_nested_baits_takes_no_time() -> None:
    """Patterns that try again and again would take minutes here."""
    baits = [
        "[a] " * 4000,
        '"' * 16_000,
        "[" * 16_000,
        '[a] "' + "\\" * 16_000,
        '[a] "GET ' + '\\" ' * 5000,
        " " * 16_000 + "[",
    ]
    _, counts = read("\n".join(baits * 20))
    assert counts.refused.total() == 20 * len(baits)


class Trickle(io.RawIOBase):
    """A stream that gives a few bytes at a time."""

    def __init__(self, data: bytes, sizes: Iterator[int]) -> None:
        self._data, self._sizes = io.BytesIO(data), sizes

    def read(self, size: int = -1) -> bytes:
        return self._data.read(min(size, next(self._sizes)))


@pytest.mark.parametrize("packed", [False, True])
def test_lines_are_the_same_however_the_bytes_come(packed: bool) -> None:
    text = b"\n".join(b"line %d" % number + b"x" * (number % 50) for number in range(300)) + b"\n\nlast"
    data = gzip.compress(text[:999]) + gzip.compress(text[999:]) if packed else text
    sizes = random.Random(2)
    stream = Trickle(data, iter(lambda: sizes.randint(1, 40), 0))
    found = [each for block in line_blocks(stream, LineReport()) for each in block]  # type: ignore[arg-type]
    assert found == text.split(b"\n")


def test_what_is_remembered_of_lines_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_log, "_MOST_KEPT", 64)
    targets, times, robots = access_log.Targets(SITE), access_log._Times(NOW), access_log._Robots()
    for number in range(1000):
        assert targets.url(b"/%d" % number, None, LogCounts()) == f"https://a.example/{number}"
        assert times.at(b"%d" % (971_211_336 + number)) == AT + number
        assert not robots.is_one(b' "-" "reader %d"' % number)
    assert len(targets._known) <= 64
    assert len(times._known) <= 64
    assert len(robots._known) <= 64


@pytest.mark.parametrize("text", ["", "a b", "http://", "https://a.example/path", "user@a.example", "localhost"])
def test_a_site_that_cannot_be_one_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInput, match="--host"):
        site_of(text, "--host")


def test_empty_files_hold_nothing() -> None:
    for data in (b"", b"\n" * 1_000_000, b"\xef\xbb\xbf", gzip.compress(b""), b"\x1f\x8b", b"url,time\n"):
        hits, counts = read(data)
        assert hits == []
        assert counts.hits == 0


def test_times_are_read_as_logs_write_them() -> None:
    assert read_time("29/Feb/2024:23:59:60 +0000") == 1_709_251_199.0
    assert read_time("01/Jan/1970:00:00:00 +0000") == 0.0
    assert [read_time(text) for text in ("", "x" * 1000, "99999999999999999", "10/Oct/2000", "1e9")] == [None] * 5


scraps = st.sampled_from(
    [b"1.2.3.4", b" - ", b"- ", b"[", b"]", b'"', b"\\", b"\\x4", b"GET ", b"/x", b" HTTP/1.1", b" 200 ", b"12", b"\n",
     b"\0", b"\xff", b"\r", TIME.encode(), b"url,time\n", b",", b"\xef\xbb\xbf", b"\x1f\x8b", line().encode() + b"\n"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(scraps, max_size=14).map(b"".join) | st.binary(max_size=80), st.booleans())
def test_no_bytes_raise_and_every_line_is_accounted_for(data: bytes, packed: bool) -> None:
    hits, counts = read(gzip.compress(data) if packed else data)
    assert counts.lines == len(hits) + counts.skipped.total() + counts.refused.total()
    assert counts.hits == len(hits)
