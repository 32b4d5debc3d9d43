"""Where the service of a command listens: from flags, the settings file, and the variable RECRAWL_LISTEN."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recrawl.service.listening import Listening


def listen_flag(given: str | bool | None) -> str | bool | None:
    """What `--listen` says; the variable RECRAWL_LISTEN stands in for it."""
    return given if given is not None else os.environ.get("RECRAWL_LISTEN") or None


def chosen_listening(chosen: Any) -> Listening | None:
    """Where to listen by the settings (`Chosen`); None for nowhere."""
    from recrawl.service.listening import read_listening

    settings, rules = chosen.settings, chosen.settings.service
    return read_listening(
        settings.listen,
        rules.names,
        behind_tls=rules.behind_tls,
        fixed="listen" in chosen.origins,
        proxies=rules.trusted_proxies,
    )
