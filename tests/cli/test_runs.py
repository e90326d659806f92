"""start, list, get, cancel: what goes to stdout, what to stderr, and the exit codes that scripts rely on."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Installation
from tests.support.kagzi_process import running

RUN_ID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
CHILDREN = ("children", "children_count", "children_capped")
RUN_KEYS = {
    "run_id", "workflow_id", "workflow", "version", "namespace", "status", "wait_reason", "attempt", "priority",
    "labels", "created_at", "started_at", "finished_at", "wake_at", "deadline_at", "worker_id", "cancel_requested",
    "pause_requested", "error", "problem", "status_text", "progress", "parent_run_id", "parent_step_id", "forked_from",
    "continued_as", "url", "blocked_by", "pause_reason", "concurrency_key", "schedule", "awaits_signal",
    "unread_signals", "handed_on_to", "retrying_steps", "claims", "own_traces_from", "pinned_build", "ready_at",
    "queued_at", "queued",
}  # fmt: skip


def start(installation: Installation, *arguments: str) -> str:
    done = installation.run("start", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def get(installation: Installation, name: str, *arguments: str) -> Any:
    done = installation.run("get", name, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["world"], "world"),
        (["42"], "42"),
        (['{"a": [1, null]}'], '{"a": [1, null]}'),
        (["user=ada", "total:=9.5"], '{"user": "ada", "total": 9.5}'),
        (["söß"], "söß"),
    ],
)
def test_start_and_wait_prints_the_result_on_stdout_and_the_id_on_stderr(
    installation: Installation, arguments: list[str], printed: str
) -> None:
    done = installation.run("start", "echo", *arguments, "--wait")
    assert (done.returncode, done.stdout) == (0, f"{printed}\n")
    assert re.fullmatch(rf"run ({RUN_ID}) started\n  http://\S+/runs/\1\n", done.stderr)


def test_input_from_a_file_and_from_stdin(installation: Installation, tmp_path: Path) -> None:
    (tmp_path / "order.json").write_text('{"user": "ada"}')
    assert installation.run("start", "echo", f"@{tmp_path / 'order.json'}", "--wait").stdout == '{"user": "ada"}\n'
    assert installation.run("start", "echo", "-", "--wait", stdin="from stdin\n").stdout == "from stdin\n"


def test_a_workflow_without_input_and_result(installation: Installation) -> None:
    assert installation.run("start", "nothing", "--wait").stdout == "null\n"


def test_start_prints_the_run_id_and_get_shows_the_run(installation: Installation) -> None:
    run_id = start(installation, "echo", "hi", "--id", "shown", "--label", "team=a", "--label", "tier=b")
    installation.run("start", "echo", "hi", "--id", "shown", "--wait")
    view = get(installation, run_id)
    assert RUN_KEYS | {"input", "context", "output", "waits", *CHILDREN, "scheduled_at", "state", "state_at"} == set(
        view
    )
    assert view["run_id"] == run_id
    assert view["workflow_id"] == "shown"
    assert view["labels"] == {"team": "a", "tier": "b"}
    assert view["input"] == "hi"


def test_a_run_is_named_by_id_by_prefix_or_by_workflow_id(installation: Installation) -> None:
    run_id = start(installation, "echo", "1", "--id", "findable", "--on-conflict", "existing_or_completed")
    assert get(installation, run_id)["run_id"] == run_id
    assert get(installation, "findable")["run_id"] == run_id
    assert get(installation, run_id[:-4])["run_id"] == run_id
    assert get(installation, run_id.upper())["run_id"] == run_id


def test_a_prefix_of_many_runs_is_refused_with_the_candidates(installation: Installation) -> None:
    ids = [start(installation, "nothing") for _ in range(2)]
    done = installation.run("get", ids[0][:4])
    assert done.returncode == 2
    assert "more than one run id" in done.stderr
    assert any(run_id in done.stderr for run_id in ids)


def test_what_is_not_there_is_exit_code_3(installation: Installation) -> None:
    for name in ("no-such-run", "01234567-89ab-7cde-8f01-23456789abcd", "0123abcd"):
        for command in ("get", "cancel"):
            done = installation.run(command, name)
            assert (done.returncode, done.stdout) == (3, "")
            assert f"run {name} not found" in done.stderr
            assert "kagzi list" in done.stderr


def test_a_failed_run_is_exit_code_1_and_the_error_goes_to_stderr(installation: Installation) -> None:
    done = installation.run("start", "fails", "--id", "failing", "--wait")
    assert (done.returncode, done.stdout) == (1, "")
    assert "the card is stolen" in done.stderr
    assert "kagzi get" in done.stderr
    shown = installation.run("get", "failing", "--error")
    assert shown.returncode == 0
    assert "the card is stolen" in shown.stdout
    assert get(installation, "failing")["status"] == "failed"


def test_steps_with_their_attempts(installation: Installation) -> None:
    assert installation.run("start", "retries", "--id", "retrying", "--wait").stdout == "at last\n"
    view = get(installation, "retrying", "--steps")
    (step,) = view["steps"]
    assert (step["step_id"], step["status"], step["attempt"], step["output"]) == ("call", "completed", 2, "at last")
    assert [earlier["error"]["text"] for earlier in step["attempts"]] == ["ConnectionError: the line is bad"]
    people = installation.run("get", "retrying", "--steps")
    assert "ConnectionError: the line is bad" in people.stdout
    assert "\x1b[" not in people.stdout  # not a terminal: no colours


def test_one_part_of_a_run(installation: Installation) -> None:
    installation.run("start", "echo", '{"a": 1}', "--id", "parts", "--wait")
    assert json.loads(installation.run("get", "parts", "--input").stdout) == {"a": 1}
    assert json.loads(installation.run("get", "parts", "--output").stdout) == {"a": 1}
    assert installation.run("get", "parts", "--error").stdout == ""
    assert installation.run("get", "parts", "--input", "--output").returncode == 2


def test_long_values_are_cut_for_people_and_whole_for_programs(installation: Installation, tmp_path: Path) -> None:
    text = "kagzi" * 300_000
    (tmp_path / "long.json").write_text(json.dumps({"text": text}))
    assert installation.run("start", "echo", f"@{tmp_path / 'long.json'}", "--id", "long", "--wait").returncode == 0
    shown = installation.run("get", "long", "--steps").stdout
    assert len(shown) < 10_000
    assert shown.count("... (1.5 MB in all; --json prints it)") == 3  # input, output, and the output of the step
    assert get(installation, "long")["input"] == {"text": text}
    assert json.loads(installation.run("get", "long", "--output").stdout) == {"text": text}


def test_waiting_can_end_before_the_run_does(installation: Installation) -> None:
    done = installation.run("start", "sleeps", "1h", "--id", "sleeper", "--wait", "--timeout", "300ms")
    assert (done.returncode, done.stdout) == (124, "")
    assert "kagzi get" in done.stderr
    cancelled = installation.run("cancel", "sleeper", "--reason", "enough")
    assert cancelled.returncode == 0
    assert "asked to stop" in cancelled.stderr or "is cancelled" in cancelled.stderr


def test_a_delayed_start_sleeps_and_can_be_cancelled_at_once(installation: Installation) -> None:
    run_id = start(installation, "nothing", "--delay", "1h")
    view = get(installation, run_id)
    assert (view["status"], view["wait_reason"]) == ("sleeping", "time")
    assert json.loads(installation.run("cancel", run_id, "--json").stdout) == {"run_id": run_id, "status": "cancelled"}


def test_the_same_id_is_the_same_run_or_refused(installation: Installation) -> None:
    first = start(installation, "sleeps", "1h", "--id", "taken")
    again = installation.run("start", "sleeps", "1h", "--id", "taken")
    assert again.stdout.strip() == first
    assert "already exists" in again.stderr
    refused = installation.run("start", "sleeps", "1h", "--id", "taken", "--on-conflict", "fail")
    assert (refused.returncode, refused.stdout) == (5, "")
    replaced = start(installation, "sleeps", "1h", "--id", "taken", "--on-conflict", "replace")
    assert replaced != first
    assert get(installation, first)["status"] == "cancelled"


def test_list_filters_and_counts(installation: Installation) -> None:
    ids = [start(installation, "nothing", "--label", "batch=listed", "--id", f"listed-{n}") for n in range(3)]
    listed = installation.run("list", "--label", "batch=listed", "--jsonl")
    views = [json.loads(line) for line in listed.stdout.splitlines()]
    assert [view["run_id"] for view in views] == ids[::-1]
    assert set(views[0]) == RUN_KEYS
    assert len(json.loads(installation.run("list", "--label", "batch=listed", "--json").stdout)) == 3
    assert json.loads(installation.run("list", "--workflow", "no-such", "--json").stdout) == []
    assert json.loads(installation.run("list", "--since", "0s", "--json").stdout) == []
    limited = installation.run("list", "--label", "batch=listed", "--limit", "2")
    assert "more than 2" in limited.stderr
    table = limited.stdout.splitlines()
    assert len(table) == 3
    assert ids[-1] in table[1]  # never cut off


def test_lists_by_end_and_by_the_beginning_of_an_id(installation: Installation) -> None:
    ended = [start(installation, "nothing", "--label", "batch=ended", "--id", f"ended-{n}", "--wait") for n in (1, 2)]
    ended = [get(installation, f"ended-{n}")["run_id"] for n in (1, 2)]
    start(installation, "sleeps", "1h", "--label", "batch=ended", "--id", "ended-not")
    batch = ("--label", "batch=ended")

    def listed(*options: str) -> list[str]:
        return [view["run_id"] for view in json.loads(installation.run("list", "--json", *options).stdout)]

    assert listed(*batch, "--order", "ended") == listed(*batch, "--ended-since", "1h") == ended[::-1]
    assert listed(*batch, "--ended-until", "1h") == []
    assert installation.run("list", *batch, "--order", "ended").stdout.splitlines()[0].split()[-1] == "ENDED"
    refused = installation.run("list", "--order", "created", "--ended-since", "1h")
    assert (refused.returncode, "listed by end" in refused.stderr) == (5, True)

    assert listed("--id-prefix", "ended-", "--status", "completed") == ended[::-1]
    assert listed("--id-prefix", ended[0][:-1]) == ended[:1]
    assert get(installation, ended[0][:-1])["run_id"] == ended[0], "any command takes the beginning of a run id"
    for command in (("cancel", "--id-prefix", "ended-", "--yes"), ("export", "--all", "--id-prefix", "ended-")):
        refused = installation.run(*command)
        assert (refused.returncode, "search" in refused.stderr) == (2, True), command
    assert listed("--failing", *batch) == listed("--waiting", *batch) == []
    assert len(listed("--no-failing", "--no-waiting", *batch)) == 3
    installation.run("cancel", "ended-not")


def test_an_interrupted_wait_says_which_run_goes_on(installation: Installation) -> None:
    arguments = ("start", "sleeps", "1h", "--id", "left-alone", "--wait", "--address", installation.address)
    with running(*arguments) as command:
        run_id = command.says(rf"run ({RUN_ID}) started")[1]
        assert command.interrupt() == 130
    where = f" --address {installation.address}"  # it was typed, and is needed again
    assert command.out == []
    assert [line for line in command.err if line and "/runs/" not in line] == [
        f"run {run_id} started",
        f"interrupted; run {run_id} continues",
        f"hint: kagzi get {run_id}{where} shows it, kagzi tail {run_id}{where} follows it to its end",
    ]
    assert get(installation, run_id)["workflow_id"] == "left-alone"


def test_broken_json_is_refused_and_text_is_taken_as_text(installation: Installation) -> None:
    done = installation.run("start", "echo", "{user: ada}", "--wait")
    assert (done.returncode, done.stdout) == (2, "")
    assert "at column 2" in done.stderr
    assert "--text" in done.stderr
    assert installation.run("start", "echo", "{user: ada}", "--text", "--wait").stdout == "{user: ada}\n"
    assert installation.run("start", "echo", "42", "--text", "--wait", "--json").stdout.count('"output": "42"') == 1


def test_an_unknown_workflow_type_waits_and_says_why(installation: Installation) -> None:
    done = installation.run("start", "hullo", "world", "--wait", "--timeout", "4s")
    assert done.returncode == 124
    assert "No worker serves 'hullo'." in done.stderr
    assert "echo" in done.stderr  # what is served
    assert "kagzi worker" in done.stderr


def test_names_that_nobody_serves_cause_a_warning_wherever_they_are_typed(installation: Installation) -> None:
    for command, consequence in (
        (("start", "retris"), "The run waits until one does."),
        (("schedule", "create", "typo", "retris", "--cron", "0 6 * * *"), "Its runs will wait until one does."),
        (("workflows", "limit", "retris", "--max-running", "5"), "The setting takes effect when one does."),
    ):
        done = installation.run(*command)
        assert done.returncode == 0
        assert f"warning: No worker serves 'retris'. Did you mean 'retries'? {consequence}" in done.stderr


def test_namespaces_are_apart(installation: Installation) -> None:
    start(installation, "nothing", "--id", "mine", "--namespace", "other")
    assert installation.run("get", "mine").returncode == 3
    assert installation.run("get", "mine", "--namespace", "other").returncode == 0


def test_colours_are_not_for_pipes_and_json_is_one_line(installation: Installation) -> None:
    done = installation.run("start", "nothing", "--json")
    assert len(done.stdout.splitlines()) == 1
    assert set(json.loads(done.stdout)) == {"run_id", "workflow_id", "status", "created", "url"}
