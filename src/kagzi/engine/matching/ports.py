"""What the engine says to those who hold its doors open."""

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec

from ...core.records import ClaimedRun, RunKey, RunLease
from ...core.run.outcomes import Outcome

NoticeKind: TypeAlias = Literal["lease_lost", "cancel_requested", "pause_requested", "result", "warning"]


class Notice(msgspec.Struct, frozen=True):
    """Something happened to a run that the worker holds, or thinks it holds."""

    leased: RunLease
    kind: NoticeKind
    reason: str = ""


class Outlet(Protocol):
    """The way to one worker. Every method is quick and never raises: the caller is in the middle of something else."""

    @property
    def sent(self) -> int:
        """How many messages have left for the worker so far."""
        ...

    def tasks(self, claimed: Sequence[ClaimedRun]) -> None: ...

    def answers(self, answers: Sequence[tuple[int, Outcome]]) -> None:
        """One call per commit: operation id and what it came to, refusals included."""
        ...

    def notices(self, notices: Sequence[Notice]) -> None: ...

    def stopping(self) -> None:
        """This server is going away: reconnect elsewhere."""
        ...

    def drain(self) -> None:
        """Finish what is held, take no more."""
        ...


class HeartbeatAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`accepted` False: the worker is not known, it must register again."""

    accepted: bool
    should_drain: bool = False
    lost: tuple[RunLease, ...] = ()
    cancel_requested: tuple[RunKey, ...] = ()
