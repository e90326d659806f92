"""Workflow types, their queues, versions and workers over HTTP."""

from typing import Any

from kagzi.v1 import worker_pb2
from tests.server.http.nouns import Nouns
from tests.server.stubs import TIMEOUT_S


def serve(nouns: Nouns, *served: tuple[str, str], **schemas: Any) -> str:
    """Registers a worker. Returns its id."""
    pairs = [worker_pb2.WorkflowTypeVersion(workflow_type=name, version=version, **schemas) for name, version in served]
    request = worker_pb2.RegisterRequest(namespace_id=nouns.namespace, served=pairs, hostname="host", pid=7)
    return nouns.grpc(lambda stubs: stubs.workers.Register(request, timeout=TIMEOUT_S)).worker_id


def test_limits_of_a_type(each_nouns: Nouns) -> None:
    nouns = each_nouns
    assert nouns.get("workflows")["rows"] == []
    changed = nouns.patch("workflows/send_mail", {"max_running": 3, "starts_per_second": 0.5, "when_full": "reject"})
    assert (changed["workflow"], changed["max_running"], changed["when_full"]) == ("send-mail", 3, "reject")
    assert "No worker serves 'send-mail'" in changed["warning"]
    again = nouns.patch("workflows/send-mail", {"max_running_per_key": 2, "starts_per_second": None})
    assert (again["max_running"], again["max_running_per_key"], again["starts_per_second"]) == (3, 2, None)
    assert nouns.do("workflows/send-mail/pause", {"reason": "x"}, code=400)["field"] == "reason"
    paused = nouns.do("workflows/send-mail/pause")
    assert paused["paused"] is True
    assert nouns.get("workflows/send-mail") == paused
    assert nouns.get("workflows", count=True) == {
        "rows": [paused],
        "next": None,
        "prev": None,
        "count": 1,
        "capped": False,
    }
    assert nouns.do("workflows/send-mail/resume")["paused"] is False
    assert nouns.patch("workflows/send-mail", {"paused": True})["paused"] is True
    nouns.get("workflows/none", code=404)


LIMITS_REFUSED: list[Any] = [
    ({}, "body", "Name one of: paused, max_running"),
    ({"max_running": 0}, "max_running", "outside 1.."),
    ({"max_running": 10**40}, "max_running", "outside 1.."),
    ({"max_running": 1.5}, "max_running", "int"),
    ({"max_running": "3"}, "max_running", "int"),
    ({"starts_per_second": -1}, "starts_per_second", "outside"),
    ({"starts_per_second_per_key": 1e300}, "starts_per_second_per_key", "outside"),
    ({"when_full": "explode"}, "when_full", "Known here: cancel-oldest, queue, reject."),
    ({"when_full": "reject"}, "when_full", "needs max_running or max_running_per_key"),
    ({"paused": None}, "paused", "bool"),
    ({"open_runs": 3}, "open_runs", "unknown field"),
]


def test_limits_that_cannot_be(nouns: Nouns) -> None:
    for change, field, words in LIMITS_REFUSED:
        problem = nouns.patch("workflows/mail", change, code=400)
        assert (problem["field"], words in problem["detail"]) == (field, True), (change, problem)
    assert nouns.get("workflows")["rows"] == []


def test_queues(nouns: Nouns) -> None:
    assert nouns.get("queues")["rows"] == []
    nouns.do("runs", {"workflow": "send-mail"}, code=201)
    nouns.do("workflows/send-mail/pause")
    queue = nouns.get("queues")["rows"][0]
    assert (queue["workflow"], queue["version"], queue["waiting"], queue["workers"]) == ("send-mail", None, 1, 0)
    assert "paused" in queue["limit_reason"]
    assert nouns.get("queues/send_mail")["rows"] == [queue]
    assert nouns.get("queues", workflow="send_mail")["rows"] == [queue]
    assert nouns.get("queues/none")["rows"][0]["waiting"] == 0


def test_versions(nouns: Nouns) -> None:
    serve(nouns, ("mail", "1"), ("mail", "2"), ("other", "1"))
    assert {row["workflow"] for row in nouns.get("versions")["rows"]} == {"mail", "other"}
    assert len(nouns.get("versions", workflow="mail")["rows"]) == 2
    versions = {row["version"]: row for row in nouns.get("workflows/mail/versions")["rows"]}
    assert [versions[each]["is_default"] for each in ("1", "2")] == [False, True]
    chosen = nouns.do("workflows/mail/versions/1/default")
    assert (chosen["is_default"], chosen["is_set"], chosen["workers"]) == (True, True, 1)
    assert nouns.get("workflows/mail")["default_version"] == "1"
    highest = nouns.delete("workflows/mail/versions/default")
    assert (highest["version"], highest["is_default"], highest["is_set"]) == ("2", True, False)
    assert nouns.do("workflows/mail/versions/1/deprecate")["deprecated"] is True
    problem = nouns.do("workflows/mail/versions/1/default", code=409)
    assert problem["code"] == "precondition_failed"
    assert nouns.do("workflows/mail/versions/1/deprecate", {"undo": True})["deprecated"] is False
    nouns.do("workflows/mail/versions/9/default", code=404)
    nouns.do("workflows/none/versions/1/deprecate", code=404)
    page = nouns.get("workflows/mail/versions", size=1)
    assert nouns.get("workflows/mail/versions", size=1, token=page["next"])["prev"]


def test_schemas(nouns: Nouns) -> None:
    """As the worker of this server registers them."""
    schema = nouns.get("workflows/hello/schema", namespace="default")
    assert (schema["workflow"], schema["version"], schema["input_schema"]["type"]) == ("hello", "1", "string")
    assert (schema["output_schema"]["type"], schema["registered_at"][-1]) == ("string", "Z")
    assert nouns.get("workflows/hello/schema", namespace="default", version="1") == schema
    nouns.get("workflows/hello/schema", namespace="default", version="9", code=404)
    nouns.get("workflows/none/schema", code=404)
    serve(nouns, ("mail", "1"))
    bare = nouns.get("workflows/mail/schema")
    assert (bare["input_schema"], bare["signal_schemas"], bare["registered_at"]) == (None, {}, None)
    serve(nouns, ("mail", "2"), input_schema="not JSON", signal_schemas={"a/b": '{"type":"string"}'}, description="x")
    odd = nouns.get("workflows/mail/schema")
    assert (odd["input_schema"], odd["signal_schemas"], odd["description"]) == (None, {"a/b": {"type": "string"}}, "x")


def test_workers(nouns: Nouns) -> None:
    worker_id = serve(nouns, ("mail", "2"))
    other = serve(nouns, ("other", "1"))
    worker = nouns.get(f"workers/{worker_id}")
    assert (worker["status"], worker["hostname"], worker["pid"]) == ("online", "host", 7)
    assert worker["workflows"] == [{"workflow": "mail", "version": "2"}]
    assert [row["worker_id"] for row in nouns.get("workers", workflow="mail")["rows"]] == [worker_id]
    listed = nouns.get("workers", status="online", size=1, count=True)
    assert ([row["worker_id"] for row in listed["rows"]], listed["count"]) == ([other], 2)
    problem = nouns.get("workers", status="asleep", code=400)
    assert (problem["field"], problem["remedy"]) == ("status", "Known here: online, draining, offline.")
    drained = nouns.do(f"workers/{worker_id}/drain")
    assert drained["status"] == "draining"
    events = nouns.get(f"workers/{worker_id}/events")["rows"]
    assert [(event["kind"], event["worker_id"]) for event in events] == [
        ("draining", worker_id),
        ("registered", worker_id),
    ]
    assert events[0]["detail"] == "an operator asked for it"
    assert len(nouns.get("worker-events")["rows"]) == 3
    assert nouns.get("worker-events", worker_id=other)["rows"][0]["worker_id"] == other
    for path in ("workers/none", "workers/none/events"):
        nouns.get(path, code=404)
    nouns.do("workers/none/drain", code=404)
