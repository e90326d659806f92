"""kagzi schedule: by people and by scripts."""

import json
from typing import Any

from tests.cli.conftest import Installation
from tests.cli.test_verbs import has_status, until


def as_json(installation: Installation, *arguments: str) -> Any:
    done = installation.run("schedule", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_schedule_from_its_making_to_its_end(installation: Installation) -> None:
    made = as_json(
        installation, "create", "nightly", "echo", "name=ada", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin"
    )
    assert (made["cron"], made["timezone"], made["input"]) == ("30 2 * * *", "Europe/Berlin", {"name": "ada"})
    again = installation.run("schedule", "create", "nightly", "echo", "--cron", "0 6 * * *")
    assert again.returncode == 5
    assert "exists" in again.stderr
    same = ("create", "nightly", "echo", "name=ada", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin", "--upsert")
    assert as_json(installation, *same) == made
    changed = as_json(installation, "update", "nightly", "--overlap", "skip", "--catchup", "3", "--label", "team=a")
    assert (changed["overlap"], changed["max_catchup"], changed["labels"]) == ("skip", 3, {"team": "a"})
    assert as_json(installation, "pause", "nightly", "--reason", "holiday")["paused_reason"] == "holiday"
    people = installation.run("schedule", "get", "nightly").stdout
    assert "30 2 * * *  (Europe/Berlin)" in people
    assert "holiday" in people
    assert "paused" in installation.run("schedule", "list").stdout
    run_id = installation.run("schedule", "trigger", "nightly").stdout.strip()
    run = until(installation, run_id, has_status("completed"))
    assert (run["output"], run["schedule"], run["labels"]) == ({"name": "ada"}, "nightly", {"team": "a"})
    filled = as_json(
        installation, "backfill", "nightly", "--from", "2026-03-28T00:00:00Z", "--to", "2026-03-30T00:00:00Z"
    )
    assert [fire["nominal_at"] for fire in filled] == ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z"]
    fires = as_json(installation, "runs", "nightly")
    assert [fire["cause"] for fire in fires] == ["trigger", "backfill", "backfill"]
    assert filled[0]["run_id"] in installation.run("schedule", "runs", "nightly").stdout
    lines = installation.run("schedule", "list", "--jsonl").stdout.splitlines()
    assert "nightly" in {json.loads(line)["schedule"] for line in lines}
    assert as_json(installation, "resume", "nightly")["next_at"]
    assert as_json(installation, "delete", "nightly", "--yes") == {"schedule": "nightly", "deleted": True}
    gone = installation.run("schedule", "get", "nightly")
    assert gone.returncode == 3
    assert "kagzi schedule list" in gone.stderr
    assert installation.run("schedule", "delete", "nightly", "--yes").returncode == 3


def test_a_preview_shows_the_clock_on_the_wall_and_utc(installation: Installation) -> None:
    arguments = (
        "--cron",
        "30 2 * * *",
        "--timezone",
        "Europe/Berlin",
        "--after",
        "2026-03-28T12:00:00Z",
        "--count",
        "2",
    )
    people = installation.run("schedule", "preview", *arguments).stdout
    assert "Sun 2026-03-29 03:00:00  CEST (Europe/Berlin)  2026-03-29T01:00:00Z" in people
    views = as_json(installation, "preview", *arguments)
    assert views[1] == {"local": "Mon 2026-03-30 02:30:00", "zone": "CEST", "utc": "2026-03-30T00:30:00Z"}
    as_json(installation, "create", "often", "echo", "--every", "5m", "--paused")
    assert len(as_json(installation, "preview", "often")) == 10
    zoned = installation.run("schedule", "update", "often", "--timezone", "Europe/Berlin")
    assert zoned.returncode == 5
    assert "--timezone is given with an interval" in zoned.stderr
    assert "use --cron" in zoned.stderr


def test_what_cannot_be_is_refused_with_the_remedy(installation: Installation) -> None:
    for arguments, code, says in (
        (("create", "x", "echo"), 2, "exactly one of --cron and --every"),
        (("create", "x", "echo", "--cron", "* * * * *", "--every", "5m"), 2, "--cron and --every cannot be combined"),
        (("create", "x", "echo", "--every", "5m", "--timezone", "Europe/Berlin"), 2, "--timezone needs --cron"),
        (("create", "x", "echo", "--every", "100ms"), 5, "--every 100ms is below the minimum, 1s"),
        (("create", "x", "echo", "--every", "5m", "--catchup", "999999999"), 5, "--catchup 999999999 must be"),
        (("create", "x", "echo", "--cron", "0 0 30 2 *"), 5, "day-of-month"),
        (("create", "x", "echo", "--cron", "* * * * *", "--timezone", "Mars/Base"), 5, "time zone"),
        (("create", "x", "echo", "--every", "5"), 2, "unit"),
        (("update", "x"), 2, "nothing to change"),
        (("preview",), 2, "--cron"),
        (("backfill", "x", "--from", "2026-01-01", "--to", "2026-01-02T00:00:00Z"), 2, "time zone"),
        (("trigger", "x"), 3, "schedule x not found"),
    ):
        done = installation.run("schedule", *arguments)
        assert (done.returncode, says in done.stderr) == (code, True), (arguments, done.stderr)
