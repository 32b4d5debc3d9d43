"""Parsers of imports: what they understand, and that no bytes make them fail."""

from __future__ import annotations

import gzip
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import InvalidInput
from recrawl.tracker.importers.formats import FORMATS, chosen_format, tell_format
from recrawl.tracker.importers.rows import LONGEST_DOCUMENT_BYTES, LONGEST_LINE, BadRow, GoodRow, Hints, Item

HINTS = Hints(frozenset({"shop", "news"}), now=1.8e9)


def read(form: str, content: bytes) -> list[Item]:
    return list(FORMATS[form].read(io.BytesIO(content), HINTS))


def urls(items: list[Item]) -> list[str]:
    return [item.wanted.url for item in items if isinstance(item, GoodRow)]


def refused(items: list[Item]) -> dict[int, str]:
    return {item.row: item.reason for item in items if isinstance(item, BadRow)}


class TestList:
    def test_lines_are_addresses_and_comments_are_not(self) -> None:
        items = read("list", b"\xef\xbb\xbf# mine\r\nhttps://a.example/\r\n\r\n  https://b.example/x  \r\n")
        assert urls(items) == ["https://a.example/", "https://b.example/x"]
        assert [item.row for item in items] == [2, 4]

    @pytest.mark.parametrize("codec", ["utf-16", "utf-8-sig"])
    def test_a_mark_says_the_encoding(self, codec: str) -> None:
        assert urls(read("list", "https://a.example/ä\nhttps://b.example/\n".encode(codec))) == [
            "https://a.example/ä",
            "https://b.example/",
        ]

    def test_a_line_that_is_too_long_is_refused_and_the_next_is_read(self) -> None:
        items = read("list", b"x" * (3 * LONGEST_LINE) + b"\nhttps://a.example/\n")
        assert urls(items) == ["https://a.example/"]
        assert list(refused(items)) == [1]


class TestCsv:
    def test_all_columns_in_any_order(self) -> None:
        content = b"group,url,note,importance,max_interval,min_interval\nshop,https://a.example/,x,2.5,6h,90s\n"
        (item,) = read("csv", content)
        assert isinstance(item, GoodRow)
        wanted = item.wanted
        assert (wanted.url, wanted.group, wanted.importance) == ("https://a.example/", "shop", 2.5)
        assert (wanted.min_interval_s, wanted.max_interval_s) == (90.0, 21_600.0)
        assert item.row == 1

    @pytest.mark.parametrize(
        ("header", "says"),
        [
            (b"", "no line of column names"),
            (b"https://a.example/\n", "no column url"),
            (b"url;importance\na;1\n", "semicolons"),
            (b"url,url\na,b\n", "two columns named url"),
            (b"url,importence\na,1\n", "did you mean importance"),
            ("url,importance\n".encode("utf-16-le"), "UTF-16"),
        ],
    )
    def test_names_that_cannot_be_understood_end_the_file(self, header: bytes, says: str) -> None:
        (item,) = read("csv", header)
        assert isinstance(item, BadRow)
        assert item.row == 0
        assert says in item.reason

    @pytest.mark.parametrize(
        ("row", "says"),
        [
            (b"https://a.example/", "1 fields"),
            (b"https://a.example/,1,2", "3 fields"),
            (b"https://a.example/,1_0", "importance"),
            ("https://a.example/,٣".encode(), "importance"),
            (b'https://a.example/,"1,5"', "importance"),
            (b"https://a.example/,-1", "importance"),
            (b"https://a.example/,nan", "importance"),
            (b"https://a.example/,1e400", "importance"),
            (b",1", "no url"),
            (b"x" * 200_000 + b",1", "field larger"),
            (b"https://a.example/\0,1", "url"),
        ],
    )
    def test_a_bad_row_is_named_and_the_others_are_read(self, row: bytes, says: str) -> None:
        items = read("csv", b"url,importance\nhttps://first.example/,1\n" + row + b"\nhttps://last.example/,2\n")
        assert urls(items) == ["https://first.example/", "https://last.example/"]
        assert list(refused(items)) == [2]
        assert says in refused(items)[2]

    def test_an_open_quote_costs_no_more_than_a_long_field(self) -> None:
        rows = b"".join(b"https://a.example/%d,1\n" % n for n in range(20_000))
        items = read("csv", b'url,importance\n"https://open.example/,1\n' + rows)
        assert len(urls(items)) > 10_000
        assert refused(items)

    def test_tabs_are_understood(self) -> None:
        assert urls(read("csv", b"url\timportance\nhttps://a.example/\t2\n")) == ["https://a.example/"]


class TestOpml:
    def test_nested_outlines_with_their_folders(self) -> None:
        content = b"""<?xml version="1.0"?><opml version="2.0"><head><title>t</title></head><body>
          <outline text="news"><outline text="deep"><outline type="rss" xmlUrl="https://a.example/feed"/></outline></outline>
          <outline text="B" type="rss" xmlUrl="https://b.example/feed" htmlUrl="https://b.example/" category="/x,shop"/>
          <outline text="C" htmlUrl="https://c.example/"/><outline text="D" type="rss"/></body></opml>"""
        items = read("opml", content)
        assert urls(items) == ["https://a.example/feed", "https://b.example/feed", "https://c.example/"]
        assert [item.wanted.group for item in items if isinstance(item, GoodRow)] == ["news", "shop", None]
        assert refused(items) == {6: "has neither xmlUrl nor htmlUrl"}

    @pytest.mark.parametrize(
        "content",
        [
            b'<!DOCTYPE opml [<!ENTITY a "b">]><opml><body><outline xmlUrl="https://a.example/&a;"/></body></opml>',
            b"<html></html>",
            b"<opml>" + b"<outline>" * 1000,
            b'<opml><body><outline xmlUrl="https://a.example/"/>',
            b"",
        ],
    )
    def test_what_is_no_opml_is_a_sentence(self, content: bytes) -> None:
        items = read("opml", content)
        assert isinstance(items[-1], BadRow)
        assert items[-1].row == 0

    def test_what_came_before_the_break_is_kept(self) -> None:
        items = read("opml", b'<opml><body><outline xmlUrl="https://a.example/"/><outline')
        assert urls(items) == ["https://a.example/"]


class TestUrlwatch:
    def test_url_jobs_are_taken_and_others_refused_in_words(self) -> None:
        content = b"""name: "First"
url: https://a.example/
filter:
  - css: body
  - url: https://not.a.job.example/
---
command: rm -rf /
name: bad
---
navigate: https://b.example/
---
kind: url
url: "https://c.example/"
enabled: false
---
url: https://d.example/
data: {a: b}
---
name: nothing
"""
        items = read("urlwatch", content)
        assert urls(items) == ["https://a.example/", "https://c.example/"]
        assert [item.paused for item in items if isinstance(item, GoodRow)] == [False, True]
        reasons = refused(items)
        assert list(reasons) == [2, 3, 5, 6]
        assert "command" in reasons[2]
        assert "browser" in reasons[3]
        assert "sends data" in reasons[5]

    def test_nothing_is_constructed_and_nothing_grows(self) -> None:
        laughs = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
            b"%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n" % (n + 1, n + 1, *([n] * 9)) for n in range(97, 110)
        )
        assert urls(read("urlwatch", laughs + b"url: https://a.example/\n")) == ["https://a.example/"]
        assert urls(read("urlwatch", b"url: !!python/object/apply:os.system [id]\n")) == []
        assert urls(read("urlwatch", b"- url: https://a.example/\n- url: https://b.example/\n")) == [
            "https://a.example/",
            "https://b.example/",
        ]

    @pytest.mark.parametrize("content", [b"[" * 100_000, b"url: 'open", b"\xff\xfe\x00", b"a: b: c"])
    def test_what_is_no_yaml_is_a_sentence(self, content: bytes) -> None:
        items = read("urlwatch", content)
        assert isinstance(items[-1], BadRow)

    def test_jobs_before_the_break_are_kept(self) -> None:
        assert urls(read("urlwatch", b"url: https://a.example/\n---\nurl: 'open")) == ["https://a.example/"]


class TestChangedetection:
    def test_watches_with_tags_intervals_and_pauses(self) -> None:
        document = {
            "watching": {
                "1": {"url": "https://a.example/", "title": "A", "tags": ["t1"], "paused": True},
                "2": {"url": "https://b.example/", "tag": "other, shop", "time_between_check": {"hours": 3}},
                "3": {"url": "https://c.example/", "time_between_check": {"days": None, "hours": "x", "weeks": -1}},
                "4": {"url": "https://d.example/{{ date }}"},
                "5": {"url": "https://e.example/", "fetch_backend": "html_webdriver"},
                "6": {"title": "lost"},
                "7": {"url": "source:https://f.example/", "time_between_check": {"hours": 1},
                      "time_between_check_use_default": True},
            },
            "settings": {"application": {"tags": {"t1": {"title": "news"}}}},
        }  # fmt: skip
        items = read("changedetection", json.dumps(document).encode())
        found = [item for item in items if isinstance(item, GoodRow)]
        assert [item.wanted.url for item in found] == [
            "https://a.example/",
            "https://b.example/",
            "https://c.example/",
            "https://f.example/",
        ]
        assert [item.wanted.group for item in found] == ["news", "shop", None, None]
        assert [item.wanted.max_interval_s for item in found] == [None, 10_800.0, None, None]
        assert [item.paused for item in found] == [True, False, False, False]
        assert list(refused(items)) == [4, 5, 6]

    def test_an_answer_of_the_api(self) -> None:
        content = json.dumps({"uuid": {"url": "https://a.example/", "title": None}}).encode()
        assert urls(read("changedetection", content)) == ["https://a.example/"]

    @pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b"[1, 2]", b'{"a": 1}', b'"text"', b"\xff"])
    def test_what_has_no_watches_is_a_sentence(self, content: bytes) -> None:
        (item,) = read("changedetection", content)
        assert isinstance(item, BadRow)


class TestSitemap:
    PAGES = b"<urlset><url><loc>https://a.example/</loc></url><url><loc>ftp://b/</loc></url></urlset>"

    @pytest.mark.parametrize("content", [PAGES, gzip.compress(PAGES, mtime=0), b"https://a.example/\nftp://b/\n"])
    def test_pages_of_any_host(self, content: bytes) -> None:
        items = read("sitemap", content)
        assert urls(items) == ["https://a.example/"]
        assert "1 entries" in refused(items)[0]

    def test_an_index_must_be_named_by_its_address(self) -> None:
        items = read("sitemap", b"<sitemapindex><sitemap><loc>https://a.example/1.xml</loc></sitemap></sitemapindex>")
        assert urls(items) == []
        assert "import its address" in refused(items)[0]


class TestRegistry:
    @pytest.mark.parametrize(
        ("name", "start", "form"),
        [
            ("x", b"https://a.example/\n", "list"),
            ("x.txt", b"# url,\nhttps://a.example/", "list"),
            ("x.csv", b"anything", "csv"),
            ("x", b"importance,url\n1,https://a.example/", "csv"),
            ("x", "\ufeffurl,importance\n".encode("utf-16-le"), "csv"),
            ("x.xml", b"<?xml version='1.0'?><opml>", "opml"),
            ("x.opml", b"<!-- a comment -->", "opml"),
            ("x.xml", b"\xef\xbb\xbf<urlset>", "sitemap"),
            ("sitemap.xml.gz", b"\x1f\x8b\x08", "sitemap"),
            ("urls.yaml", b"anything: 1", "urlwatch"),
            ("urls", b"---\nurl: https://a.example/", "urlwatch"),
            ("urls", b"name: x\nurl: https://a.example/", "urlwatch"),
            ("url-watches.json", b'{"watching": {}}', "changedetection"),
        ],
    )
    def test_name_and_content_tell_the_format(self, name: str, start: bytes, form: str) -> None:
        assert tell_format(name, start) == form

    def test_an_unknown_format_is_refused(self) -> None:
        with pytest.raises(InvalidInput, match="--format is 'xls', but must be one of list, csv"):
            chosen_format("xls")


@pytest.mark.parametrize("form", FORMATS)
@given(content=st.binary(max_size=200) | st.text(alphabet='<>{}[]",:-\n urlopmxh/.0*&', max_size=200).map(str.encode))
def test_no_bytes_make_a_parser_fail(form: str, content: bytes) -> None:
    for item in read(form, content):
        assert item.row >= 0
        assert isinstance(item, (GoodRow, BadRow))


@pytest.mark.parametrize("form", ["opml", "urlwatch", "changedetection", "sitemap"])
def test_a_document_that_is_too_long_is_not_read(form: str) -> None:
    (item,) = read(form, b" " * (LONGEST_DOCUMENT_BYTES + 1))
    assert isinstance(item, BadRow)
    assert "longer than 32 MB" in item.reason
