"""TestEnv: the environment of a test, which can also crash a workflow everywhere."""

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from ...sdk.client.run import Run
from ...sdk.workflow.signals import Signal
from ...sdk.workflow.workflow import Workflow
from .environment import Environment

if TYPE_CHECKING:
    from ..crash.report import CrashReport


class TestEnv(Environment):
    """A client whose server and workers are in the process of the test: `async with TestEnv.open() as env:`, or the
    fixture `kagzi_env` of pytest.

    A client's whole interface works. Workflows that are started, and their children, are executed here. The clock
    stands still until the test waits for a run (`await run.result()`) or calls `advance`, so sleeps, retries, timeouts
    and schedules take no real time. The environment belongs to the event loop in which it is first used.
    """

    __test__ = False

    @contextmanager
    def crashing_runs(self) -> "Generator[list[CrashReport]]":
        """Within the block, `run` does what `crash_everywhere` does: this implements the marker
        `kagzi_crash_everywhere`. Yields the list to which the reports are added."""
        reports: list[CrashReport] = []

        async def crash(workflow: Workflow[Any, Any], input: Any) -> "CrashReport":
            reports.append(await self._crash_everywhere(workflow, input, fails=None))
            return reports[-1]

        self.instead_of_run = crash
        try:
            yield reports
        finally:
            self.instead_of_run = None

    async def crash_everywhere(
        self,
        workflow: Workflow[Any, Any],
        input: Any = ...,
        *,
        signals: "Sequence[tuple[Signal[Any] | str, Any]]" = (),
        drive: "Callable[[TestEnv, Run[Any]], Awaitable[None]] | None" = None,
        same: "Callable[[Any, Any], bool] | None" = None,
        any_order: bool = True,
        fails: bool | str = False,
        check: bool = True,
    ) -> "CrashReport":
        """Run the workflow once for each of its boundaries (before, in and after each step, sleep, signal and child),
        with the worker killed there. It must end as it does undisturbed, and repeat nothing that is recorded.

        It is also run with a fresh worker after every result, with results in another order and with one more task
        layer. It is watched for code that is not replay-safe: clocks, randomness, threads, effects outside of steps,
        changed globals, dependence on the order of sets, calls that are not awaited.

        Args:
            workflow: The workflow.
            input: The input of each run.
            signals: Pairs of signal and value: each is sent when a run waits for it.
            drive: Called with the environment and each run after its start, for anything else the run needs.
            same: Compares two results. Default: they are the same if their JSON is.
            any_order: Whether results that are ready at the same time may arrive in any order.
            fails: Whether the workflow is meant to fail. A text: with an error that contains it, such as
                `"CardDeclined"`. If it ends otherwise, NotReplaySafe says how.
            check: Raise if there are findings. Otherwise look at `report.ok` and `report.findings`.

        Returns a report. Raises NotReplaySafe, which names the line and what to write instead. Afterwards mocks are in
        the state in which the undisturbed run left them.
        """
        return await self._crash_everywhere(
            workflow,
            input,
            signals=signals,
            drive=cast("Any", drive),  # it is always called with this environment
            same=same,
            any_order=any_order,
            fails=fails,
            check=check,
        )

    async def _crash_everywhere(self, workflow: Workflow[Any, Any], input: Any, **options: Any) -> "CrashReport":
        from ..crash.everywhere import crash_everywhere  # noqa: PLC0415  many tests never crash

        return await crash_everywhere(self, workflow, input, **options)
