"""Names and values of signals, checked and encoded where they are sent."""

from typing import Any, cast

from ...core.errors import InvalidArgument
from ...v1.common_pb2 import Payload
from ...wire.common import write_payload
from ..workflow import codec
from ..workflow.signals import Signal
from ..workflow.signatures import check_name


def encode_signal(signal: Signal[Any] | str, value: Any) -> tuple[str, Payload]:
    """Raises InvalidArgument if the value does not fit the signal's type: better here than in the run that waits for it."""
    name = signal_name(signal)
    value_codec = signal.codec if isinstance(signal, Signal) else codec.ANY
    return name, write_payload(codec.write_payload(value_codec, value, what=f"signal {name!r}", hook=None))


def signal_name(signal: Signal[Any] | str) -> str:
    if isinstance(signal, Signal):
        return signal.name
    if not isinstance(cast("object", signal), str):
        raise InvalidArgument(
            f'signal={signal!r} is neither a Signal nor its name. Write Signal("approved", bool).', field="signal"
        )
    return check_name(signal, what="signal")
