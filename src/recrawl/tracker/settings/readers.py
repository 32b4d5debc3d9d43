"""How the text, numbers and tables of a settings file become values: one reader for each kind. Pure.

A reader takes what TOML gave, or the text of a flag, and the name of the setting, and raises `InvalidInput` with a
sentence that names it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from recrawl.errors import InvalidInput
from recrawl.tracker.clock import DAY_S
from recrawl.units import parse_budget, parse_duration_days

Reader = Callable[[Any, str], Any]
_BYTES = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[kmgt]?i?b)\s*/\s*(?P<time>[a-z]+)", re.IGNORECASE)
YEAR_S = 366 * DAY_S
_PREFIXES = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def text(value: Any, name: str) -> str:
    """Any text without control characters."""
    if not isinstance(value, str) or not (value.isprintable() or not value):
        raise InvalidInput(f"is {value!r}, but must be text", field=name)
    return value


def one_of(*choices: str) -> Reader:
    """One of these words."""

    def read(value: Any, name: str) -> str:
        if value not in choices:
            raise InvalidInput(f"is {value!r}, but must be one of {', '.join(choices)}", field=name)
        return str(value)

    return read


def among(table: Mapping[str, object]) -> Reader:
    """One of the names of a table, as it is when a value is read."""

    def read(value: Any, name: str) -> str:
        return str(one_of(*table)(value, name))

    return read


def whole(low: int, high: int) -> Reader:
    """A whole number within bounds."""

    def read(value: Any, name: str) -> int:
        number = _number(value)
        if number is None or number != int(number) or not low <= number <= high:
            raise InvalidInput(f"is {value!r}, but must be a whole number from {low} to {high}", field=name)
        return int(number)

    return read


def number(low: float, high: float) -> Reader:
    """A number within bounds."""

    def read(value: Any, name: str) -> float:
        found = _number(value)
        if found is None or not low <= found <= high:
            raise InvalidInput(f"is {value!r}, but must be a number from {low:g} to {high:g}", field=name)
        return found

    return read


def seconds(low: float, high: float) -> Reader:
    """A duration such as `90s` or `6h`, in seconds, within bounds; 0 needs no unit."""

    def read(value: Any, name: str) -> float:
        if isinstance(value, str) and value.strip() != "0":
            try:
                found = parse_duration_days(value) * DAY_S
            except InvalidInput as error:
                raise InvalidInput(error.problem, field=name) from None
        elif isinstance(value, str) or (value == 0 and not isinstance(value, bool)):
            found = 0.0
        else:
            raise InvalidInput(f"is {value!r}, but must have a unit, such as 90s, 15min or 6h", field=name)
        found = float(f"{found:.9g}")  # 1 s is a day's 86,400th part, and back
        if not low <= found <= high:
            raise InvalidInput(f"is {value!r}, but must be from {low:g} s to {high:g} s", field=name)
        return found

    return read


def budget(value: Any, name: str) -> float:
    """Crawls a day from `2/s` or `5000/day`."""
    try:
        found = parse_budget(text(value, name))
    except InvalidInput as error:
        raise InvalidInput(error.problem, field=name) from None
    if found.crawls_per_day is None:
        raise InvalidInput(f"is {value!r}, but must be crawls in a time, such as 2/s or 5000/day", field=name)
    return found.crawls_per_day


def byte_rate(value: Any, name: str) -> float:
    """Bytes a day from `2GB/day`.

    >>> byte_rate("1.5 MB/h", "bytes")
    36000000.0
    """
    match = _BYTES.fullmatch(text(value, name).strip())
    if match is None:
        raise InvalidInput(f"is {value!r}, but must be bytes in a time, such as 2GB/day", field=name)
    unit = match["unit"].lower()
    base = 1024 if "i" in unit else 1000
    size: float = float(match["number"]) * float(base) ** float(_PREFIXES[unit.rstrip("b").rstrip("i")])
    return size * budget(f"1/{match['time']}", name)


def yes_or_no(value: Any, name: str) -> bool:
    """True or false."""
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise InvalidInput(f"is {value!r}, but must be true or false", field=name)
    return value


def texts(value: Any, name: str) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list):
        raise InvalidInput(f"is {value!r}, but must be a list of texts in brackets", field=name)
    return tuple(text(each, f"{name}[{place}]") for place, each in enumerate(value))


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value) if re.fullmatch(r"[0-9.eE+-]+", value) else None
        except ValueError:
            return None
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Args:
        name: as it is written.
        field: of the class it fills.
        read: what reads it.
        means: one sentence.
        written: the default as one would write it.
    """

    name: str
    field: str
    read: Reader
    means: str
    written: str


_UNSAID = object()


def setting(written: str, read: Reader, means: str, *, default: Any = _UNSAID) -> Any:
    """Declare a field of a class as a setting; its default is what is written, as it would be read.

    Args:
        written: the default as one would write it.
        read: what reads it.
        means: one sentence.
        default: the value if nothing is written, where that cannot be read.
    """
    value = read(written, means) if default is _UNSAID else default
    return field(default=value, metadata={"read": read, "means": means, "written": written})


def required(read: Reader, means: str) -> Any:
    """Declare a field of a class as a setting that must be given."""
    return field(metadata={"read": read, "means": means, "written": ""})


def declared(kind: type) -> tuple[Setting, ...]:
    """Return the settings that the fields of a class declare, under their names in a file.

    >>> from dataclasses import make_dataclass
    >>> made = make_dataclass("Made", [("hub_age_s", float, setting("3 days", seconds(0, 1e9), "of a hub"))])
    >>> made().hub_age_s, [each.name for each in declared(made)]
    (259200.0, ['hub-age'])
    """
    return tuple(
        Setting(_written_name(each.name), each.name, *(each.metadata[key] for key in ("read", "means", "written")))
        for each in fields(kind)
        if "read" in each.metadata
    )


def _written_name(field_name: str) -> str:
    """Return the name of a setting from its field: without the unit, with dashes."""
    return field_name.removesuffix("_per_day").removesuffix("_s").replace("_", "-")
