"""What belongs to another namespace looks, on every route, like what does not exist, and stays as it is."""

import asyncio
import re
from typing import Any

from kagzi import Context, Worker, workflow
from kagzi.server.http.route import Route
from kagzi.server.http.routes import routes
from tests.server.apart_world import OURS, THEIRS
from tests.server.http.test_access import Keyed, data_of, keyed, until

__all__ = ["keyed"]

NOTHING = {
    "run": "0191e000-0000-7000-8000-0000000000aa",
    "schedule": "nobodys-schedule",
    "operation": "0191e000-0000-7000-8000-0000000000cc",
    "worker": "nobodys-worker",
    "workflow": "nobodys-type",
    "version": "nobodys-version",
    "key_id": "0" * 16,
    "namespace": "nobodys-namespace",
}
BODIES: dict[str, dict[str, Any]] = {
    "PUT /schedules/{schedule}": {"workflow": "hello", "every": "1h"},
    "POST /schedules/{schedule}/backfill": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T01:00:00Z"},
    "POST /runs/{run}/signal": {"name": "approve", "payload": True},
    "POST /runs/{run}/replace-signal": {"name": "approve", "payload": True},
    "POST /runs/{run}/fork": {"from_step": "reserve"},
    "POST /runs/{run}/adopt": {"build_id": "auto-1"},
    "PATCH /workflows/{workflow}": {"max_running": 5},
}
QUERIES = {"/step": {"id": "reserve"}, "/logs": {"id": "reserve"}, "/wake": {"id": "reserve"}}
MADE_WHERE_IT_IS_NAMED = ("PUT /schedules/{schedule}", "PATCH /workflows/{workflow}")
"""These make what they name in the caller's own namespace."""
ALLOWED = {
    "GET /queues/{workflow}",
    "GET /runs/{run}/children",
    "GET /workflows/{workflow}/versions",
    "DELETE /schedules/{schedule}",
    "POST /workflows/{workflow}/pause",
    "POST /workflows/{workflow}/resume",
    *MADE_WHERE_IT_IS_NAMED,
}
"""Answered alike for what is not there: an empty list, nothing deleted, a type of the caller's own paused."""


@workflow("ours-alone", version="our-version")
async def ours_alone(ctx: Context, order: object) -> None:
    await ctx.sleep("long", "1d")


async def have_a_worker(keyed: Keyed) -> None:
    """So that there are types, versions and a worker; it is gone afterwards."""
    address = keyed.world.server.grpc_address
    async with Worker(address, workflows=[ours_alone], namespace=OURS, api_key=keyed.operator):
        pass


def things_of_ours(keyed: Keyed) -> dict[str, str]:
    keyed.world.run(have_a_worker(keyed))
    with keyed.client(keyed.operator) as client:
        client.params = client.params.set("namespace", OURS)
        run = client.post("/runs", json={"workflow": "ours-alone", "input": {"order": "secret"}}).json()["run_id"]
        client.put("/schedules/our-schedule", json={"workflow": "ours-alone", "every": "1h"}).raise_for_status()
        dry = {"action": "cancel", "filter": {"workflow": ["nobodys"]}, "dry_run": True}
        counted = client.post("/operations", json=dry)
        wanted = {**dry, "dry_run": False, "filter_digest": counted.json()["filter_digest"]}
        operation = client.post("/operations", json=wanted)
        operation.raise_for_status()
        identity = operation.json()["operation_id"]
        until(lambda: client.get(f"/operations/{identity}").json()["finished"])
        [worker] = client.get("/workers").json()["rows"]
    return {
        "run": run,
        "schedule": "our-schedule",
        "operation": identity,
        "worker": worker["worker_id"],
        "workflow": "ours-alone",
        "version": "our-version",
        "key_id": keyed.make(OURS, "read")["key_id"],
        "namespace": OURS,
    }


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


def place(route: Route, names: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda name: names[name[1]], route.path)


def test_what_is_not_ours_does_not_exist_on_any_route(keyed: Keyed) -> None:
    ours = things_of_ours(keyed)
    before = asyncio.run(data_of(keyed))
    seen: dict[str, set[int]] = {}
    with keyed.client(keyed.make(THEIRS, "admin")["secret"]) as client:
        for route in sorted(routes(), key=lambda route: name_of(route) in MADE_WHERE_IT_IS_NAMED):
            if "{" not in route.path:
                continue
            name = name_of(route)
            answers: list[tuple[int, str]] = []
            for names in (NOTHING, ours):
                answer = client.request(
                    route.method,
                    place(route, names),
                    params={"namespace": THEIRS, **QUERIES.get(route.path[route.path.rfind("/") :], {})},
                    json=None if route.body is None else BODIES.get(name, {}),
                )
                text = answer.text
                for value in sorted(names.values(), key=len, reverse=True):
                    text = text.replace(value, "<name>")
                answers.append((answer.status_code, text))
            assert answers[0][0] == answers[1][0], f"{name}: {answers}"
            if name not in MADE_WHERE_IT_IS_NAMED:
                assert answers[0] == answers[1], name
            assert "secret" not in answers[1][1], name
            seen[name] = {status for status, _ in answers}
    assert asyncio.run(data_of(keyed)) == before
    unlike = {name: statuses for name, statuses in seen.items() if not statuses <= {403, 404}}
    assert set(unlike) == ALLOWED, unlike
    assert set().union(*unlike.values()) == {200}, unlike
