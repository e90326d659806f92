"""Schedules over HTTP: made, changed, looked at, fired and deleted, and refused as over gRPC."""

from typing import Any

from tests.server.http.nouns import Nouns

DAILY = {"workflow": "report", "cron": "30 2 * * *", "timezone": "Europe/Berlin", "input": {"name": "ada"}}
FUTURE = "2099-01-01T00:00:00Z"


def test_from_its_making_to_its_end(each_nouns: Nouns) -> None:
    nouns = each_nouns
    made = nouns.do("schedules", {"schedule": "nightly", **DAILY}, code=201)
    assert (made["schedule"], made["workflow"], made["cron"], made["every"]) == (
        "nightly",
        "report",
        "30 2 * * *",
        None,
    )
    assert (made["input"], made["context"], made["paused"], made["created"]) == ({"name": "ada"}, None, False, True)
    assert "No worker serves 'report'" in made["warning"]
    assert made["next_at"].endswith("00.000000Z")
    shown = nouns.get("schedules/nightly")
    assert shown == {key: value for key, value in made.items() if key not in ("created", "warning")}
    assert nouns.do("schedules", {"schedule": "nightly", **DAILY}, code=409)["code"] == "conflict"
    same = nouns.put("schedules/nightly", DAILY)
    assert (same["created"], same["next_at"], same["updated_at"]) == (False, made["next_at"], made["updated_at"])
    paused = nouns.do("schedules/nightly/pause", {"reason": "holidays"})
    assert (paused["paused"], paused["paused_reason"], paused["next_at"]) == (True, "holidays", None)
    assert nouns.do("schedules/nightly/resume")["paused"] is False
    run = nouns.do("schedules/nightly/trigger", key="once")
    assert run == nouns.do("schedules/nightly/trigger", key="once")
    assert run["run_id"] in run["url"]
    span = {"from": "2026-03-28T00:00:00Z", "to": "2026-03-30T00:00:00Z"}
    filled = nouns.do("schedules/nightly/backfill", span)
    assert [fire["nominal_at"][:16] for fire in filled["rows"]] == ["2026-03-28T01:30", "2026-03-29T01:00"]
    fires = nouns.get("schedules/nightly/fires", size=2, count=True)
    assert (fires["count"], [fire["cause"] for fire in fires["rows"]]) == (3, ["trigger", "backfill"])
    rest = nouns.get("schedules/nightly/fires", size=2, token=fires["next"])
    assert (len(rest["rows"]), rest["next"]) == (1, None)
    assert nouns.delete("schedules/nightly") == {"schedule": "nightly", "deleted": True}
    assert nouns.delete("schedules/nightly") == {"schedule": "nightly", "deleted": False}
    assert nouns.get("schedules/nightly", code=404)["code"] == "not_found"
    assert nouns.get("schedules/%00", code=404)["code"] == "not_found"  # what no store can hold is not there


def test_what_is_changed_and_what_stays(nouns: Nouns) -> None:
    nouns.put("schedules/s", {**DAILY, "labels": {"team": "a"}, "timeout": "1h", "context": [1], "version": "2"})
    changed = nouns.patch(
        "schedules/s",
        {"overlap": "skip", "max_catchup": 3, "catchup_window": "90m", "jitter": "1.5s", "priority": 7, "paused": True},
    )
    assert (changed["overlap"], changed["max_catchup"], changed["catchup_window"]) == ("skip", 3, "1h 30m")
    assert (changed["jitter"], changed["priority"], changed["paused"]) == ("1s 500ms", 7, True)
    assert (changed["cron"], changed["labels"], changed["timeout"]) == ("30 2 * * *", {"team": "a"}, "1h")
    every = nouns.patch("schedules/s", {"every": "5m", "cron": None})
    assert (every["cron"], every["timezone"], every["every"]) == (None, "UTC", "5m")
    bare = nouns.patch(
        "schedules/s",
        dict.fromkeys(("overlap", "max_catchup", "catchup_window", "jitter", "priority", "version", "timeout"))
        | {"labels": {}, "input": None, "context": None, "cron": "0 6 * * *", "start_at": FUTURE},
    )
    assert (bare["overlap"], bare["max_catchup"], bare["catchup_window"]) == ("allow", 100, "1d")
    assert (bare["version"], bare["timeout"], bare["labels"], bare["input"]) == (None, None, {}, None)
    assert bare["start_at"] == "2099-01-01T00:00:00.000000Z"
    moved = nouns.patch("schedules/s", {"start_at": None, "paused": False, "next_at": FUTURE})
    assert moved["next_at"] == "2099-01-01T06:00:00.000000Z"
    skipped = nouns.get("schedules/s/fires")["rows"][0]
    assert (skipped["run_id"], skipped["skipped"]) == (None, "next_fire_at was set to a later time")


def test_lists_carry_no_payloads_unless_they_are_asked_for(nouns: Nouns) -> None:
    for number in range(3):
        nouns.put(f"schedules/s{number}", {**DAILY, "workflow": "daily_report"})
    nouns.put("schedules/other", {**DAILY, "workflow": "other"})
    listed = nouns.get("schedules", workflow="daily-report", size=2, count=True)
    assert (listed["count"], listed["capped"]) == (3, False)
    assert [row["input"] for row in listed["rows"]] == [None, None]
    rest = nouns.get("schedules", workflow="daily_report", size=2, token=listed["next"], payloads=True)
    assert [(row["schedule"], row["input"]) for row in rest["rows"]] == [("s0", {"name": "ada"})]
    again = nouns.get("schedules", workflow="daily-report", size=2, token=rest["prev"])
    assert again["rows"] == listed["rows"]


def test_times_to_come(nouns: Nouns) -> None:
    after = "2026-03-28T12:00:00Z"
    unsaved_cron = {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "count": 2, "after": after}
    unsaved = nouns.do("schedules/preview", unsaved_cron)
    assert unsaved["rows"] == [
        {"local": "Sun 2026-03-29 03:00:00", "zone": "CEST", "utc": "2026-03-29T01:00:00.000000Z"},
        {"local": "Mon 2026-03-30 02:30:00", "zone": "CEST", "utc": "2026-03-30T00:30:00.000000Z"},
    ]
    nouns.put("schedules/preview", DAILY)  # a schedule may have this name
    assert nouns.get("schedules/preview/preview", count=2, after=after)["rows"] == unsaved["rows"]
    assert nouns.get("schedules/preview")["schedule"] == "preview"


def test_an_id_may_hold_anything_that_a_name_may(nouns: Nouns) -> None:
    nouns.put("schedules/a%2Fb%20%C3%BC%3F%23", DAILY)
    assert nouns.get("schedules")["rows"][0]["schedule"] == "a/b ü?#"
    assert nouns.get("schedules/a%2Fb%20%C3%BC%3F%23/fires")["rows"] == []


def test_one_without_an_id_gets_one_and_the_same_request_makes_one(nouns: Nouns) -> None:
    made = nouns.do("schedules", DAILY, code=201, key="k")
    assert len(made["schedule"]) > 10
    first = nouns.do("schedules", {"schedule": "s", **DAILY}, code=201, key="k2")
    again = nouns.do("schedules", {"schedule": "s", **DAILY}, code=201, key="k2")
    assert again == first


REFUSALS: list[tuple[dict[str, Any], str, str]] = [
    ({"cron": "0 6 * *"}, "cron", "cron="),
    ({"cron": None}, "cron", "cron or interval: neither is given. Give exactly one."),
    ({"every": "5m"}, "cron", "both are given"),
    ({"cron": None, "timezone": None, "every": "10ms"}, "every", "every"),
    ({"cron": None, "timezone": None, "every": "5"}, "every", 'Write "5s"'),
    ({"timezone": "Mars/Base"}, "timezone", "IANA"),
    ({"workflow": ""}, "workflow", "workflow is empty"),
    ({"overlap": "never"}, "overlap", "Known here: allow, buffer_one, cancel_other, skip."),
    ({"max_catchup": 10**30}, "max_catchup", "outside 0..1000"),
    ({"priority": -101}, "priority", "outside -100..100"),
    ({"jitter": "200 years"}, "jitter", "100 years"),
    ({"start_at": "2026-01-01T00:00:00"}, "start_at", "timezone"),
    ({"start_at": FUTURE, "end_at": "2026-01-01T00:00:00Z"}, "end_at", "end_at is not after start_at"),
    ({"end_at": "1066-10-14T09:00:00Z"}, "end_at", "1970..9999"),
    ({"labels": {"a": 1}}, "labels", "str"),
    ({"labels": {"\0": "x"}}, "labels key", "U+0000"),
    ({"version": "\x1b"}, "version", "U+001B"),
    ({"paused": "yes"}, "paused", "bool"),
    ({"cron_expr": "* * * * *"}, "cron_expr", "unknown field `cron_expr`. Known here: workflow, cron, timezone,"),
]


def test_refusals_name_the_field(nouns: Nouns) -> None:
    for change, field, words in REFUSALS:
        problem = nouns.do("schedules", {"schedule": "s", **DAILY, **change}, code=400)
        assert (problem["field"].startswith(field), words in problem["detail"]) == (True, True), (change, problem)
    assert nouns.get("schedules")["rows"] == []


def test_refusals_of_questions(nouns: Nouns) -> None:
    nouns.put("schedules/s", DAILY)
    assert nouns.get("schedules/s/preview", count=1001, code=400)["field"] == "count"
    assert nouns.do("schedules/preview", {}, code=400)["field"] == "cron"
    assert nouns.get("schedules", size=1001, code=400)["field"] == "size"
    assert nouns.get("schedules", token="x", code=400)["field"] == "token"
    backwards = {"from": FUTURE, "to": "2026-01-01T00:00:00Z"}
    assert nouns.do("schedules/s/backfill", backwards, code=400)["field"] == "from"
    assert nouns.do("schedules/s/backfill", {"from": FUTURE}, code=400)["field"] == "to"
    assert nouns.do("schedules/s/pause", {"reason": "x" * 5_000}, code=400)["field"] == "reason"
    long_past = {"from": "2000-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}
    problem = nouns.do("schedules/s/backfill", long_past, code=400)
    assert (problem["field"], problem["limit"]) == ("to", "schedule_backfill")
    for verb in ("pause", "resume", "trigger"):
        assert nouns.do(f"schedules/none/{verb}", code=404)["code"] == "not_found"
    nouns.patch("schedules/none", {"priority": 1}, code=404)


def test_a_trigger_that_would_overlap_is_refused(nouns: Nouns) -> None:
    nouns.put("schedules/s", {**DAILY, "overlap": "skip"})
    nouns.do("schedules/s/trigger")
    problem = nouns.do("schedules/s/trigger", code=409)
    assert problem["code"] == "precondition_failed"
    assert "overlap is skip" in problem["detail"]
