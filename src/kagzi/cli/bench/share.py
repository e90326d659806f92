"""The result as a block of Markdown for sharing: figures with the machine and versions that they were measured on."""

from collections.abc import Mapping, Sequence
from typing import Any

from .plan import Measurement

_COLUMNS = ("workload", "what", "figure", "p99", "CPU s per 1,000")


def shared(document: Mapping[str, Any]) -> str:
    """The whole block, from a document of `bench_store`."""
    rows = [_row(result) for result in document["results"]]
    table = ["| " + " | ".join(cells) + " |" for cells in (_COLUMNS, ["---"] * len(_COLUMNS), *rows)]
    return "\n".join([f"### {title(document)}", "", *table, "", circumstances(document), ""])


def title(document: Mapping[str, Any]) -> str:
    versions, database = document["versions"], document["database"]
    commit = f" ({versions['commit']})" if versions.get("commit") else ""
    store = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}[database["kind"]]
    number = database.get("server_version") or versions.get("sqlite") or ""
    return f"kagzi bench: Kagzi {versions['kagzi']}{commit} on {store} {number}".rstrip()


def circumstances(document: Mapping[str, Any]) -> str:
    """The environment, without which figures cannot be compared."""
    machine, versions = document["machine"], document["versions"]
    memory = f", {machine['memory_mb'] / 1024:.0f} GiB" if machine.get("memory_mb") else ""
    build = "optimised" if machine.get("python_optimised") else "not optimised"
    load = machine.get("load_average_before")
    lines = [
        f"{machine['processor']}, {machine['usable_cores']} cores{memory}, {machine['platform']}",
        f"Python {versions['python']} ({build}), {document['event_loop']}, grpcio {versions['grpcio']}",
    ]
    if load:
        lines.append(f"Load average at the start: {load[0]:.1f}. Everything durable; server, worker, client apart.")
    return "  \n".join(lines)


def figure(result: Measurement) -> str:
    number = f"{result.value:,.0f}" if result.higher_is_better else f"{result.value:.2f}"
    return f"{number} {result.unit}"


def details(results: Sequence[Measurement]) -> list[str]:
    """Figures without a column, such as `W6: lone timer p99 3.1 ms`."""
    return [
        f"{result.workload}: " + ", ".join(f"{name} {value:g}" for name, value in result.details.items())
        for result in results
        if result.details
    ]


def _row(result: Measurement) -> list[str]:
    cpu = result.cpu_seconds_per_1000
    return [
        result.workload,
        result.what,
        figure(result),
        "" if result.p99 is None else f"{result.p99:.2f}",
        f"{sum(cpu.values()):.3f}" if cpu else "",
    ]
