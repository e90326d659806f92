"""`kagzi trace`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ...core.text.plurals import counted
from ..console import put, say
from ..exits import Exit, Stop
from ..options import Server
from ..output import Output, server_command
from ..times import took_text

if TYPE_CHECKING:
    from ...sdk.client.client import Kagzi
    from ...sdk.tracing.history import SpanRecord


@click.command("trace")
@click.argument("run", metavar="RUN")
@click.option("--otlp", metavar="URL", help="Send the spans to this collector (OTLP over HTTP), http://host:4318.")
@server_command
def trace(*, run: str, otlp: str | None, server: Server) -> Output:
    """Show what a run did as a trace, or send it to a tracing backend.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). The trace is made from the recorded
    history, with the runs that RUN started, and has the ids of the spans that workers make: sending it again adds
    nothing new. A run that is old or long has several traces, which link to each other. The option --otlp needs:
    pip install 'kagzi[otel]'.
    """
    if otlp is not None and not otlp.startswith(("http://", "https://")):
        raise click.BadParameter("it must begin with http:// or https://.", param_hint="--otlp")
    spans = server.ask(lambda client: _fetch(client, run))
    if otlp is not None:
        _send(spans, otlp)
    return Output([_view(span) for span in spans], lambda: _put(spans, otlp))


async def _fetch(client: Kagzi, name: str) -> list[SpanRecord]:
    from ...sdk.tracing.history import RunHistory, trace_of
    from .find import find_info

    async def fetch(run_id: str) -> RunHistory:
        run = client.get(run_id)
        return RunHistory(await run.info(), await run.steps())

    run, info = await find_info(client, name)
    return await trace_of(RunHistory(info, await run.steps()), fetch)


def _send(spans: list[SpanRecord], url: str) -> None:
    try:
        from ...sdk.tracing.otlp import send_spans
    except ImportError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        missing = "--otlp needs OpenTelemetry, which is not installed"
        raise Stop(Exit.USAGE, missing, "pip install 'kagzi[otel]'") from error
    send_spans(spans, url)


def _view(span: SpanRecord) -> dict[str, Any]:
    from ..views import view

    names = ("trace_id", "span_id", "parent_span_id", "name", "kind", "started_at", "finished_at", "attributes")
    links = [view(link, "trace_id", "span_id") for link in span.links]
    return {**view(span, *names, "error"), "links": links}


def _put(spans: list[SpanRecord], url: str | None) -> None:
    if url is not None:
        say(f"{counted(len(spans), 'span')} sent to {url}")
        return
    if not spans:
        say("nothing of the run is recorded yet")
        return
    traces: dict[str, list[SpanRecord]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    for trace_id, here in traces.items():
        put(f"trace {trace_id}")
        known = {span.span_id for span in here}
        below: dict[str | None, list[SpanRecord]] = {}
        for span in here:
            below.setdefault(span.parent_span_id if span.parent_span_id in known else None, []).append(span)
        _put_below(below, None, "")


def _put_below(below: dict[str | None, list[SpanRecord]], parent: str | None, indent: str) -> None:
    for span in sorted(below.get(parent, ()), key=lambda each: each.started_at):
        attempt = span.attributes.get("kagzi.step.attempt", 1)
        number = "" if attempt == 1 else f" (attempt {attempt})"
        failure = "" if span.error is None else f"  {span.error.text}"
        took = took_text(span.started_at, span.finished_at)
        put(f"{indent}{span.name}{number}  {took}  {span.span_id}{failure}")
        _put_below(below, span.span_id, indent + "  ")
