"""The processes of one server (`kagzi server --processes N`), as reported to each of them by their supervisor."""

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum

import msgspec

from ..engine.measurements.values import Samples

AskSamples = Callable[[], Awaitable[Mapping[str, Samples]]]


class ProcessState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
    RESTARTING = "restarting"
    ENDED = "ended"


class PeerProcess(msgspec.Struct, frozen=True):
    """`problem`: why a ready process cannot serve at the moment, as it reported itself."""

    number: int
    pid: int
    state: ProcessState
    problem: str = ""


class Peers:
    """All processes of a server, and the `number` of this one. Empty for a server with one process.

    Every process listens on the same address, so a probe may reach any of them: each reports for all.
    """

    def __init__(self, number: int = 1) -> None:
        self.number = number
        self.processes: tuple[PeerProcess, ...] = ()
        self.samples: AskSamples | None = None
        """Collects the metrics of the other processes that respond, by number. None: there are no others."""

    def problem(self) -> str | None:
        """Why some calls would not be served: another process accepts connections but cannot serve them. A process that
        is down accepts none, and the others serve in its place."""
        for each in self.processes:
            if each.number != self.number and _is_ready(each) and each.problem:
                return f"process {each.number} of {len(self.processes)}: {each.problem}"
        return None

    def summary(self) -> str:
        """For people; empty for a server with one process."""
        if not self.processes:
            return ""
        ready = sum(map(_is_ready, self.processes))
        absent = (f"process {each.number}: {each.state}" for each in self.processes if not _is_ready(each))
        return "; ".join((f"{ready} of {len(self.processes)} processes", *absent))

    def author(self) -> str:
        """The summary, and which process the figures beside it are from."""
        summary = self.summary()
        return f"{summary}; this page is by process {self.number}" if summary else ""


def _is_ready(process: PeerProcess) -> bool:
    return process.state is ProcessState.READY
