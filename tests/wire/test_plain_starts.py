"""Plain starts are written and read by hand, for speed: with the same result as by their fields."""

from typing import Any

import pytest

from kagzi.core.records import Payload
from kagzi.core.retry.policy import SERVER_DEFAULT
from kagzi.core.run.commands import StartRequest
from kagzi.v1 import workflow_pb2 as pb
from kagzi.wire import requests, runs

PLAIN: list[dict[str, Any]] = [
    {},
    {"workflow_id": "order-7", "request_id": "r"},
    {"input": Payload(b"")},
    {"input": Payload(b'{"i":1}')},
    {"input": Payload(b"x", {"encoding": "zip"})},
    {"context": Payload(b"")},
    {"context": Payload(b'{"traceparent":"00"}')},
    {"context": Payload(b"c", {"encoding": "zip"}), "input": Payload(b"1")},
    {"on_conflict": "replace"},
]
OTHERS: list[dict[str, Any]] = [
    {"task_queue": "orders"},
    {"version": "2"},
    {"start_at": 1_700_000_000_000_000},
    {"delay_us": 0},
    {"timeout_us": 5},
    {"priority": -3},
    {"labels": {"a": "b"}},
    {"deadline_at": 1_700_000_000_000_000},
    {"retry": SERVER_DEFAULT},
    {"concurrency_key": "k"},
]


@pytest.mark.parametrize("options", PLAIN + OTHERS, ids=str)
def test_a_start_is_written_and_read_as_by_its_fields(options: dict[str, Any]) -> None:
    start = StartRequest(namespace="shop", workflow_type="hello", **options)
    message = requests.write_start(start)
    assert message == requests._write_start(start)
    assert runs.read_start(message) == runs._read_start(message) == start


@pytest.mark.parametrize("options", PLAIN, ids=str)
def test_plain_ones_do_not_go_by_their_fields(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    monkeypatch.delattr(requests, "_write_start")
    monkeypatch.delattr(runs, "_read_start")
    start = StartRequest(namespace="shop", workflow_type="hello", **options)
    assert runs.read_start(requests.write_start(start)) == start


def test_every_field_that_makes_a_start_unusual_is_tried_here() -> None:
    tried = {name for options in PLAIN + OTHERS for name in options} | {"namespace", "workflow_type"}
    assert tried == set(StartRequest.__struct_fields__)


def test_a_start_of_the_first_contract_leaves_out_all_it_can() -> None:
    message = pb.StartWorkflowRequest(workflow_type="say_hello")
    start = StartRequest(namespace="default", workflow_type="say-hello")
    assert runs.read_start(message) == runs._read_start(message) == start
    assert runs.read_start(message, batch_namespace="shop").namespace == "shop"
