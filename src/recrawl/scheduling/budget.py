"""The budget over time: a token bucket. Any window of length w sees at most rate·w + burst tokens spent.

Its clock counts the tokens that came, whether or not the bucket had room for them: by it a lease knows how much came
since it was taken (`leases.py`).
"""

from __future__ import annotations

TICKS = 2**30  # of the clock for each burst
TURN = 2**62  # ticks after which the clock begins anew
_LONG = 2**60  # ticks that the clock goes on at most at once
_LONG_AGO = 2**45  # ticks, or 32768 bursts


class TokenBucket:
    """Tokens that come at a constant rate up to a burst; a dear crawl may leave a debt."""

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self.rate = rate
        self.tokens = burst
        self.clock = 0
        self._filled = now
        self._hold(burst)

    def _hold(self, burst: float) -> None:
        self.burst = burst
        self.tick = burst / TICKS
        self._ticks = TICKS / burst  # for each token

    def resize(self, burst: float) -> None:
        """Hold so many tokens at most; none come by that. What was taken before counts as taken long ago."""
        if burst != self.burst:
            self._hold(burst)
            self.tokens = min(self.tokens, burst)
            self.clock = (self.clock + _LONG_AGO) % TURN

    def fill(self, now: float) -> float:
        """The tokens there are now. Time does not run backwards."""
        if now > self._filled:
            came = self.rate * (now - self._filled)
            tokens = self.tokens + came
            ticks = came * self._ticks
            self.tokens = tokens if tokens < self.burst else self.burst
            self.clock = (self.clock + (int(ticks) + 1 if ticks < _LONG else _LONG)) % TURN  # rounded up
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
