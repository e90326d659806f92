"""`kagzi namespaces` and `kagzi stats`: who shares a server, what they may do, and what happens."""

import json
from typing import Any

from tests.cli.conftest import Installation


def json_of(installation: Installation, *arguments: str) -> Any:
    done = installation.run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_from_its_making_to_its_end(installation: Installation) -> None:
    made = json_of(installation, "namespaces", "create", "shop", "--max-open-runs", "1", "--retention", "failed=90d")
    assert (made["namespace"], made["enabled"], made["max_open_runs"], made["max_sessions"]) == ("shop", True, 1, None)
    assert made["retention_seconds"] == {"failed": 90 * 86_400}
    again = installation.run("namespaces", "create", "shop")
    assert (again.returncode, "exists already" in again.stderr) == (5, True)
    changed = json_of(
        installation, "namespaces", "update", "shop", "--max-open-runs", "none", "--max-starts-per-second", "2.5"
    )
    assert (changed["max_open_runs"], changed["max_starts_per_second"]) == (None, 2.5)
    assert installation.run("namespaces", "update", "shop").returncode == 2
    assert "shop" in [each["namespace"] for each in json_of(installation, "namespaces", "list")]
    shown = installation.run("namespaces", "show", "shop").stdout
    assert "2.5" in shown
    assert "failed" in shown

    assert installation.run("namespaces", "disable", "shop").returncode == 0
    refused = installation.run("start", "echo", "x", "--namespace", "shop")
    assert (refused.returncode, "disabled" in refused.stderr) == (5, True)
    assert installation.run("namespaces", "enable", "shop").returncode == 0
    run_id = installation.run("start", "echo", "x", "--namespace", "shop").stdout.strip()

    assert installation.run("namespaces", "delete", "shop").returncode == 2
    refused = installation.run("namespaces", "delete", "shop", "--confirm", "shop")
    assert (refused.returncode, "1 open run" in refused.stderr) == (5, True)
    assert installation.run("terminate", run_id, "--namespace", "shop").returncode == 0
    assert json_of(installation, "namespaces", "delete", "shop", "--confirm", "shop") == {
        "namespace": "shop",
        "deleting": True,
    }
    assert installation.run("namespaces", "show", "nobody").returncode == 3


def test_what_happened(installation: Installation) -> None:
    assert installation.run("start", "echo", "x", "--wait").returncode == 0
    stats = json_of(installation, "stats", "--workflow", "echo", "--since", "10m")
    assert sum(minute["completed"] for minute in stats["minutes"]) >= 1
    assert set(stats["minutes"][0]) == {
        "minute", "workflow", "started", "completed", "failed", "cancelled", "p50_ms", "p95_ms", "took"
    }  # fmt: skip
    assert stats["open"]["running"] == 0
    shown = installation.run("stats")
    assert "WORKFLOW" in shown.stdout
    assert "Open now:" in shown.stderr
    assert "MINUTE" in installation.run("stats", "--by-minute").stdout


def test_runs_by_everything_that_is_known_of_them(installation: Installation) -> None:
    run_id = installation.run(
        "start", "echo", "x", "--id", "to-be-found", "--label", "find=me", "--version", "1", "--wait", "--json"
    )
    assert run_id.returncode == 0, run_id.stderr
    everything = (
        "--label",
        "find=me",
        "--id",
        "to-be-found",
        "--version",
        "1",
        "--status",
        "completed",
        "--no-problem",
    )
    [run] = json_of(installation, "list", *everything, "--workflow", "echo", "--since", "1h")
    assert (run["workflow_id"], run["schedule"], run["concurrency_key"]) == ("to-be-found", None, None)
    assert json_of(installation, "count", *everything) == {"count": 1, "capped": False}
    for other in (
        ("--problem",),
        ("--schedule", "nightly"),
        ("--concurrency-key", "k"),
        ("--until", "1h"),
        ("--version", "2"),
    ):
        assert json_of(installation, "count", "--label", "find=me", *other)["count"] == 0, other
