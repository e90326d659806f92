"""The end of a run travels with the result it follows from: if that is refused because the run is to be cancelled, so
is the end."""

from typing import Any

import msgspec
import pytest

from kagzi.core.error_details import ErrorCode
from kagzi.core.run.outcomes import Begun, Recorded, RunClosed
from kagzi.core.states import RunStatus

from .verbs import StoreHarness, acknowledge_cancel, begin, complete, complete_run, fail_run, hand_back, refused, the

ENDINGS = pytest.mark.parametrize(
    ("end", "status"), [(complete_run, RunStatus.COMPLETED), (fail_run, RunStatus.FAILED)]
)


def after(command: Any, step_id: str) -> Any:
    return msgspec.structs.replace(command, after_step=step_id)


@ENDINGS
@pytest.mark.parametrize("together", [True, False])
async def test_an_end_goes_with_the_step_that_was_not_allowed_to_begin(
    harness: StoreHarness, end: Any, status: RunStatus, together: bool
) -> None:
    holding = await harness.running()
    await harness.done(holding, "before")
    await harness.cancel(holding.run)
    commands = [begin(holding, "a"), complete(holding, "a"), after(end(holding), "a")]
    outcomes = await harness.write(*commands) if together else [await harness.do(command) for command in commands]
    refused(outcomes[0], ErrorCode.CANCELLED)
    refused(outcomes[1], ErrorCode.PRECONDITION_FAILED)
    refused(outcomes[2], ErrorCode.CANCELLED)
    assert set(await harness.steps(holding.run)) == {"before"}
    assert (await harness.run(holding.run)).status == RunStatus.RUNNING
    the(RunClosed, await harness.do(hand_back(holding)))
    again = await harness.hold(holding.run)
    assert the(RunClosed, await harness.do(acknowledge_cancel(again))).status == RunStatus.CANCELLED


@ENDINGS
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("cancelled", [True, False])
async def test_an_end_that_follows_from_a_recorded_step_counts(
    harness: StoreHarness, end: Any, status: RunStatus, together: bool, cancelled: bool
) -> None:
    holding = await harness.running()
    the(Begun, await harness.do(begin(holding, "a")))
    if cancelled:
        await harness.cancel(holding.run)
    commands = [complete(holding, "a"), after(end(holding), "a")]
    outcomes = await harness.write(*commands) if together else [await harness.do(command) for command in commands]
    the(Recorded, outcomes[0])
    assert the(RunClosed, outcomes[1]).status == status
    assert the(RunClosed, await harness.do(commands[1])).status == status, "sent again, it is answered as before"


@ENDINGS
async def test_begun_completed_and_ended_in_one_message(harness: StoreHarness, end: Any, status: RunStatus) -> None:
    holding = await harness.running()
    outcomes = await harness.write(begin(holding, "a"), complete(holding, "a"), after(end(holding), "a"))
    assert the(RunClosed, outcomes[2]).status == status
    assert set(await harness.steps(holding.run)) == {"a"}
