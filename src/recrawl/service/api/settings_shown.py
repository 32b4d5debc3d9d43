"""Settings as they are told: by the names under which they are written, secrets masked. Pure."""

from __future__ import annotations

import re
from typing import Any

from recrawl.tracker.settings.settings import Setting, Settings
from recrawl.tracker.settings.table import LISTS, PLAIN, TABLES

MASK = "(set, not shown)"
_PASSWORD = re.compile(r"(?<=://)([^:/@]*):[^/]*@")
_PARAMETER = re.compile(r"(?<=password=)[^&\s]*")
_SECRETS = ("secret", "secrets", "token", "password")
_PATH = re.compile(r"(?<=://)([^/?#@]*@)?([^/?#]*)[/?#].*", re.DOTALL)


def shown_settings(settings: Settings) -> dict[str, Any]:
    """All settings that have a name; of headers only for whom there are some."""
    shown: dict[str, Any] = {each.name: _value(each, getattr(settings, each.field)) for each in PLAIN}
    for name, (_, entries) in TABLES.items():
        table = getattr(settings, name, None)
        if table is not None:
            shown[name] = _table(entries, table)
    for name, (_, entries) in LISTS.items():
        shown[name] = [_table(entries, each) for each in getattr(settings, name, ())]
    shown["network"] = {"ports": sorted(settings.egress.ports)}
    return shown


def _table(entries: tuple[Setting, ...], value: object) -> dict[str, Any]:
    return {each.name: _value(each, getattr(value, each.field)) for each in entries}


def _value(setting: Setting, value: Any) -> Any:
    if setting.name in _SECRETS:
        return MASK if value else ""
    if setting.name == "target" and isinstance(value, str):  # addresses of webhooks are often secrets themselves
        return _PATH.sub(r"\2/…", value)
    if isinstance(value, str):
        return _PARAMETER.sub("***", _PASSWORD.sub(r"\1:***@", value))
    if isinstance(value, (tuple, frozenset, set)):
        return [str(each) for each in value]
    return value if isinstance(value, (bool, int, float)) or value is None else str(value)
