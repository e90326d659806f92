"""Runs: start, list, get, wait for, export and import."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from ....core import limits
from ....core.access import Scope
from ....core.error_details import ErrorCode
from ....core.errors import InvalidArgument, KagziError, not_found
from ....core.records import Payload, RunFilter, RunKey, RunRecord
from ....core.run.commands import StartRequest
from ....core.run.outcomes import Existing, Started
from ....core.schedules.scheduled_time import split_scheduled_time
from ....core.states import RunStatus
from ....core.times import US_PER_MS
from ....core.traces.propagation import context_from
from ....engine import RUN_WAITS, Named
from ..page_data import PageData
from ..problems import problem_of
from ..route import Answer, ApiRequest, NoQuery, Route
from ..run_names import run_id_of, run_of
from ..views.common import Paged, PageQuery, microseconds, paged
from ..views.runs import (
    BatchIn,
    BatchItem,
    BatchView,
    ExplanationView,
    ImportedView,
    OutcomeView,
    RunsQuery,
    RunView,
    StartedView,
    StartIn,
    WaitQuery,
    WholeRunView,
    explanation_view,
    filter_of,
    labels_of,
    outcome_view,
    run_view,
    start_of,
    started_view,
    whole_run_view,
)
from ..views.verbs import SignalWithStartIn, signal_of

NDJSON = "application/x-ndjson"
BYTES = "application/octet-stream"
WAIT_MS = 50_000
"""The longest wait: a connection that is silent for longer may be closed as dead."""

Plain: TypeAlias = ApiRequest[NoQuery, None]


# --- starting ---------------------------------------------------------------------------------------------------------


async def start(request: ApiRequest[NoQuery, StartIn]) -> Answer:
    """201 and `created` true for a new run; 200 for an existing run with the workflow id, depending on `on_conflict`.
    Repeating the request with the same Idempotency-Key gives the same response, with the run's current status."""
    start_request = _in_trace(start_of(request.body, request.namespace, request.request_id), request.headers)
    return await _started(request.data, start_request, await request.data.engine.runs.start(start_request))


async def signal_with_start(request: ApiRequest[NoQuery, SignalWithStartIn]) -> Answer:
    """Needs `start.workflow_id`."""
    start_request = _in_trace(start_of(request.body.start, request.namespace, request.request_id), request.headers)
    signal = signal_of(request.body.signal, request.request_id, request.headers)
    return await _started(
        request.data, start_request, await request.data.engine.runs.signal_with_start(start_request, signal)
    )


async def batch(request: ApiRequest[NoQuery, BatchIn]) -> BatchView:
    """Each start has the Idempotency-Key of the request followed by its index."""
    data, namespace = request.data, request.namespace
    read = [
        _read_or_refuse(each, namespace, f"{request.request_id}/{place}", request.headers)
        for place, each in enumerate(request.body.starts)
    ]
    outcomes = iter(await data.engine.runs.start_many([each for each in read if not isinstance(each, KagziError)]))
    answered = [(each, each if isinstance(each, KagziError) else next(outcomes)) for each in read]
    warnings = iter(await _warnings(data, [pair for pair in answered if _waits(*pair)]))
    return BatchView(
        items=tuple(
            _item(data, namespace, outcome, next(warnings) if _waits(start_request, outcome) else "")
            for start_request, outcome in answered
        )
    )


def _in_trace(start_request: StartRequest, headers: Mapping[str, str]) -> StartRequest:
    """Makes the run part of the request's trace."""
    context = context_from(headers, start_request.context)
    return start_request if context is start_request.context else replace(start_request, context=context)


def _read_or_refuse(
    start: StartIn, namespace: str, request_id: str, headers: Mapping[str, str]
) -> StartRequest | InvalidArgument:
    try:
        return _in_trace(start_of(start, namespace, request_id), headers)
    except InvalidArgument as error:
        return error


def _item(data: PageData, namespace: str, outcome: Started | Existing | KagziError, warning: str) -> BatchItem:
    if isinstance(outcome, KagziError):
        return BatchItem(error=problem_of(data.incidents.public_error("POST /runs/batch", outcome)))
    return BatchItem(started=started_view(outcome, data.info.url_of(RunKey(namespace, outcome.run_id)), warning))


async def _started(data: PageData, start_request: StartRequest, outcome: Started | Existing) -> Answer:
    (warning,) = await _warnings(data, [(start_request, outcome)]) if _waits(start_request, outcome) else [""]
    url = data.info.url_of(RunKey(start_request.namespace, outcome.run_id))
    view = started_view(outcome, url, warning)
    return Answer(view, 201 if view.created else 200, {"location": f"/api/v1/runs/{outcome.run_id}"})


def _waits(start_request: object, outcome: object) -> bool:
    """Whether the run may lack a worker. Costs nothing for a run that a worker already has."""
    return isinstance(outcome, Started) and outcome.status is not RunStatus.RUNNING


async def _warnings(data: PageData, started: Sequence[tuple[Any, Any]]) -> Sequence[str]:
    if not started:
        return []
    named = [
        Named(start_request.namespace, start_request.workflow_type, start_request.version)
        for start_request, _ in started
    ]
    return await data.engine.served.warnings(named, RUN_WAITS)


# --- reading ----------------------------------------------------------------------------------------------------------


async def list_runs(request: ApiRequest[RunsQuery, None]) -> Paged[RunView]:
    """Newest first, without their values."""
    where = filter_of(request.query, labels_of(request.query.label))
    page = await request.data.engine.runs.list(request.namespace, where, request.query.page, order=request.query.order)
    return paged(page, lambda run: run_view(run, request.data))


async def get(request: Plain) -> WholeRunView:
    """`run`: its id, or `workflow_id:x` for the latest run with that workflow id."""
    return whole_run_view(await _record(request), request.data)


async def get_input(request: Plain) -> bytes:
    """The exact bytes."""
    return _bytes((await _record(request)).input, "input", request)


async def get_output(request: Plain) -> bytes:
    """The exact bytes."""
    return _bytes((await _record(request)).output, "output", request)


async def get_context(request: Plain) -> bytes:
    """The exact bytes."""
    return _bytes(split_scheduled_time((await _record(request)).context)[0], "context", request)


async def explain(request: Plain) -> ExplanationView:
    """Why the run is in its current state, and what to do about it."""
    explanation = await request.data.engine.explanations.explain(**run_of(request))
    return explanation_view(await run_id_of(request), explanation)


async def children(request: ApiRequest[PageQuery, None]) -> Paged[RunView]:
    """Runs that this run started, newest first, without their values."""
    parent = await run_id_of(request)
    page = await request.data.engine.runs.list(request.namespace, RunFilter(parent_run_id=parent), request.query.page)
    return paged(page, lambda run: run_view(run, request.data))


async def wait(request: ApiRequest[WaitQuery, None]) -> OutcomeView:
    """Waits for the end of the run, for a limited time."""
    wait_ms = (microseconds(request.query.timeout, "timeout") or 0) // US_PER_MS
    if wait_ms > WAIT_MS:
        raise InvalidArgument(
            f"timeout is {wait_ms} ms; it must be 0..{WAIT_MS} ms. Ask again to wait longer.", field="timeout"
        )
    data, run_id = request.data, await run_id_of(request)
    end = await data.deadlines.poll(
        lambda wait_ms: data.engine.runs.wait(request.namespace, run_id=run_id, timeout_ms=wait_ms),
        wait_ms=wait_ms,
        remaining_s=None,
    )
    return outcome_view(end, run_id)


async def _record(request: ApiRequest[Any, Any]) -> RunRecord:
    return await request.data.engine.runs.get(**run_of(request))


def _bytes(payload: Payload | None, what: str, request: ApiRequest[Any, Any]) -> bytes:
    if payload is None:
        raise not_found(what, f"of run {request.path['run']}")
    return payload.data


# --- export and import ------------------------------------------------------------------------------------------------


async def export(request: Plain) -> AsyncGenerator[bytes]:
    """JSON lines, which `POST /runs/import` accepts."""
    return _parts(request, await run_id_of(request))


async def _parts(request: Plain, run_id: str) -> AsyncGenerator[bytes]:
    buffer = bytearray()
    # Held for the whole export: data that was read stays in memory while the client is slow.
    async with request.data.exports.reserve(request.namespace, limits.EXPORT_RESERVED_BYTES):
        async for line in request.data.engine.transfers.export(request.namespace, run_id):
            buffer += line
            while len(buffer) >= limits.MESSAGE_SOFT_BYTES:
                yield bytes(buffer[: limits.MESSAGE_SOFT_BYTES])
                del buffer[: limits.MESSAGE_SOFT_BYTES]
        yield bytes(buffer)


async def import_run(request: ApiRequest[NoQuery, AsyncIterator[bytes]]) -> ImportedView:
    """Imports the result of `GET /runs/{run}/export`. An existing run is left unchanged."""
    answer = await request.data.engine.transfers.import_run(request.namespace, request.body)
    return ImportedView(run_id=answer.run_id, created=not answer.already_exists)


_STARTS = (ErrorCode.CONFLICT, ErrorCode.PRECONDITION_FAILED)

ROUTES = (
    Route("GET", "/runs", list_runs, Scope.READ, "List runs", query=RunsQuery, answer=Paged[RunView], large=True),
    Route(
        "POST",
        "/runs",
        start,
        Scope.CLIENT,
        "Start a run",
        body=StartIn,
        answer=StartedView,
        status=201,
        other_answers={200: StartedView},
        errors=_STARTS,
    ),
    Route("POST", "/runs/batch", batch, Scope.CLIENT, "Start many runs", body=BatchIn, answer=BatchView),
    Route(
        "POST",
        "/runs/signal-with-start",
        signal_with_start,
        Scope.CLIENT,
        "Signal a run, started if it is not there",
        body=SignalWithStartIn,
        answer=StartedView,
        status=201,
        other_answers={200: StartedView},
        errors=_STARTS,
    ),
    Route(
        "POST",
        "/runs/import",
        import_run,
        Scope.CLIENT,
        "Import a run",
        answer=ImportedView,
        takes=NDJSON,
        errors=_STARTS,
    ),
    Route("GET", "/runs/{run}", get, Scope.READ, "Get a run", answer=WholeRunView, large=True),
    Route("GET", "/runs/{run}/input", get_input, Scope.READ, "Get its input", makes=BYTES, large=True),
    Route("GET", "/runs/{run}/output", get_output, Scope.READ, "Get its result", makes=BYTES, large=True),
    Route("GET", "/runs/{run}/context", get_context, Scope.READ, "Get its context", makes=BYTES, large=True),
    Route("GET", "/runs/{run}/explain", explain, Scope.READ, "Explain its state", answer=ExplanationView),
    Route(
        "GET",
        "/runs/{run}/children",
        children,
        Scope.READ,
        "List its children",
        query=PageQuery,
        answer=Paged[RunView],
        large=True,
    ),
    Route(
        "GET",
        "/runs/{run}/wait",
        wait,
        Scope.READ,
        "Wait for its end",
        query=WaitQuery,
        answer=OutcomeView,
        waits=True,
        large=True,
    ),
    Route(
        "GET",
        "/runs/{run}/export",
        export,
        Scope.READ,
        "Export it",
        makes=NDJSON,
        in_parts=True,
        errors=(ErrorCode.PRECONDITION_FAILED,),
    ),
)
