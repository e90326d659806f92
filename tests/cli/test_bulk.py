"""cancel, retry, resume, terminate and delete by filter; export and import: by people and by scripts."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Installation
from tests.cli.test_runs import get, start
from tests.cli.test_verbs import has_status, until
from tests.support.kagzi_process import kagzi


def starts(installation: Installation, count: int, label: str) -> list[str]:
    return [start(installation, "sleeps", "1h", "--label", f"batch={label}") for _ in range(count)]


def test_the_count_comes_first_and_yes_does_it(installation: Installation) -> None:
    ids = starts(installation, 3, "cancel")
    shown_first = installation.run("cancel", "--label", "batch=cancel")
    assert shown_first.returncode == 2
    assert "3 runs match; nothing was done" in shown_first.stderr
    assert "--yes" in shown_first.stderr
    assert all(get(installation, run_id)["status"] != "cancelled" for run_id in ids)
    done = installation.run("cancel", "--filter", "label.batch=cancel", "--reason", "enough", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    view = json.loads(done.stdout)
    assert (view["action"], view["matched"], view["done"], view["failed"], view["finished"]) == (
        "cancel",
        3,
        3,
        0,
        True,
    )
    assert all(get(installation, run_id)["cancel_requested"] for run_id in ids)
    shown = json.loads(installation.run("bulk", "get", view["operation_id"], "--json").stdout)
    assert shown == view
    listed = json.loads(installation.run("bulk", "list", "--json").stdout)
    assert view in listed
    stopped = installation.run("bulk", "stop", view["operation_id"])
    assert "finished" in stopped.stdout


def test_where_nothing_matches_there_is_nothing_to_confirm(installation: Installation) -> None:
    done = installation.run("delete", "--label", "batch=no-such-batch")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no runs match; there is nothing to delete\n")
    view = json.loads(installation.run("delete", "--label", "batch=no-such-batch", "--json").stdout)
    assert (view["operation_id"], view["matched"], view["done"]) == (None, 0, 0)


def test_terminate_and_delete(installation: Installation) -> None:
    ids = starts(installation, 2, "gone")
    refused = installation.run("delete", "--label", "batch=gone", "--yes")
    assert refused.returncode == 1
    assert "0 runs deleted, 2 failed" in refused.stderr
    assert "only runs that have ended" in refused.stderr
    ended = installation.run("terminate", "--label", "batch=gone", "--yes")
    assert "2 runs terminated" in ended.stderr
    assert installation.run("delete", ids[0]).returncode == 2
    one = installation.run("delete", ids[0], "--yes")
    assert "1 run deleted" in one.stderr
    assert installation.run("get", ids[0]).returncode == 3
    rest = installation.run("delete", "--filter", "label.batch=gone", "--filter", "status=cancelled", "--yes")
    assert "1 run deleted" in rest.stderr
    assert installation.run("get", ids[1]).returncode == 3


def test_retry_by_filter(installation: Installation) -> None:
    assert installation.run("start", "fails", "--label", "batch=again", "--wait").returncode == 1
    done = installation.run("retry", "--label", "batch=again", "--yes")
    assert "1 run reopened" in done.stderr


def test_resume_by_filter(installation: Installation) -> None:
    ids = starts(installation, 2, "rest")
    for run_id in ids:
        assert installation.run("pause", run_id).returncode == 0
        until(
            installation, run_id, has_status("paused")
        )  # a run that is being worked on is paused when its worker hears of it
    shown_first = installation.run("resume", "--workflow", "sleeps", "--label", "batch=rest", "--no-problem")
    assert shown_first.returncode == 2
    assert "2 runs match; nothing was done" in shown_first.stderr
    done = installation.run("resume", "--label", "batch=rest", "--since", "1h", "--yes")
    assert (done.returncode, "2 runs resumed" in done.stderr) == (0, True), done.stderr
    assert all(get(installation, run_id)["status"] != "paused" for run_id in ids)
    assert installation.run("terminate", "--label", "batch=rest", "--yes").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("cancel",), "select runs with options"),
        (("cancel", "some-run", "--status", "failed"), "not both"),
        (("resume",), "select runs with options"),
        (("resume", "some-run", "--problem"), "not both"),
        (("retry", "--status", "failed", "--from-step", "x"), "--from-step needs a RUN"),
        (("delete", "--filter", "colour=red"), "is not one of"),
        (("delete", "--filter", "status=tired"), "is not one of"),
        (("export",), "--all"),
        (("export", "some-run", "--all"), "--all"),
        (("export", "some-run", "--status", "failed"), "need --all"),
    ],
)
def test_what_makes_no_sense_is_refused(installation: Installation, arguments: tuple[str, ...], words: str) -> None:
    refused = installation.run(*arguments)
    assert refused.returncode == 2
    assert words in refused.stderr


def test_export_and_import(installation: Installation, tmp_path: Path) -> None:
    start(installation, "echo", '{"a": 1.0}', "--id", "moved", "--label", "batch=moved", "--wait")
    start(installation, "echo", "2", "--label", "batch=moved", "--wait")
    file = tmp_path / "runs.jsonl"
    done = installation.run("export", "--all", "--label", "batch=moved", "-o", str(file))
    assert (done.returncode, done.stdout) == (0, "")
    assert "2 runs exported" in done.stderr
    one = installation.run("export", "moved")
    assert one.stdout in file.read_text()
    assert json.loads(one.stdout.splitlines()[0])["run"]["run_id"] == get(installation, "moved")["run_id"]
    target = f"sqlite:///{tmp_path}/other.db"
    assert kagzi("db", "migrate", "--db", target).returncode == 0
    imported = kagzi("import", str(file), "--address", target)
    assert imported.returncode == 0, imported.stderr
    assert len(imported.stdout.split()) == 2
    again = kagzi("import", str(file), "--address", target, "--json")
    assert [view["created"] for view in json.loads(again.stdout)] == [False, False]
    assert "2 already existed" in again.stderr
    view = json.loads(kagzi("get", "moved", "--address", target, "--json").stdout)
    assert view["output"] == {"a": 1.0}
    file.write_text(file.read_text().replace('"seq":2', '"seq":"two"'))
    damaged = kagzi("import", str(file), "--address", target)
    assert damaged.returncode == 5
    assert "line" in damaged.stderr
