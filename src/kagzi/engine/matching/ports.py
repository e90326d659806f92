"""The interfaces between the engine and the servers of its protocols."""

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec

from ...core.records import ClaimedRun, RunKey, RunLease
from ...core.run.outcomes import Outcome

NoticeKind: TypeAlias = Literal["lease_lost", "cancel_requested", "pause_requested", "result", "warning"]


class Notice(msgspec.Struct, frozen=True):
    """Something happened to a run that the worker holds, or believes to hold."""

    leased: RunLease
    kind: NoticeKind
    reason: str = ""


class Outlet(Protocol):
    """Sends to one worker. All methods are quick and never raise: callers must not be interrupted."""

    @property
    def sent(self) -> int:
        """How many messages have been sent to the worker so far."""
        ...

    def tasks(self, claimed: Sequence[ClaimedRun]) -> None: ...

    def answers(self, answers: Sequence[tuple[int, Outcome]]) -> None:
        """Called once per commit: operation ids and their outcomes, including refusals."""
        ...

    def notices(self, notices: Sequence[Notice]) -> None: ...

    def stopping(self) -> None:
        """This server is shutting down: reconnect elsewhere."""
        ...

    def drain(self) -> None:
        """Finish the runs that are held, take no more."""
        ...


class HeartbeatAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`accepted` False: the worker is unknown and must register again."""

    accepted: bool
    should_drain: bool = False
    lost: tuple[RunLease, ...] = ()
    cancel_requested: tuple[RunKey, ...] = ()
