"""Words, against slow and obvious twins."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.web.content.words import split_words, tidy_text

SPACES = "".join(map(chr, [*range(0x21), *range(0x7F, 0xA1), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF]))
SPACES += "".join(map(chr, range(0x2000, 0x200C)))
MASK = (1 << 64) - 1


def slow_tidy(text: str) -> str:
    lines = "".join(" " if each in SPACES and each != "\x1e" else each for each in text).split("\x1e")
    return "\n".join(" ".join(line.split(" ")).strip() for line in (" ".join(x.split()) for x in lines) if line)


def slow_words(tidied: str) -> list[str]:
    words: list[str] = []
    for run in tidied.split():
        word = ""
        for each in run:
            if 0x3000 <= ord(each) < 0xE000 or 0x10000 <= ord(each) < 0x40000:
                words += [word] * bool(word) + [each]
                word = ""
            else:
                word += each
        words += [word] * bool(word)
    return words


def slow_mixed(value: int) -> int:
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def slow_hash(word: str) -> int:
    value = 0xCBF29CE484222325
    for byte in word.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return slow_mixed(value)


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("abc.é漢字한😀\u00a0\u2003\u3000\u200b \n\t\0\x1e"), max_size=60))
def test_the_compiled_pass_agrees_with_the_slow_one(text: str) -> None:
    tidied = tidy_text(text.encode())
    assert tidied.decode() == slow_tidy(text)
    words = split_words(tidied)
    found = [tidied[start:end].decode() for start, end in zip(words.starts, words.ends, strict=True)]
    assert found == slow_words(tidied.decode())
    assert words.hashes.tolist() == [slow_hash(word) for word in found]


@given(st.binary(max_size=100))
def test_any_bytes_are_split_without_overrun(text: bytes) -> None:
    tidied = tidy_text(text)
    words = split_words(tidied)
    assert all(0 <= a < b <= len(tidied) for a, b in zip(words.starts, words.ends, strict=True))
