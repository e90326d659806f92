"""Servers whose clock is wrong: by Python's wall clock alone, or, with libfaketime, by everything that asks the
machine."""

import os
from pathlib import Path

from .fork_server import REPOSITORY

LIBFAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")


class ShiftedClock:
    """Move it while a process runs that was started with its `environment`."""

    def __init__(self, directory: Path, *, seconds: int = 0) -> None:
        self._file = directory / "shift"
        self.shift(seconds)

    def shift(self, seconds: int) -> None:
        beside = self._file.with_suffix(".new")
        beside.write_text(f"{seconds:+d}")
        beside.replace(self._file)  # nobody reads half of it

    @property
    def environment(self) -> dict[str, str]:
        """For Python's `time` only; the clocks that C libraries read stay as they are."""
        places = (REPOSITORY / "src", REPOSITORY, REPOSITORY / "tests/support/shifted_clock")
        return {"PYTHONPATH": os.pathsep.join(map(str, places)), "SHIFTED_CLOCK_FILE": str(self._file)}

    @property
    def faketime_environment(self) -> dict[str, str]:
        """The machine's wall clock as the whole process sees it; elapsed time goes on, as it does when a clock is
        set."""
        assert LIBFAKETIME.exists(), "libfaketime is not installed: this campaign would prove nothing"
        return {
            "LD_PRELOAD": str(LIBFAKETIME),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",  # the file is read once a second, not at every look at the clock
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
