"""Content codings undone within bounds: whole streams, broken streams, bombs."""

from __future__ import annotations

import gzip
import random
import resource
import subprocess
import sys
import textwrap
import zlib
from collections.abc import Callable, Iterator
from functools import partial

import brotli  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patience import PATIENCE_S
from recrawl.lab.livingweb.hostile import BOMBS, MIB, gzip_again, raw_deflate_bomb, zstd_wide_window
from recrawl.web.fetch.decoding import BodyDecoder, DecodingFault, DecodingLimits, body_decoder

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def _raw_deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return stream.compress(data) + stream.flush()


ENCODERS: dict[str, tuple[bytes, Callable[[bytes], bytes]]] = {
    "gzip": (b"gzip", gzip.compress),
    "x-gzip": (b"X-GZIP", gzip.compress),
    "deflate": (b"deflate", zlib.compress),
    "raw deflate": (b"Deflate", _raw_deflate),
    "br": (b"br", partial(brotli.compress, quality=4)),
    "zstd": (b"zstd", zstd.compress),
    "identity": (b"identity", bytes),
    "none": (b"", bytes),
}
SMALL = DecodingLimits(most_bytes=MIB)


def _pieces(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def _decoder(encoding: bytes, limits: DecodingLimits = SMALL) -> BodyDecoder:
    decoder = body_decoder(encoding, limits)
    assert isinstance(decoder, BodyDecoder), decoder
    return decoder


def _decode(encoding: bytes, wire: bytes, *, size: int = 1000, limits: DecodingLimits = SMALL) -> bytes | DecodingFault:
    decoder = _decoder(encoding, limits)
    for piece in _pieces(wire, size):
        decoder.feed(piece)
    fault = decoder.finish()
    assert decoder.decoded_bytes == len(decoder.body()) <= limits.most_bytes
    return fault if fault is not None else decoder.body()


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_whole_stream_is_decoded_however_it_is_cut(name: str, size: int) -> None:
    encoding, encode = ENCODERS[name]
    text = b"<p>hello, world</p>" * 40
    assert _decode(encoding, encode(text), size=size) == text


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("size", [65_536, 1 << 20])
def test_a_body_larger_than_any_buffer_loses_nothing(name: str, size: int) -> None:
    """Libraries that hold back output after they took in all input must be asked again."""
    encoding, encode = ENCODERS[name]
    text = random.Random(1).randbytes(200_000) + bytes(500_000) + b"the end"
    assert _decode(encoding, encode(text), size=size) == text


@pytest.mark.parametrize("name", ENCODERS)
@given(data=st.binary(max_size=300), size=st.integers(1, 400))
@settings(max_examples=25, deadline=None)
def test_what_was_encoded_is_decoded(name: str, data: bytes, size: int) -> None:
    encoding, encode = ENCODERS[name]
    assert _decode(encoding, encode(data), size=size) == data


@pytest.mark.parametrize("encoding", [b"gzip", b"deflate", b"br", b"zstd", b"gzip, br", b"zstd, deflate"])
@given(data=st.binary(max_size=400), size=st.integers(1, 400))
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_text_or_a_fault_however_they_are_cut(encoding: bytes, data: bytes, size: int) -> None:
    cut, whole = _decode(encoding, data, size=size), _decode(encoding, data, size=max(len(data), 1))
    if isinstance(whole, DecodingFault):
        assert isinstance(cut, DecodingFault) or b"br" in encoding  # its library minds bytes after the end in one piece
    else:
        assert cut == whole


@pytest.mark.parametrize("name", ["gzip", "deflate", "raw deflate", "br", "zstd"])
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_real_stream_with_one_byte_altered_is_a_fault_or_other_text_but_never_an_error(
    name: str, data: st.DataObject
) -> None:
    encoding, encode = ENCODERS[name]
    wire = bytearray(encode(b"hello" * 50))
    wire[data.draw(st.integers(0, len(wire) - 1))] ^= data.draw(st.integers(1, 255))
    assert isinstance(_decode(encoding, bytes(wire)), bytes | DecodingFault)


@pytest.mark.parametrize("name", ["gzip", "deflate", "raw deflate", "br", "zstd"])
@pytest.mark.parametrize("missing", [1, 5])
def test_a_stream_that_ends_early_is_truncated_even_if_all_text_came(name: str, missing: int) -> None:
    encoding, encode = ENCODERS[name]
    fault = _decode(encoding, encode(bytes(range(256)) * 20)[:-missing])
    assert isinstance(fault, DecodingFault)
    assert fault.problem == "truncated"


@pytest.mark.parametrize("encoding", [b"gzip", b"deflate", b"br", b"zstd"])
def test_what_is_not_in_the_coding_at_all_is_garbage(encoding: bytes) -> None:
    fault = _decode(encoding, b"<!doctype html><p>this is plain text, whatever the header says")
    assert isinstance(fault, DecodingFault)
    assert fault.problem == "garbage"


@pytest.mark.parametrize("encoding", [b"gzip", b"deflate", b"br", b"zstd"])
def test_an_empty_body_is_whole_whatever_its_coding(encoding: bytes) -> None:
    assert _decode(encoding, b"") == b""


@pytest.mark.parametrize("encoding", [b"gzip", b"zstd"])
def test_several_members_are_read_and_what_follows_them_is_ignored(encoding: bytes) -> None:
    encode = ENCODERS[encoding.decode()][1]
    wire = encode(b"one ") + encode(b"two") + b"padding" * 100
    for size in (1, 3, 1000):
        assert _decode(encoding, wire, size=size) == b"one two"


@pytest.mark.parametrize("encoding", [b"gzip", b"zstd"])
def test_a_stream_of_empty_members_without_end_is_refused(encoding: bytes) -> None:
    """Each member costs time and yields nothing."""
    fault = _decode(encoding, ENCODERS[encoding.decode()][1](b"") * 2000)
    assert isinstance(fault, DecodingFault)
    assert "more than 256" in fault.reason


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_cut_at_the_cap(name: str) -> None:
    decoder = _decoder(name.encode())
    fault = decoder.feed(BOMBS[name](16))
    assert fault is not None
    assert fault.is_cut
    assert len(decoder.body()) <= MIB
    assert decoder.feed(b"more") is fault  # and takes no more


def test_a_bare_deflate_bomb_is_cut_at_the_cap() -> None:
    fault = _decode(b"deflate", raw_deflate_bomb(16), size=1 << 20)
    assert isinstance(fault, DecodingFault)
    assert fault.is_cut


def test_a_body_under_the_cap_that_grows_too_fast_is_cut() -> None:
    limits = DecodingLimits(most_bytes=64 * MIB)
    fault = _decode(b"gzip", BOMBS["gzip"](8), limits=limits, size=1 << 20)
    assert isinstance(fault, DecodingFault)
    assert fault.problem == "ratio"


def test_a_dull_page_of_less_than_a_mebibyte_may_be_packed_as_tightly_as_it_likes() -> None:
    assert _decode(b"br", brotli.compress(b"a" * 900_000)) == b"a" * 900_000


def test_a_bomb_in_a_bomb_is_cut_without_being_unfolded() -> None:
    inner = gzip_again(bytes(4 * MIB), 2)
    assert len(inner) < 300
    fault = _decode(b"gzip, gzip", inner)
    assert isinstance(fault, DecodingFault)
    assert fault.is_cut


def test_a_window_of_two_gibibytes_is_refused() -> None:
    fault = _decode(b"zstd", zstd_wide_window())
    assert isinstance(fault, DecodingFault)
    assert fault.problem == "garbage"


@pytest.mark.parametrize(
    ("encoding", "problem"),
    [
        (b"gzip, gzip, gzip", "too-many-codings"),
        (b"br,gzip,deflate,zstd", "too-many-codings"),
        (b"gzip," * 1000, "too-many-codings"),
        (b"compress", "unknown-coding"),
        (b"gzip\x00", "unknown-coding"),
        (b"\xff\xfe", "unknown-coding"),
        (b"gzip;q=1", "unknown-coding"),
        (b"os.system", "unknown-coding"),
    ],
)
def test_codings_that_are_unknown_or_too_many_are_refused_before_a_byte_is_read(encoding: bytes, problem: str) -> None:
    fault = body_decoder(encoding)
    assert isinstance(fault, DecodingFault)
    assert fault.problem == problem


def test_two_codings_are_undone_last_one_first() -> None:
    assert _decode(b"gzip, identity, br", brotli.compress(gzip.compress(b"twice"))) == b"twice"


def test_a_plain_body_is_cut_at_the_cap() -> None:
    fault = _decode(b"", bytes(MIB + 1), size=65_536)
    assert isinstance(fault, DecodingFault)
    assert fault.problem == "too-large"
    assert _decode(b"", bytes(MIB), size=65_536) == bytes(MIB)


def test_a_wire_that_carries_nothing_is_cut_too() -> None:
    """Empty deflate blocks decode to no byte at all, for ever."""
    decoder = _decoder(b"deflate", DecodingLimits(most_bytes=10_000))
    empty_blocks = b"\x00\x00\x00\xff\xff" * 1000
    faults = [decoder.feed(empty_blocks) for _ in range(50)]
    assert faults[-1] is not None
    assert faults[-1].problem == "too-large"


def test_memory_stays_within_three_caps_for_every_bomb() -> None:
    """In a process of its own, whose memory is limited to what it has plus three times the cap."""
    code = """
        import resource, sys
        from recrawl.lab.livingweb.hostile import BOMBS
        from recrawl.web.fetch.decoding import DecodingLimits, body_decoder
        cap = 8 << 20
        bombs = {name: make(64) for name, make in BOMBS.items()}
        pages = int(open("/proc/self/statm").read().split()[0])
        most = pages * resource.getpagesize() + 3 * cap
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        for name, bomb in bombs.items():
            decoder = body_decoder(name.encode(), DecodingLimits(most_bytes=cap, most_expansion=1e6))
            fault = decoder.feed(bomb)
            assert fault is not None and fault.problem == "too-large", (name, fault)
            assert len(decoder.body()) == cap
            del decoder
        print("held")
    """
    if sys.platform != "linux":  # pragma: no cover
        pytest.skip("the limit on memory is a Linux one")
    assert resource.getpagesize() > 0
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.stdout.strip() == "held", done.stderr
