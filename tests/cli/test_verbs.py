"""signal, pause, resume, terminate, retry, fork, explain, count: by people and by scripts."""

import json
import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Installation
from tests.cli.test_runs import get, start
from tests.support.timeouts import LOADED_MACHINE_S

DEADLINE_S = LOADED_MACHINE_S
POLL_S = 0.05


def until(installation: Installation, name: str, wanted: Callable[[Any], bool]) -> Any:
    """The run, once it is as wanted."""
    end = time.monotonic() + DEADLINE_S
    while True:
        view = get(installation, name)
        if wanted(view):
            return view
        assert time.monotonic() < end, view
        time.sleep(POLL_S)


def has_status(status: str) -> Callable[[Any], bool]:
    return lambda view: view["status"] == status


def test_a_run_that_waits_says_for_what_and_gets_its_signal(installation: Installation) -> None:
    start(installation, "approval", "40", "--id", "approved")
    view = until(installation, "approved", has_status("sleeping"))
    assert (view["wait_reason"], view["waits"]) == ("signal", ["decision"])
    assert (view["status_text"], view["progress"]) == ("waiting for a human: 40 EUR", 0.5)
    assert view["state"] == {"amount": 40, "asked": ["ada"]}
    people = installation.run("get", "approved").stdout
    assert '{"amount": 40, "asked": ["ada"]}' in people
    assert "waiting for a human: 40 EUR (50%)" in people
    assert "waits for" in people
    why = installation.run("explain", "approved")
    assert why.returncode == 0
    assert "decision" in why.stdout
    sent = installation.run("signal", "approved", "decision", "approved:=true", "by=ada")
    assert (sent.returncode, sent.stdout) == (0, "")
    assert "was waiting for 'decision'" in sent.stderr
    assert until(installation, "approved", has_status("completed"))["output"] == "ada"
    late = installation.run("signal", "approved", "decision", "by=eve")
    assert late.returncode == 5


def test_an_early_signal_is_kept_and_sent_twice_is_one(installation: Installation) -> None:
    run_id = start(installation, "approval", "1", "--id", "early", "--delay", "1h")
    for _ in range(2):
        sent = installation.run("signal", "early", "decision", "by=bob", "--request-id", "click-1", "--json")
        assert json.loads(sent.stdout) == {"run_id": run_id, "signal": "decision", "delivered": False}
    assert "is kept until" in installation.run("signal", "early", "other").stderr


def test_a_start_or_signal_that_does_not_fit_is_refused_and_changes_nothing(installation: Installation) -> None:
    start(installation, "w", "--id", "typed")
    until(installation, "typed", has_status("sleeping"))
    sent = installation.run("signal", "typed", "go")
    assert sent.returncode == 5
    assert "signal: expected a whole number, got null" in sent.stderr
    shown = json.loads(installation.run("workflows", "schema", "w", "--json").stdout)
    assert (shown["input_schema"], shown["signal_schemas"]) == ({"type": "null"}, {"go": {"type": "integer"}})
    assert '{"type": "integer"}' in installation.run("workflows", "schema", "w").stdout
    refused = installation.run("start", "approval", "forty")
    assert refused.returncode == 5
    assert "INPUT: expected a whole number, got string" in refused.stderr
    installation.run("signal", "typed", "go", "5")
    assert until(installation, "typed", has_status("completed"))["output"] == 5


def test_a_signal_that_does_not_fit_is_replaced(installation: Installation) -> None:
    run_id = start(installation, "w-unchecked", "--id", "w")
    installation.run("signal", "w", "go")
    view = until(installation, "w", has_status("paused"))
    assert "does not fit int" in view["problem"]["message"]
    assert "does not fit int" in installation.run("get", "w").stdout
    explained = installation.run("explain", "w")
    why = explained.stdout + explained.stderr
    assert f"kagzi signal {run_id} go VALUE --replace" in why
    assert f"kagzi signal {run_id} go --drop" in why
    refused = installation.run("signal", "w", "stop", "5", "--replace")
    assert refused.returncode == 5
    assert "has no signal 'stop'" in refused.stderr
    done = installation.run("signal", "w", "go", "5", "--replace", "--request-id", "fix")
    assert (done.returncode, done.stdout) == (0, "")
    assert "was replaced; the run continues" in done.stderr
    assert until(installation, "w", has_status("completed"))["output"] == 5
    again = installation.run("signal", "w", "go", "5", "--replace", "--request-id", "fix", "--json")
    assert json.loads(again.stdout) == {"run_id": run_id, "signal": "go", "replaced": True, "resumed": False}


def test_a_signal_that_nobody_waits_for_yet_is_dropped_or_replaced(installation: Installation) -> None:
    run_id = start(installation, "w", "--id", "later", "--delay", "1h")
    for value in ("1", "2"):
        installation.run("signal", "later", "go", value)
    dropped = installation.run("signal", "later", "go", "--drop", "--json")
    assert json.loads(dropped.stdout) == {"run_id": run_id, "signal": "go", "dropped": True, "resumed": False}
    assert "has not waited for yet, was replaced" in installation.run("signal", "later", "go", "3", "--replace").stderr


def test_replace_and_drop_cannot_be_combined(installation: Installation) -> None:
    assert installation.run("signal", "any", "go", "--replace", "--drop").returncode == 2
    wrong = installation.run("signal", "any", "go", "5", "--drop")
    assert wrong.returncode == 2
    assert "--replace" in wrong.stderr


def test_a_run_that_sleeps_is_woken(installation: Installation) -> None:
    run_id = start(installation, "sleeps", "1h", "--id", "woken")
    until(installation, "woken", has_status("sleeping"))
    done = json.loads(installation.run("wake", "woken", "--json").stdout)
    assert done == {"run_id": run_id, "step": "", "woken": True, "status": "pending"}
    until(installation, "woken", has_status("completed"))
    late = installation.run("wake", "woken")
    assert late.returncode == 5
    assert "has ended (completed)" in late.stderr


def test_pause_and_resume(installation: Installation) -> None:
    run_id = start(installation, "sleeps", "1h", "--id", "paused")
    until(installation, "paused", has_status("sleeping"))
    done = installation.run("pause", "paused", "--reason", "lunch")
    assert "is paused" in done.stderr
    assert f"kagzi resume {run_id}" in done.stderr
    assert get(installation, "paused")["status"] == "paused"
    assert "paused" in installation.run("explain", "paused").stdout
    resumed = json.loads(installation.run("resume", "paused", "--json").stdout)
    assert resumed["run_id"] == run_id
    assert resumed["status"] in ("pending", "sleeping", "running")


def test_terminate(installation: Installation) -> None:
    run_id = start(installation, "sleeps", "1h", "--id", "terminated")
    until(installation, "terminated", has_status("sleeping"))
    assert "is cancelled" in installation.run("terminate", "terminated", "--reason", "enough").stderr
    view = get(installation, "terminated")
    assert (view["status"], view["error"]["kind"]) == ("cancelled", "terminated")
    installation.run("start", "nothing", "--id", "over", "--wait")
    assert "has already completed" in installation.run("terminate", "over").stderr
    assert "completed: nothing to pause" in installation.run("pause", "over").stderr
    assert "terminated" in installation.run("explain", run_id).stdout


def test_retry_reopens_a_failed_run_where_it_failed(installation: Installation, tmp_path: Path) -> None:
    path = tmp_path / "late.txt"
    assert installation.run("start", "reads", str(path), "--id", "late", "--wait").returncode == 1
    path.write_text("hello")
    done = installation.run("retry", "late")
    assert (done.returncode, done.stdout) == (0, "")
    assert "kagzi get" in done.stderr
    view = until(installation, "late", has_status("completed"))
    assert view["output"] == "it says hello"
    shown = json.loads(installation.run("get", "late", "--steps", "--json").stdout)
    before = [attempt for step in shown["steps"] for attempt in step["attempts"]]
    assert [(each["attempt"], each["before_retry"], each["input"]) for each in before] == [
        (1, True, {"path": str(path)})
    ]
    assert "before the retry: FileNotFoundError" in installation.run("get", "late", "--steps").stdout
    both = json.loads(installation.run("get", "late", "--steps", "--forgotten", "--json").stdout)
    [discarded] = both["forgotten_steps"]
    assert (discarded["step_id"], discarded["status"]) == ("read", "failed")
    assert discarded["retried_at"] > discarded["finished_at"]
    assert {(step["retry_seq"], step["retried_at"]) for step in both["steps"]} == {(None, None)}
    table = installation.run("get", "late", "--forgotten").stdout
    assert "before the retry of " in table
    assert "FileNotFoundError" in table
    again = installation.run("retry", "late")
    assert again.returncode == 5  # it has not failed


def test_fork_goes_on_from_the_middle_with_another_result(installation: Installation, tmp_path: Path) -> None:
    path = tmp_path / "there.txt"
    path.write_text("hello")
    source = start(installation, "reads", str(path), "--id", "source")
    until(installation, "source", has_status("completed"))
    forked = installation.run("fork", source, "--from-step", "read", "--output", "prefix=it shouts ", "--id", "other")
    assert forked.returncode == 0, forked.stderr
    view = until(installation, "other", has_status("completed"))
    assert view["run_id"] == forked.stdout.strip()
    assert (view["output"], view["forked_from"]) == ("it shouts hello", source)
    nowhere = installation.run("fork", source, "--from-step", "no-such")
    assert nowhere.returncode in (3, 5)
    assert "has no step 'no-such'" in nowhere.stderr


def test_parent_and_children_are_linked_both_ways(installation: Installation) -> None:
    run_id = start(installation, "family", '["a", "b", "c"]', "--id", "family")
    view = until(installation, "family", has_status("completed"))
    assert (view["output"], len(view["children"])) == (["a", "b", "c"], 3)
    assert all(get(installation, child)["parent_run_id"] == run_id for child in view["children"])
    listed = json.loads(installation.run("list", "--parent", run_id, "--json").stdout)
    assert {each["run_id"] for each in listed} == set(view["children"])
    steps = get(installation, "family", "--steps")["steps"]
    assert {step["child_run_id"] for step in steps if step["kind"] == "child"} == set(view["children"])
    assert installation.run("count", "--parent", run_id).stdout == "3\n"


def test_count(installation: Installation) -> None:
    for number in range(3):
        start(installation, "nothing", "--label", "batch=counted", "--id", f"counted-{number}")
    assert installation.run("count", "--label", "batch=counted").stdout == "3\n"
    assert json.loads(installation.run("count", "--workflow", "no-such", "--json").stdout) == {
        "count": 0,
        "capped": False,
    }


def test_explain_says_that_nobody_serves_a_workflow(installation: Installation) -> None:
    run_id = start(installation, "unheard-of", "1")
    view = json.loads(installation.run("explain", run_id, "--json").stdout)
    assert set(view) == {"run_id", "sentence", "reason", "facts", "remedy"}
    assert "unheard-of" in view["sentence"]
    people = installation.run("explain", run_id)
    assert people.stdout == f"{view['sentence']}\n"
    hint, page = people.stderr.splitlines()
    assert hint == f"hint: {view['remedy']}"
    assert page.endswith(f"/runs/{run_id}")


# A command in a remedy ends with the sentence, or where the next one begins.
COMMAND = re.compile(r"\bkagzi ((?:[^ ;,.]|\.(?=\S))+(?: (?!gives|or\b|and\b|drops)(?:[^ ;,.]|\.(?=\S))+)*)")
PLACEHOLDERS = {"VALUE": "5", "N": "10"}


def commands_of(installation: Installation, name: str, reason: str) -> list[list[str]]:
    """What `kagzi explain` says can be typed."""
    view = json.loads(installation.run("explain", name, "--json").stdout)
    assert view["reason"] == reason, view
    commands = [shlex.split(command) for command in COMMAND.findall(view["remedy"])]
    assert commands, view
    return [[PLACEHOLDERS.get(word, word) for word in words] for words in commands]


def test_every_command_that_explain_prints_works(installation: Installation) -> None:
    """Of each reason for which it prints any, as far as a client can bring it about."""
    run = installation.run
    start(installation, "echo", "1", "--id", "x-version", "--version", "7")
    start(installation, "w", "--id", "x-signal")
    until(installation, "x-signal", has_status("sleeping"))
    start(installation, "w-unchecked", "--id", "x-misfit")
    until(installation, "x-misfit", has_status("sleeping"))
    run("signal", "x-misfit", "go", "none")
    until(installation, "x-misfit", has_status("paused"))
    start(installation, "sleeps", "1h", "--id", "x-paused", "--delay", "1h")
    run("pause", "x-paused")
    run("start", "fails", "--id", "x-failed", "--wait")
    start(installation, "guards", "--id", "x-child")
    until(installation, "x-child", has_status("sleeping"))
    run("workflows", "limit", "nothing", "--rate", "0.01")
    run("start", "nothing", "--wait")
    start(installation, "nothing", "--id", "x-rate")
    run("workflows", "pause", "retries")
    start(installation, "retries", "--id", "x-type")
    expected = {
        "x-version": "no_worker_for_version",
        "x-signal": "waiting_for_signal",
        "x-misfit": "signal_does_not_fit",
        "x-paused": "paused",
        "x-failed": "failed",
        "x-child": "waiting_for_child",
        "x-rate": "rate_limit",
        "x-type": "type_paused",
    }
    verbs: set[str] = set()
    for name, reason in expected.items():
        for words in commands_of(installation, name, reason):
            done = run(*words)
            # A value that was replaced cannot be dropped any more: of two remedies the first is enough.
            assert done.returncode == 0 or "--drop" in words, (name, words, done.stderr)
            verbs.add(words[0])
    assert {"fork", "versions", "signal", "resume", "retry", "explain", "workflows"} <= verbs
    run("workflows", "limit", "nothing", "--rate", "none")


@pytest.mark.parametrize(
    "command",
    [
        ("signal", "nowhere", "x"),
        ("terminate", "nowhere"),
        ("pause", "nowhere"),
        ("resume", "nowhere"),
        ("retry", "nowhere"),
        ("fork", "nowhere", "--from-step", "x"),
        ("explain", "nowhere"),
    ],
)
def test_what_is_not_there_is_exit_code_3(installation: Installation, command: tuple[str, ...]) -> None:
    done = installation.run(*command)
    assert (done.returncode, done.stdout) == (3, "")
    assert "run nowhere not found" in done.stderr
