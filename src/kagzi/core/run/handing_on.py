"""What becomes of the unread signals of a run that has ended.

Those that came by signal-with-start are handed on: the run that comes next gets them, in order, as if they had been
sent after the end. They stay with nobody: the first of them starts that run unless another has taken its place already.
The others stay with the run that has ended, and are counted.
"""

from hashlib import blake2b

import msgspec

from ..ids import RUN_RANDOM_BITS, uuid7_of
from ..records import RunKey
from ..times import Timestamp
from .commands import StartRequest, StartRun, start_run

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(StartRequest).decode


class UnreadEnd(msgspec.Struct, frozen=True, kw_only=True):
    """A run has ended with unread signals: `unread` stayed with it, `handed_on` went to run `next_run_id`, which they
    may have started (`starts`)."""

    run: RunKey
    workflow_type: str
    workflow_id: str
    unread: int
    handed_on: int = 0
    next_run_id: str | None = None
    starts: bool = False


class EndedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that has just ended, and its unread signals. `first`: the first of those that are handed on."""

    run: RunKey
    workflow_id: str
    workflow_type: str
    version: str | None
    unread: int
    first: "KeptStart | None"


class KeptStart(msgspec.Struct, frozen=True, kw_only=True):
    """A signal with the start that it came with."""

    number: int
    request_id: str
    start_request: str


def write_start_request(request: StartRequest | None) -> str | None:
    """The start that a signal came with, as it is stored beside the signal. The run says its namespace and type."""
    return None if request is None else _encode(msgspec.structs.replace(request, namespace="")).decode()


def read_start_request(text: str | bytes) -> StartRequest:
    """Raises msgspec.DecodeError for a text that is none."""
    return _decode(text)


def next_start(ended: EndedRun, first: KeptStart, now: Timestamp) -> StartRun:
    """The start of the run that comes next. Nothing refuses it, since the signal was accepted. Its version is the one
    that was pinned when the signal came, or else that of the run that has ended. Its id follows from the signal, so
    that a repeat makes the same run."""
    request = msgspec.structs.replace(
        read_start_request(first.start_request),
        namespace=ended.run.namespace,
        workflow_id=ended.workflow_id,
        workflow_type=ended.workflow_type,
    )
    if not request.version and ended.version:
        request = msgspec.structs.replace(request, version=ended.version)
    digest = blake2b(f"{ended.run.run_id}\0{first.request_id}".encode(errors="surrogatepass"), digest_size=8).digest()
    bits = int.from_bytes(digest) & ((1 << RUN_RANDOM_BITS) - 1)
    return start_run(request, RunKey(ended.run.namespace, uuid7_of(ended.run.namespace, now, bits)), now)


def without_request_id(start: StartRun) -> StartRun:
    """The same start after another run has taken its request id meanwhile."""
    return msgspec.structs.replace(start, request_id=start.run.run_id)


def end_with_unread(ended: EndedRun) -> UnreadEnd:
    """All of them stay with the run."""
    return UnreadEnd(
        run=ended.run, workflow_type=ended.workflow_type, workflow_id=ended.workflow_id, unread=ended.unread
    )


def handed_on(ended: EndedRun, moved: int, next_run_id: str, *, starts: bool) -> UnreadEnd:
    return msgspec.structs.replace(
        end_with_unread(ended),
        unread=ended.unread - moved,
        handed_on=moved,
        next_run_id=next_run_id,
        starts=starts,
    )
