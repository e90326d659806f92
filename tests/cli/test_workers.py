"""workers and versions: by people and by scripts."""

import json
import signal
from typing import Any

from tests.cli.conftest import Installation
from tests.support.kagzi_process import kagzi, running


def answer(installation: Installation, *arguments: str) -> Any:
    done = installation.run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_workers_are_listed_and_shown(installation: Installation) -> None:
    (worker,) = answer(installation, "workers", "list", "--status", "online", "--workflow", "echo")
    assert worker["pid"] > 0
    assert {"workflow": "echo", "version": "1"} in worker["workflows"]
    assert (worker["status"], worker["sdk_version"] != "") == ("online", True)
    assert answer(installation, "workers", "get", worker["worker_id"])["hostname"] == worker["hostname"]
    people = kagzi("workers", env={"KAGZI_ADDRESS": installation.address})
    assert people.returncode == 0
    assert worker["worker_id"] in people.stdout
    shown = installation.run("workers", "get", worker["worker_id"])
    assert "echo@1" in shown.stdout
    lines = installation.run("workers", "list", "--jsonl", "--limit", "1").stdout.splitlines()
    assert len([json.loads(line) for line in lines]) == 1
    assert answer(installation, "workers", "list", "--workflow", "nobody-serves-this") == []


def test_what_happened_to_a_worker(installation: Installation) -> None:
    (worker,) = answer(installation, "workers", "list", "--status", "online", "--workflow", "echo")
    events = answer(installation, "workers", "events", worker["worker_id"])
    assert [event["kind"] for event in events] == ["registered"]
    assert f"pid {worker['pid']}" in events[0]["detail"]
    assert "registered" in installation.run("workers", "events").stdout
    missing = installation.run("workers", "events", "nobody")
    assert missing.returncode == 3
    assert "worker nobody not found" in missing.stderr
    assert installation.run("workers", "get", "nobody").returncode == 3


def test_a_worker_is_sent_home(installation: Installation) -> None:
    command = ("worker", str(installation.directory / "flows.py"), "--address", installation.address)
    with running(*command, cwd=installation.directory) as worker:
        worker.says(r"\bserves\b")
        (served,) = [each for each in answer(installation, "workers", "list") if each["pid"] == worker.process.pid]
        gone = installation.run("workers", "drain", served["worker_id"], "--wait", "--timeout", "30s", "--json")
        assert gone.returncode == 0, gone.stderr
        assert json.loads(gone.stdout)["status"] == "offline"
        assert worker.wait() == 0
    again = installation.run("workers", "drain", served["worker_id"])
    assert again.returncode == 0
    assert "has exited" in again.stderr
    kinds = [event["kind"] for event in answer(installation, "workers", "events", served["worker_id"])]
    assert kinds == ["left", "drained", "draining", "registered"]
    assert installation.run("workers", "drain", "nobody").returncode == 3


def test_a_worker_that_does_not_leave_in_time(installation: Installation) -> None:
    command = ("worker", str(installation.directory / "flows.py"), "--address", installation.address)
    with running(*command, cwd=installation.directory) as worker:
        worker.says(r"\bserves\b")
        (served,) = [each for each in answer(installation, "workers", "list") if each["pid"] == worker.process.pid]
        worker.process.send_signal(signal.SIGSTOP)  # it gets nothing
        late = installation.run("workers", "drain", served["worker_id"], "--wait", "--timeout", "300ms")
        assert late.returncode == 124
        assert "has not exited" in late.stderr


def test_versions_are_listed_set_and_deprecated(installation: Installation) -> None:
    (version,) = answer(installation, "versions", "list", "echo")
    assert (version["version"], version["is_default"], version["is_set"]) == ("1", True, False)
    assert version["workers"] >= 1
    assert "default (highest)" in installation.run("versions", "list").stdout
    assert "get version 1" in installation.run("versions", "set-default", "echo", "1").stderr
    refused = installation.run("versions", "deprecate", "echo", "1")
    assert refused.returncode == 5
    assert "kagzi versions set-default echo" in refused.stderr
    assert answer(installation, "versions", "set-default", "echo", "--highest")["is_set"] is False
    assert "accepts no new runs" in installation.run("versions", "deprecate", "echo", "1").stderr
    start = installation.run("start", "echo", "hello")
    assert start.returncode == 5
    assert "deprecated" in start.stderr
    assert "accepts new runs" in installation.run("versions", "deprecate", "echo", "1", "--undo").stderr
    assert installation.run("start", "echo", "hello", "--wait").stdout == "hello\n"
    assert installation.run("versions", "set-default", "echo", "99").returncode == 3
    assert installation.run("versions", "set-default", "echo").returncode == 2
