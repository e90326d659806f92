"""Waits for signals, as they are shown to the people who should send the signal."""

import msgspec

from ..records import Payload
from ..times import Timestamp

WAITS_OF_A_RUN = 10
"""The maximum number of waits per run, the oldest first."""


class SignalWait(msgspec.Struct, frozen=True, kw_only=True):
    """A step that waits for a signal. `until`: when the wait times out. `schema`: the schema of the value, if known."""

    run_id: str
    step_id: str
    signal: str
    since: Timestamp
    until: Timestamp | None = None
    schema: Payload | None = None
