"""A signal on its way: checked and written where it is sent."""

from typing import Any, cast

from ...core.commands import SignalGiven
from ...core.errors import InvalidArgument
from ..workflow.codec import ANY, write_payload
from ..workflow.signals import Signal
from ..workflow.signatures import check_name


def signal_given(signal: Signal[Any] | str, value: Any, *, request_id: str) -> SignalGiven:
    """Raises InvalidArgument if the value does not fit the signal's type: better here than in the run that waits for it."""
    if isinstance(signal, Signal):
        payload = write_payload(signal.codec, value, what=f"signal {signal.name!r}", hook=None)
        return SignalGiven(name=signal.name, payload=payload, request_id=request_id)
    name = signal_name(signal)
    payload = write_payload(ANY, value, what=f"signal {name!r}", hook=None)
    return SignalGiven(name=name, payload=payload, request_id=request_id)


def signal_name(signal: Signal[Any] | str) -> str:
    if isinstance(signal, Signal):
        return signal.name
    if not isinstance(cast("object", signal), str):
        raise InvalidArgument(
            f'signal={signal!r} is neither a Signal nor its name. Write Signal("approved", bool).', field="signal"
        )
    return check_name(signal, what="signal")
