"""What holds requests back: how many at once, how many a minute, and whether anybody is there."""

from __future__ import annotations


class Concurrency:
    """How many requests may be in flight: grows by adding, shrinks by a share of overloads.

    After each window of replies the share that was refused for overload, or stalled, shrinks the
    limit; a clean window lets it grow by a tenth, and by at least one.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = most
        self._replies = 0
        self._overloads = 0

    def saw(self, *, overload: bool) -> bool:
        """Count one reply; return whether the limit has grown."""
        self._replies += 1
        self._overloads += overload
        if self._replies < max(8, self.limit):
            return False
        share = self._overloads / self._replies
        before = self.limit
        # All of 64 overloaded: 20; half of them: 42; none of them: 70, or `most`.
        target = before * (1 - 0.7 * share) + max(1.0, 0.1 * before * (share == 0))
        self.limit = max(1, min(self.most, int(target)))
        self._replies = self._overloads = 0
        return self.limit > before


class Rate:
    """A bucket that refills by `per_minute` and may not be drawn below zero."""

    def __init__(self, per_minute: float, *, burst: float) -> None:
        self._per_second = per_minute / 60
        self._most = burst
        self._level = burst
        self._at: float | None = None

    def wait(self, amount: float, now: float) -> float:
        """Seconds until `amount` may be drawn."""
        if self._at is not None:
            self._level = min(self._most, self._level + (now - self._at) * self._per_second)
        self._at = now
        needed = min(amount, self._most)
        return max(0.0, (needed - self._level) / self._per_second)

    def draw(self, amount: float) -> None:
        """Take `amount`, going into debt if more was used than foreseen."""
        self._level -= amount


class Breaker:
    """Opens when an endpoint is down, so that the run pauses instead of failing its samples."""

    def __init__(self, give_up_after: float, *, threshold: int = 8) -> None:
        self.give_up_after = give_up_after
        self._threshold = threshold
        self._failures = 0
        self.since: float | None = None
        """When the endpoint was first seen down; None while it works."""

    def failed(self, now: float) -> bool:
        """Count an attempt that found nobody there; return whether that opened the breaker."""
        self._failures += 1
        if self._failures < self._threshold or self.since is not None:
            return False
        self.since = now
        return True

    def worked(self) -> None:
        """Somebody answered."""
        self._failures = 0
        self.since = None
