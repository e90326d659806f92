"""Writes the figures of a document as Markdown, and into docs/performance.md between markers.

No figure is typed: `python -m bench report FILE` writes them all, and a test compares the page with its document.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from bench.document import Document
from bench.engines.before import BEFORE
from bench.machine_speed import CALM
from bench.summary import Figure, advantage, comparisons, failures, figures, is_kagzi, slowdowns, verdict

_BLOCK = re.compile(r"(<!-- figures: (?P<name>[\w-]+) -->\n)(?P<text>.*?)(<!-- end of figures -->)", re.DOTALL)
_COST_WORKLOAD = "W1@100"


def fill(page: str, document: Document, others: Mapping[str, str]) -> str:
    """The page with every block rewritten. `others`: the blocks that are not of this document. Raises KeyError for an
    unknown block."""

    def written(name: str) -> str:
        return others[name] if name in others else BLOCKS[name](document)

    return _BLOCK.sub(lambda match: f"{match[1]}\n{written(match['name'])}\n\n{match[4]}", page)


def soaked(soaks: Sequence[Document]) -> str:
    """The first, the middle and the last interval of each soak; where it was measured, and its worst interval."""
    rows: list[list[str]] = []
    notes: list[str] = []
    for soak in soaks:
        results = soak["results"]
        for record in (results[0], results[len(results) // 2], results[-1]):
            server = record["memory_mb"].get("server", 0.0)
            rows.append(
                [
                    _title(soak, record["engine"]),
                    f"{record['at']} s",
                    f"{record['steps_per_second']:,}",
                    f"{record['p50']:.1f} / {record['p99']:.1f}",
                    f"{server:,.0f} / {record['memory_mb'].get('worker', 0.0):,.0f}",
                    f"{record['database_bytes'] / 1e6:,.0f}",
                    f"{record['wal_bytes'] / 1e6:,.0f}",
                    f"{record['dead_rows'] / max(record['live_rows'], 1):.1%}" if "live_rows" in record else "",
                    f"{record['steps']:,}",
                ]
            )
        machine, worst = soak["machine"], max(results, key=lambda record: record["p99"])
        notes += _wrapped(
            f"- {_title(soak, results[0]['engine'])}: half of {soak['peak_steps_per_second']:,} steps/s; commit"
            f" `{soak['commit']}`, `{soak['command']}`, {machine['processor']}, {_cores(machine)}. The worst interval"
            f" ended at {worst['at']} s: {worst['steps_per_second']:,} steps/s, p99 {worst['p99']:,.0f} ms,"
            f" {worst['in_flight_at_the_end']:,} runs at its end"
        )
    head = ["store", "at", "steps/s", "p50 / p99 of a run, ms", "server / worker, MB"]
    head += ["database, MB", "WAL, MB", "dead rows", "steps so far"]
    return "\n".join((table(head, rows), "", *notes)) if rows else "Not measured yet: `python -m bench soak`."


def large_cases(document: Document) -> str:
    """The workloads that a brief comparison leaves out, Kagzi alone; and where they were measured."""
    rows = [
        [workload, of["what"], of["unit"], *(_ranged(by_engine.get(engine)) for engine in document["engines"])]
        for workload, by_engine in figures(document).items()
        for of in (document["workloads"][workload],)
    ]
    machine = document["machine"]
    note = (
        f"- commit `{document['commit']}`, `{document['command']}`, {machine['processor']}, {_cores(machine)};"
        f" {document['rounds']} round{'s' if document['rounds'] > 1 else ''}"
    )
    titles = (_title(document, engine) for engine in document["engines"])
    return "\n".join((table(["workload", "", "unit", *titles], rows), "", *_wrapped(note)))


def guarded(output: str) -> str:
    """The command and the medians of what `bench.guarded` printed."""
    lines = output.splitlines()
    return "\n".join(("```text", lines[0], *lines[lines.index("medians") :], "```"))


def circumstances(document: Document) -> str:
    machine, database = document["machine"], document["database"]
    build = "optimised" if machine["python_optimised"] else "**not** optimised"
    lines = [
        f"- commit `{document['commit']}`, {document['started_at']}, `{document['command']}`",
        f"- {machine['processor']}, {_cores(machine)}, {machine['memory_mb'] / 1024:.0f} GiB",
        f"- kernel {machine['kernel']}; load average at the start {machine['load_average_before'][0]:.1f}",
        f"- Python {document['versions']['python']}, {build}; SQLite {document['versions']['sqlite']}",
        f"- PostgreSQL {database.get('server_version', 'absent')}, fsync {database.get('fsync', '?')}",
        f"- {document['rounds']} rounds, the engines in turn within each, in reverse order in every other one",
        f"- {document['plan']['seconds']:g} s for each throughput",
        *_slowdowns(document),
    ]
    return "\n".join(each for line in lines for each in _wrapped(line))


def _cores(machine: dict[str, Any]) -> str:
    """How many, and what they do together if that was measured."""
    cores, factor = machine["usable_cores"], machine.get("cores_together")
    return f"{cores} cores" if factor is None else f"{cores} cores that do {factor:g} times as much as one alone"


def _slowdowns(document: Document) -> list[str]:
    """How quiet the machine was, if that was measured."""
    counted, left_out = slowdowns(document)
    if not counted:
        return []
    disturbed = sum(1 for each in counted if each > CALM)
    line = (
        f"- a fixed loop beside the measurements took {median(counted):.2f} times what it takes on the idle machine"
        f" (median); more than {CALM:g} times beside {disturbed} of the {len(counted)} that count; {left_out} that were"
        " disturbed more are left out"
    )
    return [line]


def headline(document: Document) -> str:
    """The sentence for those who read no table: throughput, and how long a run of one step takes."""
    by_workload, compared = figures(document), comparisons(document)
    if not {"W1@100", "W3"} <= compared.keys():
        return "Not measured yet: `python -m bench compare`."
    fast, quick = compared["W1@100"], compared["W3"]
    steps = by_workload["W1@100"][fast.best_kagzi].median
    took = by_workload["W3"][quick.best_kagzi].median
    cores = document["machine"]["usable_cores"]
    return "\n".join(
        _wrapped(
            f"**{number(round(steps, -3))} durable steps a second** on {cores} cores, **{fast.best_ratio:.1f} times**"
            f" the next engine in the same comparison ({_title(document, fast.best_peer)}). A run of one step, from its"
            f" start to its result, takes {number(took)} ms, {quick.best_ratio:.1f} times less than with"
            f" {_title(document, quick.best_peer)}.",
            indent="",
        )
    )


def against_the_best(document: Document) -> str:
    """Kagzi's set-ups and the best peer, with ratios."""
    ours = [name for name in document["engines"] if is_kagzi(name) and "-servers" not in name]
    head = ["workload", "unit", *(_title(document, name) for name in ours), "best peer", "ratios, in this order"]
    rows: list[list[str]] = []
    by_workload = figures(document)
    for workload, comparison in comparisons(document).items():
        of = by_workload[workload]
        cells = [_ranged(of.get(name)) for name in ours]
        best = f"{_title(document, comparison.best_peer)}: {number(of[comparison.best_peer].median)}"
        ratios = " / ".join(_ratio(comparison.ratios.get(name)) for name in ours)
        rows.append([workload, document["workloads"][workload]["unit"], *cells, best, ratios])
    return table(head, rows)


def who_is_ahead(document: Document) -> str:
    """One sentence for each workload, starting with those in which Kagzi is not ahead."""
    compared = sorted(comparisons(document).values(), key=lambda each: each.best_ratio)
    lines: list[str] = []
    for each in compared:
        place = verdict(each.best_ratio)
        behind = [_title(document, name) for name, ratio in each.ratios.items() if verdict(ratio) == "behind"]
        line = (
            f"- **{each.workload}** ({document['workloads'][each.workload]['what']}): Kagzi is **{place}**,"
            f" {_ratio(each.best_ratio)} {_title(document, each.best_peer)}, with {_title(document, each.best_kagzi)}."
        )
        if behind and place != "behind":
            line += f" Behind with {'; '.join(behind)}."
        lines.extend(_wrapped(line))
    return "\n".join(lines)


def against_before(document: Document) -> str:
    """Each set-up against the same set-up of the other checkout; empty if the comparison had none."""
    rows: list[tuple[str, ...]] = []
    for workload, by_engine in figures(document).items():
        unit, better = (document["workloads"][workload][key] for key in ("unit", "higher_is_better"))
        for engine, now in by_engine.items():
            if was := by_engine.get(BEFORE + engine):
                gain = _ratio(advantage(now.median, was.median, higher_is_better=better))
                cpu = [figure.cpu_seconds_per_1000 for figure in (was, now)]
                less = _ratio(advantage(cpu[1], cpu[0], higher_is_better=False)) if cpu[0] and cpu[1] else ""
                title = document["engines"][engine]["title"]
                rows.append((f"{workload} ({unit})", title, _ranged(was), _ranged(now), gain, less))
    return table(("Workload", "Set-up", "Before", "Now", "Gain", "Gain in CPU"), rows) if rows else ""


def all_figures(document: Document) -> str:
    """Every engine in every workload: the median, and the range of its rounds."""
    head = ["", *document["workloads"]]
    units = ["unit", *(workload["unit"] for workload in document["workloads"].values())]
    by_workload = figures(document)
    rows = [
        [_title(document, engine), *(_ranged(by_workload.get(name, {}).get(engine)) for name in document["workloads"])]
        for engine in document["engines"]
    ]
    return table(head, [units, *rows])


def ratios(document: Document) -> str:
    """Kagzi's first two set-ups against every peer."""
    ours = [name for name in document["engines"] if is_kagzi(name) and "-servers" not in name]
    by_workload = figures(document)
    rows: list[list[str]] = []
    for engine in (name for name in document["engines"] if not is_kagzi(name)):
        cells: list[str] = []
        for name, workload in document["workloads"].items():
            of = by_workload.get(name, {})
            if engine not in of or not workload["has_ratio"]:
                cells.append("")
                continue
            higher = workload["higher_is_better"]
            each = (
                advantage(of[our].median, of[engine].median, higher_is_better=higher) if our in of else None
                for our in ours
            )
            cells.append(" / ".join(map(_ratio, each)))
        rows.append([_title(document, engine), *cells])
    return table(["Kagzi against", *document["workloads"]], rows)


def cost(document: Document) -> str:
    """CPU and memory of all processes in W1."""
    of = figures(document).get(_COST_WORKLOAD, {})
    rows = [
        [
            _title(document, engine),
            "" if figure.cpu_seconds_per_1000 is None else f"{figure.cpu_seconds_per_1000:.3f}",
            "" if figure.peak_memory_mb is None else f"{figure.peak_memory_mb:,.0f}",
        ]
        for engine, figure in of.items()
    ]
    return table([f"{_COST_WORKLOAD}, all processes", "CPU s per 1,000 steps", "peak memory, MB"], rows)


def at_rest(document: Document) -> str:
    """CPU while idle, and how much of it the database uses by itself."""
    rows: list[list[str]] = []
    for record in document["results"]:
        if record["error"] or "percent_by_process" not in record or record["round"]:
            continue
        by_process = record["percent_by_process"]
        rows.append(
            [
                _title(document, record["engine"]),
                document["workloads"][record["workload"]]["what"],
                f"{record['value']:.2f}",
                f"{by_process['database']:.2f}" if "database" in by_process else "",
                f"{record['peak_memory_mb']['all']:,.0f}",
            ]
        )
    return table(["set-up", "", "% of a core", "of it the database", "memory of all processes, MB"], rows)


def set_ups(document: Document) -> str:
    rows = [
        [
            engine["title"],
            engine["mode"],
            ", ".join(f"{name} {version}" for name, version in engine["versions"].items() if name != "commit"),
        ]
        for engine in document["engines"].values()
    ]
    return table(["set-up", "processes", "versions"], rows)


def not_measured(document: Document) -> str:
    lines: list[str] = []
    measured = {*document["workloads"], *(name.partition("@")[0] for name in document["workloads"])}
    for name, engine in document["engines"].items():
        for workload, reason in engine["cannot"].items():
            if workload in measured and not is_kagzi(name):
                lines.extend(_wrapped(f"- {engine['title']}, {workload}: {reason}."))
    for engine, workload, error in dict.fromkeys(failures(document)):
        lines.extend(_wrapped(f"- {_title(document, engine)}, {workload}: failed: {error}"))
    return "\n".join(lines) or "Nothing: every engine finished every workload."


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows))


def number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _ranged(figure: Figure | None) -> str:
    if figure is None:
        return ""
    spread = f" ({number(figure.low)}-{number(figure.high)})" if figure.rounds > 1 else ""
    p99 = f", p99 {number(figure.p99)}" if figure.p99 is not None else ""
    return number(figure.median) + spread + p99


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}x"


def _title(document: Document, engine: str) -> str:
    return document["engines"][engine]["title"]


def _wrapped(line: str, width: int = 120, indent: str = "  ") -> list[str]:
    """Wrap an item of a list, or with an empty indent a paragraph."""
    lines: list[str] = []
    for word in line.split(" "):
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(f"{indent}{word}" if lines else word)
    return lines


BLOCKS: dict[str, Callable[[Document], str]] = {
    "circumstances": circumstances,
    "headline": headline,
    "against-the-best": against_the_best,
    "who-is-ahead": who_is_ahead,
    "all": all_figures,
    "ratios": ratios,
    "cost": cost,
    "at-rest": at_rest,
    "set-ups": set_ups,
    "not-measured": not_measured,
}
