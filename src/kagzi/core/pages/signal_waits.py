"""What runs wait for from outside, as people who are to answer see it."""

import msgspec

from ..records import Payload
from ..times import Timestamp

WAITS_OF_A_RUN = 10
"""At most so many of each run, the oldest first."""


class SignalWait(msgspec.Struct, frozen=True, kw_only=True):
    """A step that waits for a signal. `until`: when it gives up. `schema`: what the value must look like, if that is
    known."""

    run_id: str
    step_id: str
    signal: str
    since: Timestamp
    until: Timestamp | None = None
    schema: Payload | None = None
