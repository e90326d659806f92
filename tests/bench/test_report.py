"""Medians, ratios, tables and the plot of a comparison; and that docs/performance.md says what was measured."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from bench import cli
from bench.document import read_document, write_document
from bench.plot import draw
from bench.report import BLOCKS, against_before, fill, guarded, large_cases, number, soaked, who_is_ahead
from bench.summary import advantage, comparisons, failures, figures, verdict

ENGINES = {"kagzi-postgresql": "Kagzi, PostgreSQL", "kagzi-sqlite": "Kagzi, SQLite", "one": "One", "two": "Two"}


def record(engine: str, workload: str, value: float, **more: Any) -> dict[str, Any]:
    cpu, memory = {"server": 0.05, "worker": 0.02}, {"server": 80.0, "all": 100.0}
    common = {"error": None, "round": 0, "cpu_seconds_per_1000": cpu, "peak_memory_mb": memory}
    return {"engine": engine, "workload": workload, "value": value, **common, **more}


@pytest.fixture
def document() -> dict[str, Any]:
    engines = {
        name: {"title": title, "store": "own", "mode": "m", "versions": {"v": "1"}, "cannot": {}}
        for name, title in ENGINES.items()
    }
    engines["two"]["cannot"] = {"W2": "it has <no> steps"}
    results = [
        *(record("kagzi-postgresql", "W1@100", value) for value in (900.0, 1_000.0, 1_400.0)),
        record("kagzi-sqlite", "W1@100", 1_500.0),
        record("one", "W1@100", 500.0),
        record("two", "W1@100", 100.0),
        record("kagzi-postgresql", "W2", 1.0, p99=2.0),
        record("kagzi-sqlite", "W2", 0.52, p99=1.0),
        record("one", "W2", 0.5, p99=0.6),
        {**record("two", "W1@100", 0.0), "error": "it broke\nhere"},
        record("kagzi-sqlite", "W8", 0.0, percent_by_process={"server": 0.0, "database": 0.25}),
        record("one", "W8", 0.0, percent_by_process={"process": 0.0}),
    ]
    return {
        "format": 1,
        "started_at": "2026-01-01T00:00:00+00:00",
        "command": "python -m bench compare",
        "commit": "abc",
        "machine": {
            "processor": "P", "usable_cores": 2, "memory_mb": 2048, "kernel": "6", "load_average_before": [0.5],
            "python_optimised": False,
        },
        "versions": {"python": "3.11", "sqlite": "3.40"},
        "database": {"server_version": "18", "fsync": "on"},
        "rounds": 3,
        "plan": {"seconds": 10.0},
        "engines": engines,
        "workloads": {
            "W1@100": {"what": "runs", "unit": "steps/s", "higher_is_better": True, "has_ratio": True},
            "W2": {"what": "steps", "unit": "ms/step", "higher_is_better": False, "has_ratio": True},
            "W8": {"what": "at rest", "unit": "% of a core", "higher_is_better": False, "has_ratio": False},
        },
        "results": results,
    }  # fmt: skip


def test_what_was_left_out_has_no_part_in_figures_and_is_counted(document: dict[str, Any]) -> None:
    assert "fixed loop" not in BLOCKS["circumstances"](document)
    document["results"] = [
        record("kagzi-sqlite", "W1@100", 1_000.0, slowdown=1.1),
        record("kagzi-sqlite", "W1@100", 10.0, slowdown=1.8, left_out=True),
        record("kagzi-sqlite", "W1@100", 900.0, slowdown=1.3),
    ]
    assert figures(document)["W1@100"]["kagzi-sqlite"].median == 950.0
    circumstances = " ".join(BLOCKS["circumstances"](document).split())
    assert "took 1.20 times" in circumstances
    assert "more than 1.15 times beside 1 of the 2 that count; 1 that were disturbed" in circumstances


def test_what_all_cores_do_together_is_stated_if_it_was_measured(document: dict[str, Any]) -> None:
    assert "- P, 2 cores, 2 GiB" in BLOCKS["circumstances"](document)
    document["machine"]["cores_together"] = 1.02
    assert "- P, 2 cores that do 1.02 times as much as one alone, 2 GiB" in BLOCKS["circumstances"](document)


def test_the_median_of_the_rounds_counts_and_errors_do_not(document: dict[str, Any]) -> None:
    of = figures(document)["W1@100"]
    assert (of["kagzi-postgresql"].median, of["kagzi-postgresql"].low, of["kagzi-postgresql"].high) == (1000, 900, 1400)
    assert of["two"].rounds == 1
    assert of["one"].cpu_seconds_per_1000 == pytest.approx(0.07)
    assert of["one"].peak_memory_mb == 100
    assert failures(document) == [("two", "W1@100", "it broke")]


def test_a_ratio_above_one_is_better_whatever_the_unit(document: dict[str, Any]) -> None:
    assert advantage(10, 5, higher_is_better=True) == 2
    assert advantage(10, 5, higher_is_better=False) == 0.5
    compared = comparisons(document)
    assert compared["W1@100"].ratios == {"kagzi-postgresql": 2.0, "kagzi-sqlite": 3.0}
    assert compared["W2"].best_peer == "one"
    assert compared["W2"].best_kagzi == "kagzi-sqlite"
    assert compared["W2"].ratios == {"kagzi-postgresql": 0.5, "kagzi-sqlite": pytest.approx(0.5 / 0.52)}


@pytest.mark.parametrize(("ratio", "word"), [(2.0, "ahead"), (1.04, "level"), (0.96, "level"), (0.9, "behind")])
def test_a_verdict_is_plain(ratio: float, word: str) -> None:
    assert verdict(ratio) == word


def test_where_kagzi_is_not_ahead_is_said_first(document: dict[str, Any]) -> None:
    first, *_, last = who_is_ahead(document).splitlines()
    assert first.startswith("- **W2**")
    assert "**level**" in first
    assert "Behind with Kagzi, PostgreSQL." in who_is_ahead(document)
    assert "**ahead**, 3.00x One" in last


def test_each_set_up_is_compared_with_itself_as_it_was(document: dict[str, Any]) -> None:
    assert not against_before(document)
    document["engines"]["before-kagzi-sqlite"] = document["engines"]["kagzi-sqlite"]
    document["results"].append(record("before-kagzi-sqlite", "W1@100", 1_000.0))
    document["results"].append(record("before-kagzi-sqlite", "W2", 1.04, p99=3.0))
    assert against_before(document).splitlines()[2:] == [
        "| W1@100 (steps/s) | Kagzi, SQLite | 1,000 | 1,500 | 1.50x | 1.00x |",
        "| W2 (ms/step) | Kagzi, SQLite | 1.04, p99 3.00 | 0.52, p99 1.00 | 2.00x | 1.00x |",
    ]


def test_every_block_is_written_and_writing_again_changes_nothing(document: dict[str, Any]) -> None:
    names = [*BLOCKS, "soak", "large", "guarded"]
    page = "\n".join(f"<!-- figures: {name} -->\nold\n<!-- end of figures -->" for name in names)
    others = {"soak": soaked([]), "large": large_cases(document), "guarded": guarded("$ command\nmedians\n   new")}
    written = fill(page, document, others)
    assert "old" not in written
    assert "two" not in written.lower().split("one")[0]
    assert "1,000 (900-1,400)" in written
    assert "2.00x / 3.00x" in written
    assert "it has <no> steps" in written
    assert "| Kagzi, SQLite | at rest | 0.00 | 0.25 | 100 |" in written
    assert "failed: it broke" in written
    assert fill(written, document, others) == written
    with pytest.raises(KeyError):
        fill("<!-- figures: other -->\n<!-- end of figures -->", document, others)


def test_of_a_guarded_measurement_the_command_and_the_medians_are_shown() -> None:
    output = "$ python -m bench.guarded\n0  plain 1\n0  all 1\nmedians\n   plain 1\n   all 1\n"
    assert guarded(output).splitlines() == [
        "```text",
        "$ python -m bench.guarded",
        "medians",
        "   plain 1",
        "   all 1",
        "```",
    ]


def test_large_cases_have_a_row_for_each_workload_and_say_where_they_were_measured(document: dict[str, Any]) -> None:
    document["engines"] = {name: document["engines"][name] for name in ("kagzi-postgresql", "kagzi-sqlite")}
    head, _, *rows = large_cases(document).splitlines()
    assert head == "| workload |  | unit | Kagzi, PostgreSQL | Kagzi, SQLite |"
    assert rows[0] == "| W1@100 | runs | steps/s | 1,000 (900-1,400) | 1,500 |"
    assert rows[2] == "| W8 | at rest | % of a core |  | 0.00 |"
    assert " ".join(rows[4:]).startswith("- commit `abc`, `python -m bench compare`, P, 2 cores; 3 rounds")


def test_a_soak_shows_its_first_its_last_and_its_worst_interval(document: dict[str, Any]) -> None:
    results = [
        {
            "engine": "kagzi-postgresql", "at": at, "steps_per_second": 5_000, "p50": 3.0,
            "p99": 12.0 if at == 60 else 9.0, "in_flight_at_the_end": 7, "steps": at * 5_000,
            "memory_mb": {"server": 80.0 + at, "worker": 60.0}, "database_bytes": at * 1_000_000,
            "wal_bytes": 5_000_000,
            "live_rows": 100, "dead_rows": 5,
        }
        for at in (30, 60, 90)
    ]  # fmt: skip
    text = soaked([{**document, "results": results, "peak_steps_per_second": 10_000}])
    assert "| 30 s | 5,000 | 3.0 / 9.0 | 110 / 60 | 30 | 5 | 5.0% | 150,000 |" in text
    assert "| 90 s |" in text
    line = " ".join(text.split())
    assert "half of 10,000 steps/s; commit `abc`, `python -m bench compare`, P, 2 cores. The worst interval" in line
    assert "ended at 60 s: 5,000 steps/s, p99 12 ms, 7 runs at its end" in line


def test_the_plot_is_svg_with_a_bar_for_each_figure(document: dict[str, Any]) -> None:
    root = ET.fromstring(draw(document))
    bars = [bar for bar in root.iter("{http://www.w3.org/2000/svg}rect") if bar.get("x")]
    assert len(bars) == 7
    widths = [float(bar.get("width", 0)) for bar in bars[:4]]
    assert widths == sorted(widths, reverse=True)
    assert widths[1] == pytest.approx(widths[0] * 1_000 / 1_500, abs=0.1)


def test_a_document_is_read_as_it_was_written(document: dict[str, Any], tmp_path: Path) -> None:
    document["added_later"] = 1  # as a soak adds its peak
    write_document(document, tmp_path / "document.json")
    assert read_document(tmp_path / "document.json") == document
    write_document({**document, "format": 99}, tmp_path / "other.json")
    with pytest.raises(ValueError, match="99"):
        read_document(tmp_path / "other.json")


@pytest.mark.parametrize(("value", "text"), [(12_345.6, "12,346"), (12.34, "12.3"), (0.456, "0.46")])
def test_numbers_are_as_exact_as_they_are_worth(value: float, text: str) -> None:
    assert number(value) == text


def test_the_page_says_what_was_measured() -> None:
    """`python -m bench report` writes both; nobody types a figure."""
    document = read_document(cli.COMPARISON)
    for page in (cli.PAGE, cli.README):
        assert page.read_text() == fill(page.read_text(), document, cli.other_blocks())
    assert cli.PLOT.read_text() == draw(document)
