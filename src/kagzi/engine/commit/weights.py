"""How many bytes a command sends to the store, about: what the queues of operations count."""

from collections.abc import Callable
from typing import Any

from ...core.pages.sizes import error_bytes
from ...core.run.commands import (
    BeatStep,
    BeginStep,
    CancelRun,
    Command,
    CompleteRun,
    CompleteStep,
    ContinueAsNew,
    DecideRace,
    EndRun,
    FailRun,
    FailStep,
    FetchResults,
    Park,
    PauseDiverged,
    RecordStep,
    ResultsCommand,
    SetState,
    StartChild,
    StartRun,
)

ROW_BYTES = 1_000  # memory that an operation takes here besides its payload; more than in the store


def weight_bytes(command: Command) -> int:
    """About how many bytes this sends to the store."""
    payloads = PAYLOADS.get(command.__class__)
    return ROW_BYTES if payloads is None else ROW_BYTES + payloads(command)


def _output_bytes(command: CompleteStep) -> int:
    return len(command.output.data)


def _end_bytes(command: CompleteRun) -> int:
    return len(command.output.data) + (_open_waits_bytes(command) if command.open_waits else 0)


def _input_bytes(command: BeginStep) -> int:
    return 0 if command.input is None else len(command.input.data)


def _continuation_bytes(command: ContinueAsNew) -> int:
    return len(command.input.data) + _open_waits_bytes(command)


def _open_waits_bytes(command: EndRun) -> int:
    return sum(map(_name_bytes, command.open_waits)) if command.open_waits else 0


def _step_bytes(command: RecordStep) -> int:
    return len(command.output.data) + (0 if command.input is None else len(command.input.data))


def _start_bytes(command: StartRun) -> int:
    size = 0 if command.input is None else len(command.input.data)
    if command.context is not None:
        size += len(command.context.data)
    if command.signal is not None:
        size += len(command.signal.payload.data)
    return size


def _child_bytes(command: StartChild) -> int:
    return _start_bytes(command.start)


def _details_bytes(command: BeatStep) -> int:
    return len(command.details.data)


def _state_bytes(command: SetState) -> int:
    return len(command.state.data)


def _failure_bytes(command: FailStep) -> int:
    return error_bytes(command.error) + (0 if command.input is None else len(command.input.data))


def _error_bytes(command: FailRun | CancelRun) -> int:
    return error_bytes(command.error) + _open_waits_bytes(command)


def _problem_bytes(command: PauseDiverged) -> int:
    return error_bytes(command.problem)


def _waits_bytes(command: ResultsCommand) -> int:
    return sum(map(_name_bytes, command.waits))


def _losers_bytes(command: DecideRace) -> int:
    return sum(map(_name_bytes, command.losers))


def _name_bytes(name: str) -> int:
    return len(name) + 64


PAYLOADS: dict[type, Callable[[Any], int]] = {
    StartRun: _start_bytes,
    BeginStep: _input_bytes,
    RecordStep: _step_bytes,
    CompleteStep: _output_bytes,
    CompleteRun: _end_bytes,
    FailStep: _failure_bytes,
    FailRun: _error_bytes,
    CancelRun: _error_bytes,
    StartChild: _child_bytes,
    ContinueAsNew: _continuation_bytes,
    BeatStep: _details_bytes,
    SetState: _state_bytes,
    FetchResults: _waits_bytes,
    Park: _waits_bytes,
    DecideRace: _losers_bytes,
    PauseDiverged: _problem_bytes,
}
