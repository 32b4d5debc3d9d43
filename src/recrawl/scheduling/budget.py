"""The budget over time: a token bucket. Any window of length w sees at most rate·w + burst tokens spent."""

from __future__ import annotations


class TokenBucket:
    """Tokens that come at a constant rate up to a burst; a dear crawl may leave a debt."""

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self.rate = rate
        self.burst = burst
        self.tokens = burst
        self._filled = now

    def fill(self, now: float) -> float:
        """The tokens there are now. Time does not run backwards."""
        self.tokens = min(self.burst, self.tokens + self.rate * (now - self._filled))
        self._filled = now
        return self.tokens

    def spend(self, tokens: float) -> None:
        """Take tokens out."""
        self.tokens -= tokens

    def refund(self, tokens: float) -> None:
        """Put back tokens for crawls that were not made."""
        self.tokens = min(self.burst, self.tokens + tokens)

    @property
    def filled(self) -> float:
        """When the bucket was last filled."""
        return self._filled
