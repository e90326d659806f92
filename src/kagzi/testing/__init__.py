"""The test kit: tests workflows, and shows what a recorded run did.

    from kagzi.testing import History, Replayer, TestEnv

The names that this module exports are public; every module below it is private. Names are loaded on first use, so a
test suite loads only what it uses.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .crash.report import CrashReport, Finding, NotReplaySafe
    from .env.env import TestEnv
    from .env.errors import StillRunning, WaitsForever
    from .replay.history import History
    from .replay.records import RecordedSignal, RecordedStep
    from .replay.replayer import Replayer
    from .replay.result import Divergence, NewTimeout, Replay, ReplayedStep
    from .to_pytest.calls import plain
    from .to_pytest.recorded import RecordedRun

__all__ = [
    "CrashReport",
    "Divergence",
    "Finding",
    "History",
    "NewTimeout",
    "NotReplaySafe",
    "RecordedRun",
    "RecordedSignal",
    "RecordedStep",
    "Replay",
    "ReplayedStep",
    "Replayer",
    "StillRunning",
    "TestEnv",
    "WaitsForever",
    "plain",
]

_HOMES = {
    "crash.report": ("CrashReport", "Finding", "NotReplaySafe"),
    "env.env": ("TestEnv",),
    "env.errors": ("StillRunning", "WaitsForever"),
    "replay.history": ("History",),
    "replay.records": ("RecordedSignal", "RecordedStep"),
    "replay.replayer": ("Replayer",),
    "replay.result": ("Divergence", "NewTimeout", "Replay", "ReplayedStep"),
    "to_pytest.calls": ("plain",),
    "to_pytest.recorded": ("RecordedRun",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # otherwise a type checker would accept every name

    def __getattr__(name: str) -> object:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415  lazy, like every import here

        value: object = getattr(import_module(f"{__name__}.{home}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
