"""What a payload is: an input, an output and so on. A strict codec binds that to what it encodes, so that whoever can
write to the database cannot let one stand in for another."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

INPUT = "input"
OUTPUT = "output"
ARGUMENTS = "arguments"
SIGNAL = "signal"
CONTEXT = "context"
STATE = "state"
DETAILS = "details"
LOG = "log"
TEXT = "text"
EFFECT = "effect"

ANY: frozenset[str] = frozenset()
TEXTS = frozenset({TEXT})

# By field, in the messages of clients and workers.
_KINDS = {
    "input": INPUT,
    "output": OUTPUT,
    "cached_output": OUTPUT,
    "outputs": OUTPUT,  # of a fork
    "payload": SIGNAL,
    "context": CONTEXT,
    "state": STATE,
    "details": DETAILS,
    "heartbeat_details": DETAILS,
    "text": LOG,
    "data": EFFECT,  # of an event: shown, and nothing else
}
_OF_STEPS = frozenset(
    f"kagzi.v1.{name}"
    for name in (
        "Step",
        "StepAttempt",
        "BeginStepRequest",
        "BeginStepOperation",
        "FailStepRequest",
        "FailStepOperation",
        "RecordStepOperation",
        "WaitSignalRequest",
        "WaitSignalOperation",
    )
)
# Steps that wait for a signal have its value as their output, and those that start a child may show its input.
_ALSO = {
    "kagzi.v1.Step": {OUTPUT: {SIGNAL}, ARGUMENTS: {INPUT}},
    "kagzi.v1.HistoryStep": {OUTPUT: {SIGNAL}},
    "kagzi.v1.BeginStepResponse": {OUTPUT: {SIGNAL}},
}


def kind_of(message: str, field: str) -> str:
    """As which a payload in this field is encoded."""
    return ARGUMENTS if field == "input" and message in _OF_STEPS else _KINDS.get(field, field)


def kinds_in(message: str, field: str) -> frozenset[str]:
    """As which a payload in this field may have been encoded. `ANY`: it does not matter."""
    kind = kind_of(message, field)
    return ANY if kind == EFFECT else frozenset({kind, *_ALSO.get(message, {}).get(kind, ())})


@runtime_checkable
class StrictCodec(Protocol):
    """A codec that binds the kind, and refuses payloads that are not encoded, while `strict` is true."""

    strict: bool

    def encode_as(self, kind: str, data: bytes) -> tuple[bytes, Mapping[str, str]]: ...

    def decode_as(self, kinds: frozenset[str], data: bytes, metadata: Mapping[str, str]) -> bytes: ...


def is_strict(codec: Any) -> bool:
    return isinstance(codec, StrictCodec) and codec.strict is True


def encoded(codec: Any, data: bytes, kind: str) -> tuple[bytes, Mapping[str, str]]:
    strict: tuple[bytes, Mapping[str, str]] = codec.encode_as(kind, data) if is_strict(codec) else codec.encode(data)
    return strict


def decoded(codec: Any, data: bytes, metadata: Mapping[str, str], kinds: frozenset[str]) -> bytes:
    clear: bytes = codec.decode_as(kinds, data, metadata) if is_strict(codec) else codec.decode(data, metadata)
    return clear
