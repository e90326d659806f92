"""Namespaces over HTTP: made, limited, disabled, deleted; and what each may see of the others."""

import asyncio
from typing import Any

from tests.server.http.nouns import Nouns
from tests.support.polling import until


def test_from_its_making_to_its_end(each_nouns: Nouns) -> None:
    nouns = each_nouns
    made = nouns.do("namespaces", {"namespace": "team a/ü", "max_open_runs": 5}, code=201)
    assert (made["namespace"], made["enabled"], made["max_open_runs"], made["max_sessions"]) == (
        "team a/ü",
        True,
        5,
        None,
    )
    path = "namespaces/team%20a%2F%C3%BC"
    assert nouns.get(path) == made
    assert nouns.do("namespaces", {"namespace": "team a/ü"}, code=409)["code"] == "conflict"
    changed = nouns.patch(path, {"max_open_runs": None, "max_schedules": 0, "retention_seconds": {"failed": 86_400}})
    assert (changed["max_open_runs"], changed["max_schedules"]) == (None, 0)
    assert changed["retention_seconds"] == {"failed": 86_400}
    full = {"workflow": "report", "cron": "0 6 * * *"}
    refusal = nouns.put("schedules/s", full, namespace="team a/ü", code=429)
    assert (refusal["code"], refusal["limit"]) == ("resource_exhausted", "schedules_limit")
    assert nouns.patch(path, {"enabled": False})["enabled"] is False
    assert "team a/ü" in [row["namespace"] for row in nouns.get("namespaces")["rows"]]
    assert nouns.delete(path, code=400)["field"] == "confirm"
    assert nouns.delete(path, confirm="team a/ü") == {"namespace": "team a/ü", "deleting": True}

    def gone() -> bool:
        return nouns.world.client.get(path).status_code == 404

    asyncio.run(until(gone))
    nouns.delete(path, confirm="team a/ü", code=404)


SETTINGS_REFUSED: list[Any] = [
    ({"max_open_runs": -1}, "max_open_runs"),
    ({"max_sessions": 2**31}, "max_sessions"),
    ({"max_schedules": 2**63}, "max_schedules"),
    ({"max_stored_bytes": 10**40}, "max_stored_bytes"),
    ({"max_starts_per_second": 0}, "max_starts_per_second"),
    ({"max_running_runs": 1.5}, "max_running_runs"),
    ({"retention_seconds": {"running": 9_999}}, "retention_seconds"),
    ({"retention_seconds": {"failed": 10**40}}, "retention_seconds"),
    ({"retention_seconds": None}, "retention_seconds"),
    ({"deleting": True}, "deleting"),
    ({"enabled": False}, "enabled"),
    ({"namespace": ""}, "namespace"),
    ({"namespace": "\0"}, "namespace"),
]


def test_settings_that_cannot_be(nouns: Nouns) -> None:
    for settings, field in SETTINGS_REFUSED:
        problem = nouns.do("namespaces", {"namespace": "shop", **settings}, code=400)
        assert problem["field"].startswith(field), (settings, problem)
    assert nouns.get("namespaces/shop", code=404)["code"] == "not_found"


def test_a_change_names_something(nouns: Nouns) -> None:
    problem = nouns.patch("namespaces/default", {}, code=400)
    assert "Name one of: max_open_runs" in problem["detail"]
    for limit in (1_000, None):
        assert nouns.patch("namespaces/default", {"max_sessions": limit})["max_sessions"] == limit
    nouns.patch("namespaces/none", {"max_sessions": 3}, code=404)
    assert nouns.delete("namespaces/default", confirm="default", code=400)["field"] == "namespace"


def test_administrative_changes_are_on_record(nouns: Nouns) -> None:
    nouns.do("namespaces", {"namespace": "audited", "max_sessions": 3}, code=201)
    nouns.patch("workflows/mail", {"max_running": 3}, namespace="audited")
    nouns.do("workflows/mail/pause", namespace="audited")
    nouns.patch("namespaces/audited", {"max_sessions": None})
    actions = [entry["action"] for entry in nouns.get("audit", namespace="audited")["rows"]]
    assert actions == ["namespace.update", "type.pause", "type.limits", "namespace.create"]


def test_one_that_is_in_use_is_not_deleted(nouns: Nouns) -> None:
    nouns.put("schedules/s", {"workflow": "report", "cron": "0 6 * * *"}, namespace="shop")
    problem = nouns.delete("namespaces/shop", confirm="shop", code=409)
    assert (problem["code"], problem["metadata"]["schedules"]) == ("precondition_failed", "1")
    assert nouns.get("schedules")["rows"] == []
    assert nouns.get("schedules", namespace="shop")["rows"][0]["schedule"] == "s"
