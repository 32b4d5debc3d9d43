r"""Snapshots: a scheduler to bytes or a file, and back. The only module of this room that does IO.

A snapshot is, numbers little-endian:

    0   8 bytes   \x89RECRAWL
    8   uint32    version of the format
    12  uint32    CRC-32 of the header
    16  uint64    length of the header in bytes
    24            the header, JSON: {"facts": …, "arrays": [{"name", "dtype", "shape", "offset", "crc"}, …]}
                  the arrays, each at a multiple of 64 bytes and as it is in memory

Nothing in it is code, and everything is checked before it is used: a file that is cut short, damaged or forged is
refused with one sentence. Arrays are read straight into their place, so that ten million pages take seconds. A file is
written beside the old one and put in its place when it is whole.
"""

from __future__ import annotations

import io
import json
import math
import os
import secrets
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidFile, InvalidInput
from recrawl.scheduling.scheduler import Scheduler
from recrawl.scheduling.snapshot_facts import Facts
from recrawl.scheduling.snapshot_state import FORMS, Arrays, Form, keep, put_back, room_for

VERSION = 1
"""Of the format; raised when an older recrawl could no longer read it."""

FilePath = str | os.PathLike[str]
Source = bytes | bytearray | memoryview | FilePath | IO[bytes]
"""What a scheduler is restored from."""

_MAGIC = b"\x89RECRAWL"
_START = struct.Struct("<8sIIQ")
_ALIGNED = 64


def to_bytes(scheduler: Scheduler) -> bytes:
    """The snapshot of a scheduler. O(pages)."""
    stream = io.BytesIO()
    _write(scheduler, stream)
    return stream.getvalue()


def to_file(scheduler: Scheduler, path: FilePath) -> None:
    """Write the snapshot of a scheduler; whatever was there stays as it is until the new one is whole. O(pages)."""
    goal = _checked_path(path)
    part = goal.with_name(f".recrawl-{secrets.token_hex(8)}.part")
    try:
        try:
            with part.open("xb") as stream:
                _write(scheduler, stream)
                stream.flush()
                os.fsync(stream.fileno())
            part.replace(goal)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidFile(str(goal), f"cannot be written: {error.strerror or error}") from None


def _checked_path(path: Any) -> Path:
    known = isinstance(path, (str, os.PathLike)) and isinstance(os.fspath(path), str)
    if not known or not Path(path).name or "\0" in os.fspath(path):
        raise InvalidInput(f"is {path!r}, but must be the path of a file", field="path")
    return Path(path)


def from_source(source: Source) -> Scheduler:
    """The scheduler of a snapshot: bytes, the path of a file, or a file opened for reading bytes. O(pages).

    Raises:
        InvalidInput: if it is no snapshot, or damaged; `InvalidFile` if it was named by its path.
    """
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        try:
            with Path(path).open("rb") as file:
                return _read(file, os.fstat(file.fileno()).st_size)
        except InvalidInput as error:
            raise InvalidFile(path, _problem(error)) from None
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            raise InvalidFile(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        stream = _stream_of(source)
        return _read(stream, _bytes_left(stream))
    except InvalidInput as error:
        raise InvalidInput(_problem(error), field="snapshot") from None


def _problem(error: InvalidInput) -> str:
    return error.problem if error.field is None else f"is damaged: {error}"


def _stream_of(source: bytes | bytearray | memoryview | IO[bytes]) -> IO[bytes]:
    if isinstance(source, (bytes, bytearray, memoryview)):
        return io.BytesIO(source)
    if not hasattr(source, "read"):
        raise InvalidInput(f"is {type(source).__name__}, but must be bytes, a path or an open file")
    if hasattr(source, "readinto") and hasattr(source, "seekable") and source.seekable():
        return source
    content = source.read()
    if not isinstance(content, bytes):
        raise InvalidInput("was opened as text: open it for reading bytes")
    return io.BytesIO(content)


def _bytes_left(stream: IO[bytes]) -> int:
    here = stream.tell()
    end = stream.seek(0, os.SEEK_END)
    stream.seek(here)
    return end - here


def _write(scheduler: Scheduler, stream: IO[bytes]) -> None:
    facts, arrays = keep(scheduler)
    flat = {name: _as_bytes(array, FORMS[name]) for name, array in arrays.items()}
    listed = [
        {
            "name": name,
            "dtype": spelled(FORMS[name].dtype),
            "shape": list(array.shape),
            "offset": 0,
            "crc": zlib.crc32(flat[name]),
        }
        for name, array in arrays.items()
    ]
    header = _header(facts, listed)
    stream.write(_START.pack(_MAGIC, VERSION, zlib.crc32(header), len(header)))
    stream.write(header)
    at = _START.size + len(header)
    for entry in listed:
        stream.write(bytes(entry["offset"] - at))
        stream.write(flat[entry["name"]])
        at = entry["offset"] + len(flat[entry["name"]])


def _header(facts: dict[str, Any], listed: list[dict[str, Any]]) -> bytes:
    """The header, with the arrays where they will be: behind it, so that its length decides."""
    length = 0
    while True:
        at = _START.size + length
        for entry in listed:
            entry["offset"] = at = _aligned(at)
            at += _size(FORMS[entry["name"]], entry["shape"])
        header = json.dumps({"facts": facts, "arrays": listed}, separators=(",", ":"), allow_nan=False).encode()
        if len(header) <= length:
            return header.ljust(length)
        length = len(header)


def _read(stream: IO[bytes], size: int) -> Scheduler:
    start = stream.read(_START.size)
    if len(start) < _START.size or start[: len(_MAGIC)] != _MAGIC:
        raise InvalidInput("is not a snapshot of a scheduler")
    _, version, crc, length = _START.unpack(start)
    if version > VERSION:
        problem = f"was written by a newer recrawl, in format {version} (this one reads {VERSION}): update recrawl"
        raise InvalidInput(problem)
    if version < 1 or length > size - _START.size:
        raise InvalidInput("is cut short or damaged: its header is not whole")
    header = stream.read(length)
    if len(header) < length or zlib.crc32(header) != crc:
        raise InvalidInput("is damaged: the checksum of its header is wrong")
    facts, layout = _parse(header, size)
    at = _START.size + length
    arrays: Arrays = {}
    for name, shape, offset, checksum in layout:
        stream.read(offset - at)
        arrays[name] = _array(stream, name, shape, checksum)
        at = offset + arrays[name].nbytes
    return put_back(facts, arrays)


def _parse(header: bytes, size: int) -> tuple[Facts, list[tuple[str, tuple[int, ...], int, int]]]:
    """The facts and where the arrays are; they follow each other to the end of the snapshot and no further."""
    try:
        parsed = json.loads(header)
    except (ValueError, RecursionError):
        raise InvalidInput("is damaged: its header is not JSON") from None
    facts = Facts(parsed).part("facts")
    listed = parsed.get("arrays")
    at = _START.size + len(header)
    layout: dict[str, tuple[str, tuple[int, ...], int, int]] = {}
    for values in listed if isinstance(listed, list) else []:
        entry = Facts(values, "an array")
        name = entry.text("name")
        if name not in FORMS or name in layout:
            raise InvalidInput(f"is damaged: it holds {name[:40]!r}, which no snapshot has, or twice")
        if values.get("dtype") != spelled(FORMS[name].dtype):
            raise InvalidInput(f"keeps {name} in another form than this recrawl: restore it with the one that wrote it")
        shape = tuple(entry.whole_numbers("shape", 0, size))
        if len(shape) != FORMS[name].dimensions:
            raise InvalidInput(f"is damaged: {name} has {len(shape)} dimensions")
        at = entry.whole("offset", _aligned(at), _aligned(at))
        layout[name] = (name, shape, at, entry.whole("crc", 0, 2**32 - 1))
        at += _size(FORMS[name], shape)
        if at > size:
            raise InvalidInput("is cut short: it ends before its pages do")
    if at != size:
        raise InvalidInput("is damaged: it goes on after its end")
    return facts, list(layout.values())


def _array(stream: IO[bytes], name: str, shape: tuple[int, ...], checksum: int) -> NDArray[Any]:
    form = FORMS[name]
    array = room_for(Form(form.dtype.newbyteorder("<"), form.dimensions), shape)
    content = array.reshape(-1).view(np.uint8).data
    done = 0
    while done < len(content):
        count = cast(io.BufferedIOBase, stream).readinto(content[done:])
        if not count:
            raise InvalidInput("is cut short: it ends before its pages do")
        done += count
    if zlib.crc32(content) != checksum:
        raise InvalidInput(f"is damaged: the checksum of its {name} is wrong")
    return array.astype(form.dtype, copy=False)


def _as_bytes(array: NDArray[Any], form: Form) -> memoryview:
    stored = np.ascontiguousarray(array, dtype=form.dtype.newbyteorder("<"))
    return stored.reshape(-1).view(np.uint8).data


def _size(form: Form, shape: Iterable[int]) -> int:
    return math.prod(shape) * form.dtype.itemsize


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNED) * _ALIGNED


def spelled(dtype: np.dtype[Any]) -> Any:
    """A type as the header spells it: names and types of fields, little-endian."""
    little = dtype.newbyteorder("<")
    return little.str if dtype.names is None else json.loads(json.dumps(little.descr))
