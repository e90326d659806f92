"""The options of `kagzi dev`."""

from pathlib import Path

import msgspec


class DevSetup(msgspec.Struct, frozen=True, kw_only=True):
    target: str  # as typed
    source: Path | None  # the file, if it is one
    data: Path
    namespace: str | None  # None: that of the Worker object
    reload: bool
    command: str  # how to call kagzi from the user's shell
    began: float  # perf_counter() when the command began
