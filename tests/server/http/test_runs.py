"""Runs over HTTP, on both stores: what is started, looked at, waited for and changed there is what everybody sees."""

import json
import time
from typing import Any

import httpx
import msgspec
import pytest

from kagzi.core.records import Payload
from kagzi.server.http.payloads import payload_view
from tests.server.http.world import World
from tests.support.timeouts import LOADED_MACHINE_S

# Every byte of it counts: a number that no double holds, a key that is there twice, and spaces.
EXACT = b'{"id": 1970670598291982290,  "x": 0.2345678901234568, "a": 1, "a": 2}'


def raw(value: bytes, **fields: Any) -> bytes:
    return msgspec.json.encode({**fields, "input": msgspec.Raw(value)})


def test_a_run_is_started_and_its_result_read(each_api: World) -> None:
    answer = each_api.client.post("/runs", json={"workflow": "hello", "input": "world", "labels": {"team": "a/b"}})
    assert answer.status_code == 201
    started = answer.json()
    run_id = started["run_id"]
    assert (started["created"], answer.headers["location"]) == (True, f"/api/v1/runs/{run_id}")
    assert each_api.ended(run_id) == {
        "run_id": run_id,
        "ended": True,
        "status": "completed",
        "output": "Hello, world!",
        "error": None,
        "continued_as": None,
    }
    run = each_api.client.get(f"/runs/{run_id}").json()
    assert (run["input"], run["output"], run["labels"]) == ("world", "Hello, world!", {"team": "a/b"})
    (step,) = each_api.client.get(f"/runs/{run_id}/steps", params={"payloads": "true"}).json()["rows"]
    assert (step["step_id"], step["status"], step["output"]) == ("greet", "completed", "Hello, world!")
    assert each_api.client.get(f"/runs/{run_id}/step", params={"id": "greet"}).json() == step
    timeline = each_api.client.get(f"/runs/{run_id}/timeline", params={"around": "greet", "size": "1"}).json()
    ([drawn], older, newer) = (timeline["rows"], timeline["older"], timeline["newer"])
    assert (
        {name: drawn[name] for name in ("step_id", "seq", "finished_at")}.items() <= step.items(),
        older,
        newer,
    ) == (
        True,
        False,
        False,
    )
    listed = each_api.client.get("/runs", params={"label": "team=a/b", "status": "completed", "count": "1"}).json()
    assert ([row["run_id"] for row in listed["rows"]], listed["count"], listed["capped"]) == ([run_id], 1, False)


def test_a_repeated_request_is_answered_alike_and_does_nothing_twice(each_api: World) -> None:
    key = {"Idempotency-Key": "charge-1"}
    body = {"workflow": "approval", "input": {}, "workflow_id": "order 1"}
    first, again = (each_api.client.post("/runs", json=body, headers=key) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    names = ("run_id", "workflow_id", "created")
    assert [first.json()[name] for name in names] == [again.json()[name] for name in names]
    other = each_api.client.post("/runs", json=body)
    assert (other.status_code, other.json()["created"]) == (200, False)
    run_id = first.json()["run_id"]
    signal = {"name": "approve", "payload": {"ok": True}}
    for _ in range(2):
        sent = each_api.client.post("/runs/workflow_id:order%201/signal", json=signal, headers={"Idempotency-Key": "s"})
        assert sent.json()["run_id"] == run_id
    assert each_api.ended(run_id)["output"] == {"ok": True}
    lines = each_api.client.get(f"/runs/{run_id}/export").text.splitlines()
    assert len([line for line in lines if line.startswith('{"signal"')]) == 1
    forks = [
        each_api.client.post(f"/runs/{run_id}/fork", json={"from_step": "reserve"}, headers={"Idempotency-Key": "f"})
        for _ in range(2)
    ]
    assert forks[0].status_code == forks[1].status_code == 201
    assert forks[0].json() == forks[1].json()


def test_values_keep_every_byte(each_api: World) -> None:
    headers = {"Content-Type": "application/json"}
    started = each_api.client.post("/runs", content=raw(EXACT, workflow="nobody"), headers=headers).json()
    path = f"/runs/{started['run_id']}"
    assert each_api.client.get(f"{path}/input").content == EXACT
    assert b'"input":' + EXACT in each_api.client.get(path).content
    assert each_api.client.get(f"{path}/output").status_code == 404


SEALED = {"$encoding": "aes-gcm", "$bytes": "AP+Adw==", "$metadata": {"encoding-key": "2026"}}


@pytest.mark.parametrize("encoding", ["json", "json/plain"])
def test_a_value_of_which_a_client_says_that_it_is_json_is_shown_as_json(encoding: str) -> None:
    assert bytes(payload_view(Payload(b'{"a": 1}', {"encoding": encoding}))) == b'{"a": 1}'


def test_values_that_are_not_json_go_in_as_they_come_out(each_api: World) -> None:
    body = {"workflow": "nobody", "input": SEALED, "context": {"$encoding": "zlib", "$bytes": "eJw="}}
    run_id = each_api.client.post("/runs", json=body).json()["run_id"]
    run = each_api.client.get(f"/runs/{run_id}").json()
    assert (run["input"], run["context"]) == (SEALED, body["context"])
    assert each_api.client.get(f"/runs/{run_id}/input").content == b"\x00\xff\x80w"
    lines = each_api.client.get(f"/runs/{run_id}/export").text
    assert '"encoding-key":"2026"' in lines.replace(" ", "")

    approval = each_api.start("approval", input={})
    sent = each_api.client.post(f"/runs/{approval}/signal", json={"name": "other", "payload": SEALED})
    assert sent.status_code == 200, sent.text
    fork = each_api.client.post(f"/runs/{run_id}/fork", json={"outputs": {"": SEALED}})
    assert fork.json()["field"] == "outputs key"
    schedule = {"schedule": "sealed", "workflow": "nobody", "every": "1h", "input": SEALED, "paused": True}
    assert each_api.client.post("/schedules", json=schedule).status_code == 201
    assert each_api.client.get("/schedules/sealed").json()["input"] == SEALED


def test_json_that_looks_like_an_encoded_value_is_not_taken_for_one(each_api: World) -> None:
    for wrong in (
        {"$encoding": "zlib"},
        {"$encoding": "zlib", "$bytes": 12},
        {"$encoding": "zlib", "$bytes": "!"},
        {"$encoding": "zlib", "$bytes": "eJw=", "also": 1},
        {"$encoding": "json", "$bytes": "AP+Adw=="},
    ):
        answer = each_api.client.post("/runs", json={"workflow": "nobody", "input": wrong})
        assert (answer.status_code, answer.json()["field"]) == (400, "input"), wrong
        assert "$encoding" in answer.json()["detail"]
    literal = {"$encoding": "json", "$bytes": "eyIkZW5jb2RpbmciOiAxfQ=="}
    run_id = each_api.start("nobody", input=literal)
    assert each_api.client.get(f"/runs/{run_id}/input").content == b'{"$encoding": 1}'
    assert each_api.client.get(f"/runs/{run_id}").json()["input"] == literal
    deep = {"inner": {"$encoding": "zlib"}, "text": "$encoding"}
    run_id = each_api.start("nobody", input=deep)
    assert each_api.client.get(f"/runs/{run_id}").json()["input"] == deep


def test_a_failed_run_is_explained_and_tried_again(each_api: World) -> None:
    run_id = each_api.start("broken", input="bread", workflow_id="bakery/1")
    end = each_api.ended(run_id)
    assert (end["status"], end["error"]["message"]) == ("failed", "no bread today")
    explained = each_api.client.get("/runs/workflow_id:bakery%2F1/explain").json()
    assert (explained["run_id"], explained["reason"]) == (run_id, "failed")
    step = each_api.client.get(f"/runs/{run_id}/step", params={"id": "break"}).json()
    assert (step["status"], step["error"]["type"]) == ("failed", "kagzi.NonRetryable")
    assert each_api.client.post(f"/runs/{run_id}/retry").status_code == 200
    assert each_api.ended(run_id)["status"] == "failed"
    [discarded] = each_api.client.get(f"/runs/{run_id}/steps", params={"forgotten": 1, "count": 1}).json()["rows"]
    assert (discarded["step_id"], discarded["error"], discarded["attempts"]) == ("break", step["error"], [])
    [retry] = each_api.client.get(f"/runs/{run_id}/timeline").json()["retries"]
    assert retry == {"retry_seq": discarded["retry_seq"], "retried_at": discarded["retried_at"], "steps": 1}
    query = {"id": "break", "retry_seq": discarded["retry_seq"]}
    was = each_api.client.get(f"/runs/{run_id}/step", params=query).json()
    assert (was["started_at"], was["retried_at"]) == (step["started_at"], discarded["retried_at"])
    now = each_api.client.get(f"/runs/{run_id}/step", params={"id": "break"}).json()
    assert (now["retry_seq"], now["started_at"] > was["started_at"]) == (None, True)
    assert each_api.client.get(f"/runs/{run_id}/step", params=query | {"retry_seq": 1}).status_code == 404
    page = each_api.client.get("/runs", params={"status": ["failed", "cancelled"], "workflow": "broken", "size": 1})
    assert [row["run_id"] for row in page.json()["rows"]] == [run_id]


def test_a_run_is_paused_resumed_cancelled_and_terminated(each_api: World) -> None:
    run_id = each_api.start("nobody_serves_this")
    send = each_api.client.post
    assert send(f"/runs/{run_id}/pause", json={"reason": "look"}).json() == {"status": "paused"}
    assert each_api.client.get(f"/runs/{run_id}").json()["pause_reason"] == "look"
    assert send(f"/runs/{run_id}/resume").json() == {"status": "pending"}
    assert send(f"/runs/{run_id}/adopt", json={"build_id": "auto-1"}).json() == {"status": "pending"}
    assert send(f"/runs/{run_id}/cancel", json={"reason": "enough"}).json() == {"status": "cancelled"}
    refused = send(f"/runs/{run_id}/signal", json={"name": "x"})
    assert (refused.status_code, refused.json()["code"]) == (409, "precondition_failed")
    other = each_api.start("nobody_serves_this")
    assert send(f"/runs/{other}/terminate").json() == {"status": "cancelled"}


def test_a_start_that_was_to_come_later_is_due_now(each_api: World) -> None:
    run_id = each_api.start("hello", input="early", delay="1h")
    woken = each_api.client.post(f"/runs/{run_id}/step/wake")
    assert (woken.status_code, woken.json()["woken"], woken.json()["step"]) == (200, True, None)
    assert each_api.ended(run_id)["output"] == "Hello, early!"
    refused = each_api.client.post(f"/runs/{run_id}/step/wake", params={"id": "nope"})
    assert (refused.status_code, refused.json()["code"]) == (409, "precondition_failed")  # it has ended


def test_signal_with_start_and_a_batch(each_api: World) -> None:
    start = {"workflow": "approval", "input": {}, "workflow_id": "both"}
    body = {"start": start, "signal": {"name": "approve", "payload": 2}}
    started = each_api.client.post("/runs/signal-with-start", json=body)
    assert started.status_code == 201
    assert each_api.ended(started.json()["run_id"])["output"] == 2
    starts = [{"workflow": "hello", "input": "a"}, {"workflow": "hello", "delay": "5"}, {"workflow": ""}]
    items = each_api.client.post("/runs/batch", json={"starts": starts}).json()["items"]
    assert each_api.ended(items[0]["started"]["run_id"])["output"] == "Hello, a!"
    assert (items[1]["error"]["field"], items[2]["error"]["field"]) == ("delay", "workflow")


def test_a_run_is_taken_out_and_in_again(each_api: World) -> None:
    run_id = each_api.start("hello", input="there")
    each_api.ended(run_id)
    lines = each_api.client.get(f"/runs/{run_id}/export").content
    headers = {"Content-Type": "application/x-ndjson"}
    for created in (True, False):
        answer = each_api.client.post("/runs/import?namespace=copy", content=lines, headers=headers)
        assert (answer.status_code, answer.json()["created"]) == (200, created), answer.text
    copy = each_api.client.get(f"/runs/{answer.json()['run_id']}", params={"namespace": "copy"}).json()
    assert (copy["namespace"], copy["output"]) == ("copy", "Hello, there!")
    assert each_api.client.get(f"/runs/{run_id}", params={"namespace": "copy"}).status_code == 404


def test_an_operation_does_what_was_shown(each_api: World) -> None:
    runs = [each_api.start("nobody", labels={"bulk": "1"}) for _ in range(3)]
    operation_request = {"action": "cancel", "filter": {"labels": {"bulk": "1"}}, "reason": "done with"}
    send = each_api.client.post
    assert send("/operations", json=operation_request).json()["field"] == "filter_digest"
    preview = send("/operations", json={**operation_request, "dry_run": True})
    assert (preview.status_code, preview.json()["count"]) == (200, 3)
    assert sorted(row["run_id"] for row in preview.json()["samples"]) == sorted(runs)
    digest = preview.json()["filter_digest"]
    wider = {"action": "cancel", "filter": {"workflow": ["nobody"]}, "filter_digest": digest}
    assert send("/operations", json=wider).status_code == 409
    begun = [
        send(
            "/operations", json={**operation_request, "filter_digest": digest}, headers={"Idempotency-Key": "o"}
        ).json()
        for _ in range(2)
    ]
    assert begun[0]["operation_id"] == begun[1]["operation_id"]
    path = f"/operations/{begun[0]['operation_id']}"
    while not (operation := each_api.client.get(path).json())["finished"]:
        pass
    assert (operation["done"], operation["failed"], operation["filter"]["labels"]) == (3, 0, {"bulk": "1"})
    assert each_api.client.post(f"{path}/stop").status_code == 200
    assert path.removeprefix("/operations/") in each_api.client.get("/operations").text
    assert {each_api.client.get(f"/runs/{run}").json()["status"] for run in runs} == {"cancelled"}


def test_an_operation_on_runs_that_are_named_touches_no_other(each_api: World) -> None:
    runs = [each_api.start("nobody", labels={"named": "1"}) for _ in range(4)]
    named = {"labels": {"named": "1"}, "run": runs[1:3]}
    listed = each_api.client.get("/runs", params={"run": runs[1:3], "label": "named=1"}).json()
    assert [row["run_id"] for row in listed["rows"]] == [runs[2], runs[1]]
    request = {"action": "cancel", "filter": named}
    preview = each_api.client.post("/operations", json={**request, "dry_run": True}).json()
    assert (preview["count"], preview["filter"]["run"]) == (2, runs[1:3])
    others = {"action": "cancel", "filter": {**named, "run": runs[:2]}, "filter_digest": preview["filter_digest"]}
    assert each_api.client.post("/operations", json=others).status_code == 409
    begun = each_api.client.post("/operations", json={**request, "filter_digest": preview["filter_digest"]}).json()
    while not (operation := each_api.client.get(f"/operations/{begun['operation_id']}").json())["finished"]:
        pass
    assert (operation["done"], operation["filter"]["run"]) == (2, runs[1:3])
    statuses = [each_api.client.get(f"/runs/{run}").json()["status"] for run in runs]
    assert statuses == ["pending", "cancelled", "cancelled", "pending"]


def test_what_waits_for_a_person_is_listed_with_what_it_waits_for(each_api: World) -> None:
    run_id = each_api.start("approval", input={}, labels={"inbox": "1"})
    deadline = time.monotonic() + LOADED_MACHINE_S

    def row() -> dict[str, Any] | None:
        rows = each_api.client.get("/inbox", params={"workflow": "approval"}).json()["rows"]
        return next((each for each in rows if each["run"]["run_id"] == run_id), None)

    while (listed := row()) is None:
        assert time.monotonic() < deadline
    (wait,) = listed["waits"]
    step = each_api.client.get(f"/runs/{run_id}/step", params={"id": wait["step_id"]}).json()
    assert (wait["signal"], wait["since"], wait["expires_at"]) == ("approve", step["created_at"], None)
    assert wait["schema"] == step["input"]
    each_api.client.post(f"/runs/{run_id}/signal", json={"name": "approve", "payload": True})
    assert row() is None


@pytest.fixture
def three(each_api: World) -> list[str]:
    return [each_api.start("nobody", labels={"page": "1"}) for _ in range(3)][::-1]


def test_pages_go_forth_and_back(each_api: World, three: list[str]) -> None:
    def page(**query: Any) -> dict[str, Any]:
        return each_api.client.get("/runs", params={"label": "page=1", "size": 2, **query}).json()

    first = page()
    second = page(token=first["next"])
    assert [row["run_id"] for row in (*first["rows"], *second["rows"])] == three
    assert (first["prev"], second["next"]) == (None, None)
    assert page(token=second["prev"])["rows"] == first["rows"]
    foreign = each_api.client.get("/runs", params={"token": first["next"]})
    assert (foreign.status_code, foreign.json()["field"]) == (400, "token")


def test_answers_are_json_as_they_are_described(http: httpx.Client, api: World) -> None:
    run_id = api.start("approval", input={})
    run = json.loads(http.get(f"/runs/{run_id}").content)
    assert run["created_at"].endswith("Z")
    assert len(run["created_at"]) == len("2026-11-16T14:09:53.013908Z")
    assert run["started_at"] is None or run["started_at"].endswith("Z")
