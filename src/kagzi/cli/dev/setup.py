"""What `kagzi dev` was asked to run."""

from pathlib import Path

import msgspec


class DevSetup(msgspec.Struct, frozen=True, kw_only=True):
    target: str  # as given
    source: Path | None  # the file, if it is one
    data: Path
    namespace: str | None  # None: as the Worker object says
    reload: bool
    command: str  # how to call kagzi from here
    began: float  # perf_counter() when the command began
