"""The commands of `python -m bench`."""

import signal
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from bench.compare import compare
from bench.document import Document, new_document, read_document, write_document
from bench.engines import ENGINES, KAGZI, PEERS, SEVERAL_SERVERS
from bench.engines.base import Engine
from bench.engines.before import BEFORE, engines_before
from bench.install import install as install_peers
from bench.launch import EngineError
from bench.plot import draw
from bench.report import against_before, against_the_best, fill, guarded, large_cases, soaked, who_is_ahead
from bench.soak import soak
from bench.workloads import BRIEF, COMPARED, GROUPS, TINY, WORKLOADS, Plan, chosen

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).parent / "results"
PAGE = ROOT / "docs" / "performance.md"
README = ROOT / "README.md"
PLOT = ROOT / "docs" / "performance.svg"
COMPARISON = RESULTS / "comparison.json"
"""The source of docs/performance.md."""
GUARDED = RESULTS / "guarded.txt"
"""What `bench.guarded` printed, below the command and where it ran."""


@click.group()
def main() -> None:
    """Measure Kagzi, and compare it with its peers. Leave the machine alone meanwhile."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stops everything that was started, like Ctrl-C


@main.command()
def install() -> None:
    """Install the peers into environments of their own, below build/peers."""
    try:
        install_peers(click.echo)
    except EngineError as error:
        raise click.ClickException(str(error)) from error


@main.command("compare")
@click.option("--engine", "names", multiple=True, type=click.Choice(tuple(ENGINES)), help="Repeatable.")
@click.option("--kagzi", "only_kagzi", is_flag=True, help="Kagzi's set-ups only.")
@click.option(
    "--before",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Compare with Kagzi of another checkout instead of with peers. It needs an environment of its own (.venv).",
)
@click.option("--servers", is_flag=True, help="W9: also two and four servers on one PostgreSQL.")
@click.option("--only", multiple=True, type=click.Choice((*WORKLOADS, *GROUPS)), help="A workload. Repeatable.")
@click.option("--everything", is_flag=True, help=f"All workloads, not only {', '.join(COMPARED)}.")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option(
    "--scale-rounds",
    default=1,
    show_default=True,
    type=click.IntRange(min=0),
    help=f"Rounds that have the workloads other than {', '.join(COMPARED)}.",
)
@click.option(
    "--repeats",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Measure again, so many times at most, what was measured while others slowed the machine down.",
)
@click.option("--brief", is_flag=True, help="Shorter measurements: a third of everything.")
@click.option("--tiny", is_flag=True, help="Does it run at all?")
@click.option("--output", type=click.Path(path_type=Path), help="Default: bench/results/<date>-<commit>.json.")
def compare_command(
    *,
    names: Sequence[str],
    only_kagzi: bool,
    before: Path | None,
    servers: bool,
    only: Sequence[str],
    everything: bool,
    rounds: int,
    scale_rounds: int,
    repeats: int,
    brief: bool,
    tiny: bool,
    output: Path | None,
) -> None:
    """Measure engines in turn, round after round. Default: Kagzi and all peers."""
    workloads = chosen(tuple(only), everything=everything)
    plan = TINY if tiny else BRIEF if brief else Plan()
    try:
        engines = _engines(names, only_kagzi=only_kagzi or before is not None, servers=servers)
        if before:
            engines = _beside(engines, engines_before(before))
        document = new_document(engines, workloads, plan, rounds=rounds, scale_rounds=scale_rounds)
    except EngineError as error:
        raise click.ClickException(str(error)) from error
    path = output or RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-{document['commit'] or 'no-commit'}.json"
    try:
        for record in compare(
            engines,
            workloads,
            plan,
            rounds=rounds,
            scale_rounds=scale_rounds,
            always=bool(only),
            repeats=repeats,
            say=click.echo,
        ):
            document["results"].append(record)
            write_document(document, path)  # after each one, so that an interruption loses no results
    finally:
        click.echo(f"written: {path}")
    _summarise(document)


@main.command("report")
@click.argument("file", type=click.Path(exists=True, path_type=Path), default=COMPARISON)
def report_command(*, file: Path) -> None:
    """Write the figures of FILE into docs/performance.md, docs/performance.svg and README.md."""
    document = read_document(file)
    if file.resolve() != COMPARISON:
        write_document(document, COMPARISON)
    for page in (PAGE, README):
        page.write_text(fill(page.read_text(), document, other_blocks()))
    PLOT.write_text(draw(document))
    _summarise(document)


@main.command("soak")
@click.option("--store", type=click.Choice(("postgresql", "sqlite")), default="postgresql", show_default=True)
@click.option("--minutes", default=10.0, show_default=True)
@click.option("--output", type=click.Path(path_type=Path), help="Default: bench/results/soak-<store>.json.")
def soak_command(*, store: str, minutes: float, output: Path | None) -> None:
    """Half of the peak for minutes: throughput, memory, bloat and WAL over time. Kagzi only."""
    try:
        document = soak(store, minutes * 60, click.echo)
    except EngineError as error:
        raise click.ClickException(str(error)) from error
    path = output or RESULTS / f"soak-{store}.json"
    write_document(document, path)
    click.echo(f"written: {path}")


def other_blocks() -> dict[str, str]:
    """The blocks of docs/performance.md that are not of the comparison."""
    soaks = [read_document(path) for path in sorted(RESULTS.glob("soak-*.json"))]
    return {
        "soak": soaked(soaks),
        "large": "\n\n".join(large_cases(read_document(path)) for path in sorted(RESULTS.glob("large-*.json"))),
        "guarded": guarded(GUARDED.read_text()),
    }


def _engines(names: Sequence[str], *, only_kagzi: bool, servers: bool) -> list[type[Engine]]:
    if names:
        return [ENGINES[name] for name in names]
    return [*KAGZI, *(SEVERAL_SERVERS if servers else ()), *(() if only_kagzi else PEERS)]


def _beside(engines: Sequence[type[Engine]], before: Sequence[type[Engine]]) -> list[type[Engine]]:
    """Put each engine's earlier version next to it, so that both meet the same state of the machine."""
    was = {engine.name.removeprefix(BEFORE): engine for engine in before}
    return [each for engine in engines for each in (engine, was.get(engine.name)) if each]


def _summarise(document: Document) -> None:
    if text := against_before(document):
        click.echo(f"\n{text}")
        return
    if text := who_is_ahead(document):
        click.echo(f"\n{against_the_best(document)}\n\n{text}")
