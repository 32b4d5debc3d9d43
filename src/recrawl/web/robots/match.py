"""Whether the rules of a robots.txt let an address through, with a bounded memory of parsed rules.

Rules are kept as text, which is small; parsed they take up to thirty times as much. So only those in use are kept
parsed, by their text: hosts that share one robots.txt share the parsed form too.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from protego import Protego

MOST_PARSED_CHARACTERS = 4 << 20


class ParsedRules:
    """Parsed rules by their text, the least used forgotten first.

    Args:
        most_characters: text of all rules that are kept parsed, with one file on top if it alone is longer.
    """

    def __init__(self, most_characters: int = MOST_PARSED_CHARACTERS) -> None:
        self._most = most_characters
        self._parsed: OrderedDict[str, Protego] = OrderedDict()
        self._lock = Lock()
        self.characters = 0

    def allow(self, rules: str, target: str) -> bool:
        r"""Whether rules let a path and query through. O(rules), and O(length of the text) the first time.

        >>> parsed = ParsedRules()
        >>> parsed.allow("Disallow: /a\nAllow: /a/b", "/a/b/c"), parsed.allow("Disallow: /a", "/a/b/c")
        (True, False)
        """
        if not rules:
            return True
        return self._matcher(rules).can_fetch("http://host" + target, "recrawl")

    def __len__(self) -> int:
        return len(self._parsed)

    def _matcher(self, rules: str) -> Protego:
        with self._lock:
            matcher = self._parsed.get(rules)
            if matcher is not None:
                self._parsed.move_to_end(rules)
                return matcher
        matcher = Protego.parse("User-agent: *\n" + rules)
        with self._lock:
            if self._parsed.setdefault(rules, matcher) is matcher:
                self.characters += len(rules)
            while self.characters > self._most and len(self._parsed) > 1:
                self.characters -= len(self._parsed.popitem(last=False)[0])
        return matcher


parsed_rules = ParsedRules()
