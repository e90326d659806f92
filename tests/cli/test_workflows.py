"""kagzi workflows: limits, pause and resume, and what waits."""

import json
from typing import Any

from tests.cli.conftest import Installation
from tests.cli.test_runs import start
from tests.cli.test_verbs import has_status, until


def show(installation: Installation, workflow: str) -> Any:
    done = installation.run("workflows", "show", workflow, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_limits_are_set_shown_and_taken_away(installation: Installation) -> None:
    done = installation.run("workflows", "limit", "echo", "--max-running", "5", "--rate", "0.5", "--json")
    assert done.returncode == 0, done.stderr
    view = json.loads(done.stdout)
    assert (view["max_running"], view["starts_per_second"], view["when_full"]) == (5, 0.5, "queue")
    people = installation.run("workflows", "limit", "echo", "--per-key", "1", "--per-key-rate", "2", "--rate", "none")
    assert "max running per key" in people.stdout
    view = show(installation, "echo")
    assert (view["max_running"], view["max_running_per_key"]) == (5, 1)
    assert (view["starts_per_second"], view["starts_per_second_per_key"]) == (None, 2.0)
    assert (view["versions"], view["default_version"], view["paused"]) == (["1"], "1", False)
    done = installation.run(
        "workflows", "limit", "echo", "--max-running", "none", "--per-key", "none", "--per-key-rate", "none"
    )
    assert done.returncode == 0, done.stderr
    table = installation.run("workflows", "list").stdout
    assert "echo" in table
    lines = installation.run("workflows", "list", "--jsonl").stdout.splitlines()
    assert {"echo", "sleeps"} <= {json.loads(line)["workflow"] for line in lines}


def test_what_cannot_be_is_refused(installation: Installation) -> None:
    assert installation.run("workflows", "limit", "echo").returncode == 2
    assert installation.run("workflows", "limit", "echo", "--max-running", "many").returncode == 2
    refused = installation.run("workflows", "limit", "echo", "--max-running", "0")
    assert refused.returncode == 5
    assert "--max-running 0 is outside" in refused.stderr
    assert installation.run("workflows", "show", "unheard").returncode == 3


def test_a_paused_type_waits(installation: Installation) -> None:
    paused = installation.run("workflows", "pause", "nothing")
    assert (paused.returncode, paused.stdout) == (0, "")
    assert show(installation, "nothing")["paused"] is True
    start(installation, "nothing", "--id", "waits", "--priority", "3", "--concurrency-key", "k")
    assert "type nothing is paused" in installation.run("explain", "waits").stdout
    (queue,) = json.loads(installation.run("workflows", "depth", "nothing", "--json").stdout)
    assert (queue["waiting"], queue["workers"], queue["limit_reason"]) == (1, 1, "type nothing is paused")
    assert "nothing" in installation.run("workflows", "depth").stdout
    assert installation.run("workflows", "resume", "nothing").returncode == 0
    view = until(installation, "waits", has_status("completed"))
    assert (view["priority"], view["concurrency_key"]) == (3, "k")
