"""Errors that tests get from the environment."""

from collections.abc import Sequence


class WaitsForever(AssertionError):
    """A test waits for a run that will never end: no signal, worker or timer will come. The text is from `explain`."""


class StillRunning(AssertionError):
    """The body of a step has run in real time for longer than a test should wait: `steps` that run, and `limit_s`."""

    def __init__(self, steps: Sequence[str], limit_s: float) -> None:
        named = "\n".join(f"  {step}" for step in steps) or "  (a workflow that waits for something outside Kagzi)"
        super().__init__(
            f"This has been running for {limit_s:g} s of real time, and nothing else can happen before it ends:\n"
            f"{named}\n"
            "Time is skipped only when nothing is running. Mock the step, or let what it waits for come."
        )
