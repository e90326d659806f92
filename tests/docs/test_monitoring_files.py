"""The dashboard and the alert rules name metrics and labels that there are, and each alert the page to open.

Whether Prometheus takes the rules, and when they fire, is what `make promtool` asks Prometheus' own tool."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from kagzi.server.metrics.catalogue import METRICS, Kind
from tests.docs.snippets import ROOT

RULES = ROOT / "deploy" / "prometheus" / "kagzi-alerts.yml"
RULE_TESTS = ROOT / "deploy" / "prometheus" / "kagzi-alerts.test.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "kagzi.json"

ALERTS = (
    "Down", "NotReady", "QueueWithoutWorker", "QueueStuck", "FailureShare", "Retrying", "CommitSlow", "TimersLate",
    "LeasesLost", "RunsQuarantined", "RunsDiverged", "Incidents", "JournalBacklog", "ScheduleLate", "ChoreStale",
)  # fmt: skip
OF_EVERY_SERIES = {"job", "instance", "process", "le"}
LABELS = {metric.name: {*metric.labels, *OF_EVERY_SERIES} for metric in METRICS}
KINDS = {metric.name: metric.kind for metric in METRICS}
WORDS = {metric.name: set(metric.words) for metric in METRICS}


def rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    return group["rules"]


def expressions() -> Iterator[tuple[str, str]]:
    for rule in rules():
        yield rule["alert"], rule["expr"]
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def series_of(expression: str) -> Iterator[tuple[str, str, str]]:
    """Name, the text of its selector, and what follows it."""
    yield from re.findall(r"\b(kagzi_[a-z_]+)\b(?:\{([^}]*)\})?(\[[^\]]*\])?", expression)


def metric_of(series: str) -> str:
    base = re.sub(r"_(bucket|sum|count)$", "", series)
    return base if KINDS.get(base) is Kind.HISTOGRAM else series


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_every_metric_and_label_in_use_exists(where: str, expression: str) -> None:
    for opening, closing in ("()", "{}", "[]"):
        assert expression.count(opening) == expression.count(closing), where
    labels = set(OF_EVERY_SERIES)
    for series, selector, span in series_of(expression):
        metric = metric_of(series)
        assert metric in KINDS, f"{where}: there is no {series}"
        assert (metric != series) == (KINDS[metric] is Kind.HISTOGRAM), f"{where}: {series} is a histogram"
        assert bool(span) == (KINDS[metric] is not Kind.GAUGE), f"{where}: {series} is a {KINDS[metric]}"
        for label, _, word in re.findall(r'(\w+)(=~?|!=)"([^"]*)"', selector):
            assert label in LABELS[metric], f"{where}: {metric} has no label {label}"
            assert word.startswith("$") or not WORDS[metric] or word in WORDS[metric], f"{where}: {label}={word}"
        labels |= LABELS[metric]
    for names in re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", expression):
        assert {name.strip() for name in names.split(",")} <= labels, where


def test_all_alerts_are_there_and_name_the_page_to_open() -> None:
    assert [rule["alert"] for rule in rules()] == [f"Kagzi{name}" for name in ALERTS]
    for rule in rules():
        assert rule["annotations"]["page"].startswith("/"), rule["alert"]
        assert rule["annotations"]["summary"], rule["alert"]
        assert rule["annotations"]["description"], rule["alert"]
        assert rule["labels"]["severity"] in ("critical", "warning")


def test_every_alert_has_a_test_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    tests = yaml.safe_load(RULE_TESTS.read_text())["tests"]
    fires = {
        name
        for test in tests
        for case in test.get("promql_expr_test", ())
        if case.get("exp_samples")
        for name in re.findall(r'alertname="(\w+)"', case["expr"])
    }
    silent = {case["alertname"] for case in tests[0]["alert_rule_test"] if not case.get("exp_alerts")}
    assert fires == silent == {rule["alert"] for rule in rules()}


def test_the_dashboard_has_its_eight_panels() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len(panels) == 8
    assert len({panel["id"] for panel in panels}) == 8
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == 8
