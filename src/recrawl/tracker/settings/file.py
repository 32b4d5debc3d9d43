"""Settings from a TOML file and flags: a flag wins over the file, the file over the default, and it is known which won.

Unknown names are refused with the nearest one that there is.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from recrawl.errors import InvalidFile, InvalidInput
from recrawl.tracker.hours import check_hours
from recrawl.tracker.settings.settings import Setting, Settings, check_patterns, texts
from recrawl.tracker.settings.table import LISTS, NETWORK, OTHERS, PLAIN, TABLES, names
from recrawl.web.fetch.egress import egress_policy
from recrawl.web.fetch.settings import read_credentials
from recrawl.web.url.address import DEFAULT_RULES, address_rules, origins

Origin = Literal["default", "file", "flag"]
LONGEST_FILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Chosen:
    """Settings, and for each name that was given, such as `budget` or `limits.total`, who gave it."""

    settings: Settings
    origins: dict[str, Origin] = field(default_factory=dict)


def read_settings(path: Path | None = None, flags: Mapping[str, Any] | None = None) -> Chosen:
    """The settings of a file and flags.

    Args:
        path: of a TOML file; None for none.
        flags: by name as in the file; those that are None were not given.

    Raises:
        InvalidInput: for a name or a value that cannot be used; `InvalidFile` names the file.
    """
    given: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    if path is not None:
        try:
            given = settings_of(_parsed(path))
        except InvalidFile:
            raise
        except InvalidInput as error:
            raise InvalidFile(str(path), error.problem, field=error.field, row=error.row) from None
        origins = dict.fromkeys(given.pop("_names"), "file")
    by_name = {each.name: each for each in PLAIN}
    for name, value in (flags or {}).items():
        if value is not None:
            setting = by_name[name]
            given[setting.field] = setting.read(value, f"--{name}")
            origins[name] = "flag"
    settings = Settings(**given)
    _check(settings)
    return Chosen(settings, origins)


def _parsed(path: Path) -> dict[str, Any]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidFile(str(path), f"cannot be read: {error.strerror or error}") from None
    if len(content) > LONGEST_FILE_BYTES:
        raise InvalidFile(str(path), "is longer than a megabyte, which no settings are")
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidFile(str(path), f"is not TOML: {error}") from None


def settings_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `Settings` from a parsed file; `_names` has the names that were given."""
    known = [*names(PLAIN), *TABLES, *LISTS, "network", *OTHERS]
    given: dict[str, Any] = {"_names": []}
    by_name = {each.name: each for each in PLAIN}
    network = _network(document["network"]) if "network" in document else {}
    for name, value in document.items():
        _check_name(name, known, "")
        given["_names"].append(name)
        if name in by_name:
            given[by_name[name].field] = by_name[name].read(value, name)
        elif name in TABLES:
            kind, settings = TABLES[name]
            given[name] = _made(kind, _read(value, settings, name), name)
            given["_names"] += [f"{name}.{each}" for each in value]
        elif name in LISTS:
            given[name] = _listed(name, value)
        elif name == "network":
            given |= network
        elif name == "headers":
            given["credentials"] = read_credentials(_headers(value), network.get("address_rules", DEFAULT_RULES))
        else:
            given["opted_out"] = frozenset(each.lower() for each in texts(value, name))
    return given


def _check_name(name: str, known: list[str], where: str) -> None:
    if name in known:
        return
    near = get_close_matches(name.replace("_", "-").lower(), known, n=1, cutoff=0.5)
    hint = f": did you mean {near[0]!r}?" if near else f"; there are {', '.join(known)}"
    raise InvalidInput(f"{where}{name!r} is no setting{hint}")


def _read(value: Any, settings: tuple[Setting, ...], where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(f"is {value!r}, but must be a table, written as [{where}]", field=where)
    by_name = {each.name: each for each in settings}
    read: dict[str, Any] = {}
    for name, each in value.items():
        _check_name(name, list(by_name), f"in {where}, ")
        read[by_name[name].field] = by_name[name].read(each, f"{where}.{name}")
    return read


def _made(kind: type, values: dict[str, Any], where: str) -> Any:
    try:
        return kind(**values)
    except InvalidInput as error:
        raise InvalidInput(error.problem, field=where if error.field is None else f"{where}.{error.field}") from None
    except TypeError:
        raise InvalidInput(
            f"needs more than {', '.join(values) or 'nothing'}: see docs/settings.md", field=where
        ) from None


def _listed(name: str, value: Any) -> tuple[Any, ...]:
    kind, settings = LISTS[name]
    if not isinstance(value, list):
        raise InvalidInput(f"must be given as [[{name}]], once for each", field=name)
    return tuple(_made(kind, _read(each, settings, f"{name}[{n}]"), f"{name}[{n}]") for n, each in enumerate(value))


def _network(value: Any) -> dict[str, Any]:
    """The policy of the gate, local names, and origins whose certificate is not checked."""
    if not isinstance(value, dict):
        raise InvalidInput("must be a table, written as [network]", field="network")
    fields = {each.name: each.field for each in NETWORK}
    for name in value:
        _check_name(name, list(fields), "in network, ")
    local, unverified = "network.local-names", "network.unverified-tls"
    rules = address_rules(texts(value.get("local-names", []), local), field=local)
    unchecked = origins(texts(value.get("unverified-tls", []), unverified), rules, field=unverified)
    gate = {fields[name]: each for name, each in value.items() if name not in ("local-names", "unverified-tls")}
    try:
        egress = egress_policy(**gate)
    except (TypeError, AttributeError):
        raise InvalidInput("has a value of the wrong kind: see docs/settings.md", field="network") from None
    return {"egress": egress, "address_rules": rules, "unverified_tls": unchecked}


def _headers(value: Any) -> dict[str, dict[str, str]]:
    table = isinstance(value, dict) and all(isinstance(each, dict) for each in value.values())
    if not table or not all(isinstance(text, str) for each in value.values() for text in each.values()):
        problem = 'must have a table of texts for each origin, written as [headers."https://example.com"]'
        raise InvalidInput(problem, field="headers")
    read: dict[str, dict[str, str]] = value
    return read


def _check(settings: Settings) -> None:
    """What must fit together."""
    check_patterns(settings.groups)
    for group in settings.groups:
        check_hours(group.hours, group.time_zone, f"groups.{group.name}.hours")
    longest_s = settings.limits.total_s + settings.longest_turn_s * (settings.limits.most_redirects + 2)
    fetch_s = settings.limits.total_s + settings.longest_turn_s + settings.again_after_s
    if settings.lease_s <= fetch_s:
        problem = f"is {settings.lease_s:g} s, but a fetch may take {fetch_s:g} s ({longest_s:g} s with redirects)"
        raise InvalidInput(f"{problem}: a lease must be longer", field="lease")
    for kind in ("groups", "sinks"):
        seen: set[str] = set()
        for rule in getattr(settings, kind):
            if rule.name in seen:
                raise InvalidInput(f"has {rule.name!r} twice", field=kind)
            seen.add(rule.name)
