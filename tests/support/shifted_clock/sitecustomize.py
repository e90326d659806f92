"""On the path of a process, this moves its wall clock by what the file named SHIFTED_CLOCK_FILE says, in seconds."""

import os
import time
from pathlib import Path

_shift = Path(os.environ["SHIFTED_CLOCK_FILE"])
_wall_ns = time.time_ns


def _shifted_ns() -> int:
    return _wall_ns() + int(_shift.read_text()) * 1_000_000_000


time.time_ns = _shifted_ns
time.time = lambda: _shifted_ns() / 1e9
