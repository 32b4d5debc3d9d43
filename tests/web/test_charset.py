"""Encodings: by the labels of the standard and no others, and never an error."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st
from webencodings import LABELS

from recrawl.web.content.charset import Charset, as_utf8, codec_of, encoding_of_label, read_charset


@pytest.mark.parametrize(
    ("body", "header", "name"),
    [
        (b"\xef\xbb\xbfhi", "text/html; charset=latin1", "utf-8"),
        (b"\xff\xfeh\0i\0", None, "utf-16le"),
        (b"\xfe\xff\0h\0i", "text/html", "utf-16be"),
        (b"<meta charset=koi8-r>", 'text/html; charset="Shift_JIS"', "shift_jis"),
        (b"<meta charset=koi8-r>", "text/html;charset=utf-7", "koi8-r"),
        (b"<meta charset=koi8-r>", "text/html; Charset = 'GB2312'", "gbk"),
        (b"<META http-equiv='content-type' content='text/html; charset=euc-kr'>", None, "euc-kr"),
        (b"<!-- <meta charset=koi8-r> --><meta charset=big5>", None, "big5"),
        (b"<meta charset=nonsense><meta charset=big5>", None, "big5"),
        (b"<meta name=description content='Set charset=latin1 in MySQL'><meta charset=big5>", None, "big5"),
        (b"<meta name=x data-charset=koi8-r><meta charset=big5>", None, "big5"),
        (b"<meta name=x data-charset=koi8-r>\xe9", None, "windows-1252"),
        (b"<meta content='text/html; charset=koi8-r'>\xe9", None, "windows-1252"),
        (b"<meta content='text/html; charset=koi8-r' http-equiv=Content-Type>", None, "koi8-r"),
        (b"<meta http-equiv=content-type content='charset koi8-r; charset = \"big5\"'>", None, "big5"),
        (b"<meta http-equiv=refresh content='0; url=/?charset=koi8-r'><meta charset=big5>", None, "big5"),
        (b"<meta charset=big5 charset=koi8-r>", None, "big5"),
        (b"<meta/charset='big5'/>", None, "big5"),
        (b'<meta\nCharset =\t" big5 ">', None, "big5"),
        (b"<metadata charset=koi8-r><meta charset=big5>", None, "big5"),
        (b"<script>var a='<meta charset=koi8-r>'</script><meta charset=big5>", None, "big5"),
        (b"<SCRIPT src=a>'</scripts><meta charset=koi8-r>'</Script ><meta charset=big5>", None, "big5"),
        (b"<title>How to use <meta charset=koi8-r></title><meta charset=big5>", None, "big5"),
        (b"<style><!-- </style><meta charset=big5>", None, "big5"),
        (b"<!--><meta charset=big5>-->", None, "big5"),
        (b"<!-- <meta charset=koi8-r>\xe9", None, "windows-1252"),
        (b"<a title='<meta charset=koi8-r>'><meta charset=big5>", None, "big5"),
        (b"<p title=don't><meta charset=big5>", None, "big5"),
        (b"<meta name=a content='" + b"x" * 990 + b" charset=koi8-r later>'>\xe9", None, "windows-1252"),
        (b"<meta charset=koi8-r\xe9", None, "windows-1252"),
        (b"<meta charset=utf-16>", None, "utf-8"),
        (b"<meta charset=x-user-defined>", None, "windows-1252"),
        (b"<?xml version='1.0' encoding='iso-8859-2'?>", None, "iso-8859-2"),
        (b" " * 1024 + b"<meta charset=koi8-r>\xe9", None, "windows-1252"),
        ("é".encode(), None, "utf-8"),
        (b"\xe9", None, "windows-1252"),
        (b"", None, "utf-8"),
    ],
)
def test_the_first_of_mark_header_and_markup_decides(body: bytes, header: str | None, name: str) -> None:
    assert read_charset(body, header).name == name


@pytest.mark.parametrize(
    "label", ["utf-7", "unicode_escape", "punycode", "idna", "zlib", "rot13", "hex", "u\0tf-8", "x" * 1000, "", "cp037"]
)
def test_names_that_python_would_decode_by_are_unknown_labels(label: str) -> None:
    assert encoding_of_label(label) is None
    assert read_charset(b"\xe9", f"text/html; charset={label}").name == "windows-1252"


def test_every_label_of_the_standard_has_a_codec() -> None:
    assert all(codecs.lookup(codec_of(name)) for name in LABELS.values() if name != "replacement")
    assert len(LABELS) == 228
    assert {LABELS[label] for label in ("ascii", "latin1", "iso-8859-1")} == {"windows-1252"}


def test_text_of_many_encodings_comes_out_as_utf8() -> None:
    for name, word in (("shift_jis", "日本語"), ("windows-1251", "Привет"), ("gbk", "汉字"), ("euc-kr", "한글")):
        assert as_utf8(word.encode(codec_of(name)), Charset(name)).decode() == word
    assert as_utf8(b"\x1b$)C", Charset("replacement")).decode() == "\ufffd"


_MARKS = (
    b"<meta ",
    b"<!--",
    b"-->",
    b"<script>",
    b"</script>",
    b"charset",
    b"content",
    b"=",
    b"'",
    b'"',
    b"<",
    b">",
    b"/",
)


@given(st.lists(st.sampled_from(_MARKS), max_size=60))
def test_no_heap_of_broken_markup_is_an_error(marks: list[bytes]) -> None:
    assert read_charset(b"".join(marks)).name == "utf-8"


@given(st.binary(max_size=200), st.sampled_from(sorted(set(LABELS.values()))))
def test_any_bytes_in_any_encoding_give_valid_utf8(body: bytes, name: str) -> None:
    """Bytes that are no text of the encoding become U+FFFD, and leave what stands before them as it is."""
    for charset in (Charset(name), read_charset(body)):
        text = as_utf8(body, charset).decode("utf-8")
        assert len(text) <= len(body) + 1
    if name != "replacement":
        before = "plain words, ".encode(codec_of(name))
        assert as_utf8(before + body, Charset(name)).decode("utf-8").startswith("plain words, ")
