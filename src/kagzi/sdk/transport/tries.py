"""How long something is tried until a server does it, with growing pauses in between."""

import asyncio
from types import TracebackType
from typing import Self

from ...core.errors import KagziError
from ...core.providers import Rng
from .backoff import Backoff
from .outage_notices import OutageNotices
from .unreachable import Outage

LASTING_S = 10.0
"""A stream that lived so long had reached a server: what broke it is a new outage."""
_LEAST_S = 0.001
_CONCLUSIVE_S = 2.0  # a try that was cut shorter than that by our own deadline says nothing about the server


class Tries:
    """Of one call or stream. `with` it, and it is told that somebody waits.

    `timeout_s`: of all tries together. `last_try_s`: no try begins after that. `stream`: it may last for ever, and the
    time counts from when it breaks. `hopeless_after`: so many failures in a row that cannot pass by waiting end it at
    once; 0: none do.
    """

    def __init__(
        self,
        notices: OutageNotices,
        rng: Rng,
        *,
        timeout_s: float,
        last_try_s: float | None = None,
        stream: bool = False,
        hopeless_after: int = 0,
    ) -> None:
        self._notices = notices
        self._backoff = Backoff(rng)
        self._timeout_s = timeout_s
        self._last_try_s = timeout_s if last_try_s is None else last_try_s
        self._hopeless_after = hopeless_after
        self._stream = stream
        self._hopeless = 0
        self._time = asyncio.get_running_loop().time
        self._began_at = self._tried_at = self._time()
        self._outage: Outage | None = None

    def __enter__(self) -> Self:
        self._waiting = self._notices.begin(None if self._stream else self._timeout_s)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._notices.end(self._waiting, answered=error is None)

    def next_timeout_s(self, try_s: float | None = None) -> float:
        """A try begins. How long it may take: `try_s`, and not beyond the end of all."""
        self._tried_at = self._time()
        rest_s = max(self._began_at + self._timeout_s - self._tried_at, _LEAST_S)
        return rest_s if try_s is None else min(try_s, rest_s)

    def succeeded(self) -> None:
        """A server answered: whatever comes is a new outage."""
        self._backoff.reset()
        self._hopeless = 0
        self._outage = None
        self._began_at = self._time()
        self._waiting.succeeded(self._began_at)
        if self._stream:
            self._waiting.timeout_s = None
        self._notices.answered()

    def pause_s(self, problem: "KagziError | Outage") -> float:
        """How long to wait before the next try. Raises the problem if there is to be none."""
        if not isinstance(problem, Outage):
            raise problem
        now = self._time()
        tried_s = now - self._tried_at
        if self._stream and tried_s > LASTING_S:
            self.succeeded()
        if not (problem.silent and self._outage is not None and tried_s < _CONCLUSIVE_S):
            self._outage = problem
        self._waiting.failed(self._outage or problem, now)
        self._waiting.timeout_s = self._last_try_s
        self._hopeless = self._hopeless + 1 if problem.permanent else 0
        pause_s = self._backoff.next_s()
        if now + pause_s > self._began_at + self._last_try_s or 0 < self._hopeless_after <= self._hopeless:
            raise (self._outage or problem).error(now - self._began_at)
        return pause_s
