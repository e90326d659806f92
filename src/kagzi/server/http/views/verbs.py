"""Requests and responses of the actions on runs."""

from collections.abc import Mapping

import msgspec

from ....core.errors import InvalidArgument
from ....core.records import Payload
from ....core.run.commands import SendSignal, SignalReplacement
from ....core.states import RunStatus
from ....core.traces.propagation import metadata_from
from ..payloads import payload_of
from ..route import Input
from .common import View
from .runs import StartIn

_NULL = b"null"


class ReasonIn(Input, frozen=True, kw_only=True):
    reason: str = ""


class NothingIn(Input, frozen=True, kw_only=True):
    """No fields."""


class RetryRunIn(Input, frozen=True, kw_only=True):
    """`from_step`: repeat from this step on, instead of the one that failed."""

    from_step: str = ""


class AdoptIn(Input, frozen=True, kw_only=True):
    """`build_id`: only workers of this build may take the run; empty: every worker may again, and a paused run stays
    paused. `reason` is stored in the audit log."""

    build_id: str
    reason: str = ""


class ForkIn(Input, frozen=True, kw_only=True):
    """The new run has the results before `from_step` (empty: all of them). `outputs`, by step id, replace some of
    them."""

    from_step: str = ""
    outputs: Mapping[str, msgspec.Raw] = {}
    version: str = ""
    workflow_id: str = ""


def outputs_of(fork: ForkIn) -> dict[str, Payload]:
    """Raises InvalidArgument."""
    read = {step_id: payload_of(output, f"outputs.{step_id}") for step_id, output in fork.outputs.items()}
    return {step_id: payload for step_id, payload in read.items() if payload is not None}


class ForkedView(View, frozen=True, kw_only=True):
    run_id: str
    workflow_id: str
    url: str | None


class StatusView(View, frozen=True, kw_only=True):
    """The resulting status of the run."""

    status: RunStatus


class SignalIn(Input, frozen=True, kw_only=True):
    """`payload` is stored to the byte; null if it is left out."""

    name: str
    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def signal_of(signal: SignalIn, request_id: str, headers: Mapping[str, str]) -> SendSignal:
    """`headers`: of the request, which may contain the span of its caller."""
    payload = payload_of(signal.payload, "payload") or Payload(_NULL)
    sent = Payload(payload.data, {**(payload.metadata or {}), **(metadata_from(headers) or {})} or None)
    return SendSignal(name=signal.name, payload=sent, request_id=request_id)


class SignalledView(View, frozen=True, kw_only=True):
    """`delivered`: a step was waiting for it."""

    run_id: str
    delivered: bool


class ReplaceSignalIn(Input, frozen=True, kw_only=True):
    """Another value for a signal that no code has received yet; or `drop`: removes it, and the step keeps waiting."""

    name: str
    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    drop: bool = False


def replacement_of(change: ReplaceSignalIn, request_id: str) -> SignalReplacement:
    """Raises InvalidArgument."""
    payload = payload_of(change.payload, "payload")
    if (payload is None) != change.drop:
        raise InvalidArgument("set either payload or drop: the other value, or that there is none.", field="payload")
    return SignalReplacement(name=change.name, payload=payload, request_id=request_id)


class ReplacedView(View, frozen=True, kw_only=True):
    """`resumed`: the run had been paused because of the value."""

    run_id: str
    status: RunStatus
    resumed: bool


class SignalWithStartIn(Input, frozen=True, kw_only=True):
    """The run that `start` returns gets the signal, in the same transaction."""

    start: StartIn
    signal: SignalIn
