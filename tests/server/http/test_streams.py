"""Events of runs as a stream: each once and in order, resumed where it broke off, ended by its end, by a reader that
does not read, and by a server that stops."""

import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest

from kagzi import Kagzi
from kagzi.core.error_details import ErrorDetail
from kagzi.core.events import EventKind, RunEvent
from kagzi.core.records import Payload
from kagzi.server.http import sse
from kagzi.server.http.handlers import streams
from kagzi.server.http.views.events import EventsView
from tests.server.http.world import World, world
from tests.support.polling import until

Event = tuple[str | None, str, dict[str, Any]]


def read_events(lines: Iterator[str]) -> Iterator[Event]:
    """id, event and data of each event; comments are passed over."""
    event: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
        elif event.get("event"):
            yield event.get("id"), event["event"], json.loads(event["data"])
            event = {}


def follow(http: httpx.Client, run_id: str, **headers: str) -> list[Event]:
    with http.stream("GET", f"/runs/{run_id}/events", headers=headers) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["x-accel-buffering"] == "no"
        return list(read_events(answer.iter_lines()))


def test_a_run_is_followed_to_its_end(each_api: World) -> None:
    run_id = each_api.start("approval", input={"n": 1})
    with each_api.client.stream("GET", f"/runs/{run_id}/events") as answer:
        lines = answer.iter_lines()
        assert next(lines) == "retry: 1000"
        events: list[Event] = []
        for each in read_events(lines):
            events.append(each)
            if each[1] == "signal_awaited":
                each_api.client.post(f"/runs/{run_id}/signal", json={"name": "approve", "payload": "yes"})
    kinds = [kind for _, kind, _ in events if kind != "run_status"]
    assert kinds == [
        "run_started",
        "step_started",
        "step_completed",
        "signal_awaited",
        "signal_received",
        "run_completed",
        "end",
    ]
    assert events[-2][2]["output"] == "yes"
    assert all((number is None) == (kind in ("run_status", "end")) for number, kind, _ in events)
    assert any(data.get("status_text") == "waits for a person" for _, kind, data in events if kind == "run_status")
    numbers = [int(number) for number, _, _ in events if number is not None]
    assert numbers == sorted(set(numbers))
    # From any of them on it goes on with the next one, and nothing comes twice.
    log = [each for each in events if each[0] is not None]
    for place, (number, _, _) in enumerate(log):
        resumed = follow(each_api.client, run_id, **{"Last-Event-ID": str(number)})
        assert [each for each in resumed if each[0] is not None] == log[place + 1 :]
        assert resumed[-1][1] == "end"


def test_what_it_says_is_what_the_client_of_python_says(each_api: World) -> None:
    run_id = each_api.start("broken", input="bread")
    each_api.ended(run_id)

    async def events() -> list[dict[str, Any]]:
        async with Kagzi.connect(each_api.server.grpc_address) as client:
            return [event async for event in client.get(run_id).events()]

    assert [data for _, kind, data in follow(each_api.client, run_id) if kind != "end"] == each_api.run(events())


def test_a_list_is_followed(each_api: World) -> None:
    label = {"live": each_api.url}
    runs = [each_api.start("nobody", labels=label) for _ in range(2)]
    query = {"label": f"live={each_api.url}"}
    with each_api.client.stream("GET", "/runs/events", params=query) as answer:
        events = read_events(answer.iter_lines())
        number, kind, data = next(events)
        assert (number, kind, data["more"]) == (None, "rows", False)
        assert [row["run_id"] for row in data["rows"]] == runs[::-1]
        assert data["rows"] == each_api.client.get("/runs", params=query).json()["rows"]
        _, kind, stats = next(events)
        assert kind == "stats"
        assert stats["in_flight"]["count"] >= 2
        each_api.client.post(f"/runs/{runs[0]}/pause")
        _, kind, row = next(each for each in events if each[1] != "stats")
        assert (kind, row["run_id"], row["status"]) == ("row", runs[0], "paused")
        each_api.start("nobody", labels=label)
        assert next(each for each in events if each[1] != "stats")[1:] == ("new", {"count": 1})
    once = each_api.client.get("/runs/events", params=query, headers={"Accept": "application/json"}).json()
    assert len(once["rows"]) == 3
    assert set(once["stats"]) == {"in_flight", "failing", "waiting", "paused", "failed"}


def test_filters_of_lists(each_api: World) -> None:
    def listed(**query: Any) -> list[str]:
        rows = each_api.client.get("/runs", params={"workflow": ["approval", "broken"], **query}).json()["rows"]
        return [row["run_id"] for row in rows]

    waiting = each_api.start("approval", input={}, workflow_id="filters of lists")
    failed = each_api.start("broken", input="x")
    each_api.ended(failed)
    before = each_api.client.get(f"/runs/{failed}").json()["finished_at"]
    with each_api.client.stream("GET", f"/runs/{waiting}/events") as answer:
        next(each for each in read_events(answer.iter_lines()) if each[1] == "signal_awaited")
    assert waiting in listed(waiting="true")
    assert waiting not in listed(waiting="false")
    assert failed in listed(ended_since=before)
    assert listed(ended_since=before, order="ended")[0] == failed
    assert failed not in listed(ended_until=before)
    assert listed(id_prefix="filters of") == [waiting]
    assert waiting not in listed(failing="true")
    refused = each_api.client.get("/runs", params={"id_prefix": "a", "order": "ended"})
    assert refused.json()["field"] == "id_prefix"


def test_once_as_json(http: httpx.Client, api: World) -> None:
    run_id = api.start("hello", input="world")
    api.ended(run_id)
    json_only = {"Accept": "application/json"}
    answer = http.get(f"/runs/{run_id}/events", headers=json_only)
    whole = answer.json()
    msgspec.json.decode(answer.content, type=EventsView)
    assert (whole["ended"], whole["standing"]["status"]) == (True, "completed")
    assert whole["events"] == [data for _, kind, data in follow(http, run_id) if kind != "end"]
    bare = http.get(f"/runs/{run_id}/events", params={"payloads": "0"}, headers=json_only).json()
    assert [event["kind"] for event in bare["events"]] == [event["kind"] for event in whole["events"]]
    assert not any("output" in event for event in bare["events"])
    rest = http.get(f"/runs/{run_id}/events", params={"after": whole["after"]}, headers=json_only).json()
    assert rest["events"] == []


def test_the_head_of_a_stream_ends_with_its_headers(http: httpx.Client) -> None:
    run_id = http.post("/runs", json={"workflow": "x"}).json()["run_id"]
    for path in ("/runs/events", f"/runs/{run_id}/events"):
        answer = http.head(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream"


def test_what_cannot_be_followed_is_refused_before_it_begins(http: httpx.Client, api: World) -> None:
    assert http.get("/runs/nobody/events").json()["status"] == 404
    run_id = api.start("nobody")
    refused = http.get(f"/runs/{run_id}/events", headers={"Last-Event-ID": "x"})
    assert (refused.status_code, refused.json()["field"]) == (400, "Last-Event-ID")
    assert http.get(f"/runs/{run_id}/events", params={"after": -1}).json()["field"] == "after"


def test_values_with_line_breaks_are_one_line(http: httpx.Client) -> None:
    body = b'{"workflow": "approval", "input": {"a":\r\n1}, "workflow_id": "broken lines"}'
    run_id = http.post("/runs", content=body, headers={"Content-Type": "application/json"}).json()["run_id"]
    http.post(
        f"/runs/{run_id}/signal",
        content=b'{"name": "approve", "payload": [1,\n\n2]}',
        headers={"Content-Type": "application/json"},
    )
    outputs = [data["output"] for _, kind, data in follow(http, run_id) if kind == "signal_received"]
    assert outputs == [[1, 2]]


def test_an_event_is_written_once_for_all_who_are_told() -> None:
    frames = streams._Frames()
    reader = streams._Request("a-run", 0, started=True, payloads=True)
    small = RunEvent(seq=1, at=1, kind=EventKind.STEP_COMPLETED, step_id="a", output=Payload(b"1"))
    large = msgspec.structs.replace(small, seq=2, output=Payload(b"1" * (streams.FRAME_BYTES + 1)))
    failed = msgspec.structs.replace(small, seq=3, output=None, error=ErrorDetail(message="x" * 100_000))
    assert frames.get(small, reader) is frames.get(small, reader)
    assert b'"output":1' in frames.get(small, reader)
    assert b"output" not in frames.get(small, reader._replace(payloads=False))
    for each in (large, failed):  # what they hold would be held with them
        assert frames.get(each, reader) == frames.get(each, reader)
        assert frames.get(each, reader) is not frames.get(each, reader)
    for seq in range(streams.FRAMES_KEPT):
        frames.get(msgspec.structs.replace(small, seq=seq), reader)
    assert len(frames._known) == streams.FRAMES_KEPT


def test_a_quiet_stream_stays_open_and_a_silent_one_says_so(api: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "IDLE_S", 0.05)
    monkeypatch.setattr("kagzi.server.http.protocol.REQUEST_S", 0.02)
    run_id = api.start("nobody")
    with httpx.stream("GET", f"{api.url}/api/v1/runs/{run_id}/events", timeout=60) as answer:
        lines = answer.iter_lines()
        comments = 0
        while comments < 20:  # for longer than an answer may take
            comments += next(lines) == ":"


def test_a_stopping_server_ends_its_streams() -> None:
    with world() as made:
        run_id = made.start("nobody")

        async def stop() -> None:
            made.data.deadlines.end()

        with made.client.stream("GET", f"/runs/{run_id}/events") as answer:
            lines = answer.iter_lines()
            assert next(lines) == "retry: 1000"
            made.run(stop())
            assert "event: end" not in list(lines)


def test_a_reader_that_does_not_read_is_cut_off_and_goes_on(api: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "BEHIND_S", 0.2)
    run_id = api.start("wordy", input=12)
    api.ended(run_id)
    address = urlsplit(api.url)
    with socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        lazy.settimeout(60)
        lazy.connect((address.hostname, address.port))
        lazy.sendall(f"GET /api/v1/runs/{run_id}/events HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
        api.run(_nobody_follows(api))
        received = b""
        try:
            while data := lazy.recv(1 << 20):
                received += data
        except ConnectionResetError:
            pass
    assert b"event: end" not in received
    whole = follow(api.client, run_id)
    assert [kind for _, kind, _ in whole].count("step_completed") == 12


async def _nobody_follows(api: World) -> None:
    watching = api.data.engine.watching
    await until(lambda: watching._watched)
    await until(lambda: not watching._watched)
