"""What is refused and why, as a value: the answer of every check that guards the crawler."""

from __future__ import annotations

from dataclasses import dataclass

_SHOWN_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal by one rule.

    Args:
        rule: the short name of the rule, stable, for counting and for settings.
        subject: what was refused, as text that is safe to print (see `safe_text`).
        reason: why, and how to repair it where a user can.
    """

    rule: str
    subject: str
    reason: str

    @property
    def sentence(self) -> str:
        """One sentence for people.

        >>> Refused("userinfo", "'http://a@b.example/'", "it holds a user name").sentence
        "'http://a@b.example/' is refused by the rule userinfo: it holds a user name"
        """
        return f"{self.subject} is refused by the rule {self.rule}: {self.reason}"


def safe_text(text: object) -> str:
    r"""Foreign text made safe to print: ASCII, escaped, short.

    >>> print(safe_text("a\r\nb"))
    'a\r\nb'
    """
    raw = text if isinstance(text, str) else repr(text)
    escaped = ascii(raw[:_SHOWN_CHARACTERS])
    return escaped if len(raw) <= _SHOWN_CHARACTERS and len(escaped) <= 200 else f"{escaped[:200]}...{escaped[0]}"
