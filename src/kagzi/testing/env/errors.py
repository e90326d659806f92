"""What goes wrong in a test, in words."""

from collections.abc import Sequence


class WaitsForever(AssertionError):
    """A test waits for a run that waits for what will not come: no signal, worker or time will change that. The text
    is what `explain` says of it."""


class StillRunning(AssertionError):
    """The body of a step has really run for so long that a test should not wait for it."""

    def __init__(self, steps: Sequence[str], limit_s: float) -> None:
        named = "\n".join(f"  {step}" for step in steps) or "  (a workflow that waits for something outside Kagzi)"
        super().__init__(
            f"This has been running for {limit_s:g} s of real time, and nothing else can happen before it ends:\n"
            f"{named}\n"
            "Time is skipped only when nothing is running. Mock the step, or let what it waits for come."
        )
