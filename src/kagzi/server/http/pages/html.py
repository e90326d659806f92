"""The HTML of the plain pages. All external text is escaped; links begin with `base`, which is already escaped."""

from collections.abc import Sequence
from html import escape
from urllib.parse import quote, urlencode

from ....core.records import Payload, RunRecord, StepRecord
from ....core.times import Timestamp, to_datetime
from ...info import ServerInfo

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:3rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.4rem} code,pre,td.mono{font:13px/1.5 ui-monospace,monospace}
pre{background:#f4f5f7;border-radius:6px;padding:.8rem 1rem;overflow:auto;white-space:pre-wrap;word-break:break-word}
table{border-collapse:collapse;width:100%} th{text-align:left;font-weight:600;color:#57606a}
td,th{padding:.3rem .8rem .3rem 0;border-bottom:1px solid #e4e7eb;vertical-align:top} a{color:#0b63ce}
.status{display:inline-block;padding:0 .6rem;border-radius:1rem;background:#e4e7eb}
.completed{background:#d3f2dc}.failed{background:#fbd9d9}.running{background:#d5e6fb}.sleeping{background:#f5ecd0}
@media(prefers-color-scheme:dark){body{background:#14171b;color:#d8dde3}pre{background:#1d2228}
td,th{border-color:#2b3138}
a{color:#6cb0ff}.status{color:#14171b}}
"""
_PREVIEW_CHARACTERS = 4_000
_NOT_BUILT = (
    "<p>The dashboard was not built when this Kagzi was installed, so these are the plain pages. In a checkout, run "
    "<code>make web</code> and load this page again. Otherwise install again where Node 20 or newer and the "
    "network are available: with <code>KAGZI_WEB=require</code>, pip fails and says what is missing.</p>"
)


def about_page(
    info: ServerInfo,
    grpc_address: str,
    store_url: str,
    problem: str | None,
    processes: str,
    *,
    base: str,
    is_bundle_missing: bool,
) -> str:
    state = "ready" if problem is None else f"not ready: {problem}"
    commands = (
        "kagzi start hello world --wait\nkagzi list\nkagzi get RUN --steps"
        if grpc_address.endswith(":50051")
        else f"export KAGZI_ADDRESS={grpc_address}\nkagzi start hello world --wait\nkagzi list\nkagzi get RUN --steps"
    )
    facts = {
        "version": info.version,
        "state": state,
        "gRPC": grpc_address,
        "store": store_url,
        "server": info.server_id,
        "processes": processes,
    }
    links = " &middot; ".join(
        f'<a href="{escape(base)}{path}">/{path}</a>' for path in ("plain/runs", "healthz", "readyz")
    )
    missing = _NOT_BUILT if is_bundle_missing else ""
    body = f"<h1>Kagzi</h1>{missing}{_facts(facts)}<h2>Try</h2><pre>{escape(commands)}</pre><p>{links}</p>"
    return _page("Kagzi", body)


def runs_page(runs: Sequence[RunRecord], namespace: str, next_token: str, base: str) -> str:
    rows = "".join(
        f"<tr><td>{_link(run.run.run_id, namespace, base)}</td><td>{escape(run.workflow_type)}</td>"
        f'<td class="mono">{escape(run.workflow_id)}</td>'
        f'<td><span class="status {escape(run.status)}">{escape(run.status)}</span></td>'
        f"<td>{_time(run.created_at)}</td><td>{_time(run.finished_at)}</td></tr>"
        for run in runs
    )
    names = ("run", "workflow", "workflow id", "status", "created", "finished")
    head = "".join(f"<th>{name}</th>" for name in names)
    table = f"<table><tr>{head}</tr>{rows}</table>" if rows else "<p>none</p>"
    address = f"{base}plain/runs?{urlencode({'namespace': namespace, 'token': next_token})}"
    older = f'<p><a href="{escape(address)}">older runs</a></p>' if next_token else ""
    return _page("Runs", f"<h1>Runs in {escape(namespace)}</h1>{table}{older}")


def run_page(
    run: RunRecord,
    steps: Sequence[StepRecord],
    *,
    more_steps: bool,
    children: Sequence[RunRecord],
    more_children: bool,
    base: str,
) -> str:
    facts = {
        "workflow": f"{run.workflow_type}{f' version {run.version}' if run.version else ''}",
        "workflow id": run.workflow_id,
        "namespace": run.run.namespace,
        "created": _time(run.created_at),
        "started": _time(run.started_at),
        "finished": _time(run.finished_at),
        "wakes": _time(run.wake_at),
        "deadline": _time(run.deadline_at),
        "worker": run.worker_id or "",
        "doing": run.status_text,
        "progress": "" if run.progress is None else f"{run.progress:.0%}",
        "cancellation": (run.cancel_reason or "requested") if run.cancel_requested else "",
        "pause": "requested" if run.pause_requested else "",
        "unread signals": str(run.unread_signals or ""),
    }
    runs = {
        "parent": run.parent_run_id,
        "forked from": run.forked_from,
        "continued as": run.continued_as,
        "signals handed on to": run.handed_on_to,
    }
    namespace = run.run.namespace
    links = "".join(f"<p>{name}: {_link(run_id, namespace, base)}</p>" for name, run_id in runs.items() if run_id)
    status = f'<span class="status {escape(run.status)}">{escape(run.status)}</span>'
    waits = f" (waits: {escape(run.wait_reason)})" if run.wait_reason else ""
    parts = [f"<h1><code>{escape(run.run.run_id)}</code></h1><p>{status}{waits}</p>{_facts(facts)}{links}"]
    if run.problem is not None:
        parts.append(f"<h2>Problem</h2><pre>{escape(run.problem.message)}</pre>")
    if run.error is not None:
        parts.append(f"<h2>Error</h2><pre>{escape(run.error.traceback or run.error.text)}</pre>")
    parts.extend(_payload(title, payload) for title, payload in (("Input", run.input), ("Output", run.output)))
    parts.append(_steps(steps, namespace, base, more_steps=more_steps))
    parts.append(_children(children, base, more=more_children))
    return _page(f"{run.workflow_type} {run.status}", "".join(parts))


def sorry_page(text: str, base: str) -> str:
    return _page("Kagzi", f'<h1>{escape(text)}</h1><p><a href="{escape(base)}">Kagzi</a></p>')


def _link(run_id: str, namespace: str, base: str) -> str:
    address = f"{base}plain/runs/{quote(run_id, safe='')}?{urlencode({'namespace': namespace})}"
    return f'<a href="{escape(address)}"><code>{escape(run_id)}</code></a>'


def _children(children: Sequence[RunRecord], base: str, *, more: bool) -> str:
    if not children:
        return ""
    rows = "".join(
        f"<tr><td>{_link(child.run.run_id, child.run.namespace, base)}</td><td>{escape(child.workflow_type)}</td>"
        f'<td class="mono">{escape(child.parent_step_id or "")}</td>'
        f'<td><span class="status {escape(child.status)}">{escape(child.status)}</span></td></tr>'
        for child in children
    )
    head = "<tr><th>run</th><th>workflow</th><th>step</th><th>status</th></tr>"
    return f"<h2>Children</h2><table>{head}{rows}</table>{'<p>There are more.</p>' if more else ''}"


def _steps(steps: Sequence[StepRecord], namespace: str, base: str, *, more_steps: bool) -> str:
    rows = "".join(
        f'<tr><td class="mono">{escape(step.step_id)}</td>'
        f"<td>{escape(step.kind)} {_link(step.child_run_id, namespace, base) if step.child_run_id else ''}</td>"
        f'<td><span class="status {escape(step.status)}">{escape(step.status)}</span></td><td>{step.attempt}</td>'
        f"<td>{_time(step.started_at or step.created_at)}</td><td>{_time(step.finished_at)}</td>"
        f"<td>{escape(step.error.text if step.error else '')}</td></tr>"
        for step in steps
    )
    if not rows:
        return "<h2>Steps</h2><p>none yet</p>"
    head = (
        "<tr><th>step</th><th>kind</th><th>status</th><th>attempt</th><th>began</th><th>ended</th><th>error</th></tr>"
    )
    more = "<p>There are more.</p>" if more_steps else ""
    return f"<h2>Steps</h2><table>{head}{rows}</table>{more}"


def _payload(title: str, payload: Payload | None) -> str:
    if payload is None:
        return ""
    text = payload.data[: _PREVIEW_CHARACTERS + 1].decode(errors="replace")
    ellipsis = " ..." if len(text) > _PREVIEW_CHARACTERS else ""
    return f"<h2>{title}</h2><pre>{escape(text[:_PREVIEW_CHARACTERS])}{ellipsis}</pre>"


def _facts(facts: dict[str, str]) -> str:
    rows = "".join(
        f'<tr><th>{escape(name)}</th><td class="mono">{escape(value)}</td></tr>'
        for name, value in facts.items()
        if value
    )
    return f"<table>{rows}</table>"


def _time(at: Timestamp | None) -> str:
    return "" if at is None else to_datetime(at).isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body>{body}</body></html>"
    )
