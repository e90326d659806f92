"""`kagzi tail`: what happens, as it happens."""

import json
import re
import signal
from typing import Any

from tests.cli.conftest import Installation
from tests.cli.test_runs import start
from tests.support.kagzi_process import running


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_run_that_has_ended_is_shown_whole(installation: Installation) -> None:
    run_id = start(installation, "retries", "--id", "tailed", "--wait")
    done = installation.run("tail", "tailed", "--jsonl")
    events = lines(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert {event["run_id"] for event in events} == {events[0]["run_id"]}
    assert [event["kind"] for event in events] == [
        "run_started",
        "step_started",
        "step_retrying",
        "step_started",
        "step_completed",
        "run_completed",
    ]
    assert events[2]["error"]["message"] == "the line is bad"
    assert events[-1]["output"] == "at last"
    rest = lines(installation.run("tail", "tailed", "--after", str(events[3]["seq"]), "--jsonl").stdout)
    assert rest == events[4:]
    day, *people = installation.run("tail", "tailed").stdout.splitlines()
    assert re.fullmatch(r"--- \d{4}-\d\d-\d\d UTC[+-]\d\d:\d\d", day)
    assert len(people) == 6
    assert "step retrying" in people[2]
    assert "the line is bad" in people[2]
    assert run_id  # printed by start


def test_a_failed_run_makes_it_exit_with_1(installation: Installation) -> None:
    start(installation, "fails", "--id", "tail-failed")
    done = installation.run("tail", "tail-failed")
    assert done.returncode == 1
    assert "the card is stolen" in done.stdout


def test_a_run_is_followed_to_its_end(installation: Installation) -> None:
    start(installation, "approval", "40", "--id", "followed")
    with running("tail", "followed", "--address", installation.address) as tail:
        tail.says("signal awaited +decision")
        tail.says("waiting for a human: 40 EUR 50%")
        installation.run("pause", "followed", "--reason", "lunch")
        tail.says("run paused: lunch")
        assert "lunch" in installation.run("get", "followed").stdout
        assert installation.run("explain", "followed").stdout == "It was paused: lunch.\n"
        installation.run("resume", "followed")
        installation.run("signal", "followed", "decision", "by=ada")
        tail.says("signal received +decision")
        tail.says("run completed +ada")
        assert tail.process.wait(60) == 0


def test_all_runs_are_shown_when_they_change(installation: Installation) -> None:
    first = start(installation, "approval", "1", "--id", "all-1", "--label", "tail=all")
    options = ("--label", "tail=all", "--jsonl", "--address", installation.address)
    with running("tail", *options) as tail:
        tail.says(f'"run_id": "{first}".*"status": "(pending|running|sleeping)"')
        second = start(installation, "approval", "2", "--id", "all-2", "--label", "tail=all")
        tail.says(f'"run_id": "{second}"')
        installation.run("terminate", "all-1")
        tail.says(f'"run_id": "{first}".*"status": "cancelled"')
        tail.process.send_signal(signal.SIGINT)
        assert tail.process.wait(60) == 130
    assert {view["run_id"] for view in lines("\n".join(tail.out))} == {first, second}


def test_options_that_cannot_be_combined_are_refused(installation: Installation) -> None:
    for arguments in (("RUN", "--status", "failed"), ("--after", "3")):
        done = installation.run("tail", *arguments)
        assert done.returncode == 2, arguments
        assert "RUN" in done.stderr
    assert installation.run("tail", "no-such-run").returncode == 3
