"""Runs with a history that nobody has to wait for: imported, with the times that a test wants."""

import json
import uuid
from typing import Any

from tests.web.dashboard import Dashboard

SECOND = 1_000_000
HOUR = 3_600 * SECOND
DAY = 24 * HOUR
BEGAN = 1_790_000_000 * SECOND
ERROR = {"message": "the bank does not respond", "type": "ConnectionError"}


class Recorded:
    """A history, written step by step. Times are microseconds after its begin."""

    def __init__(self, workflow: str = "recorded", **fields: Any) -> None:
        self.workflow = workflow
        self.fields = fields
        self._steps: list[dict[str, Any]] = []
        self._attempts: list[dict[str, Any]] = []
        self._seq = 0
        self.ended = 0

    def step(
        self, step_id: str, begin: int, end: int | None, *, kind: str = "function", output: str = "null", **fields: Any
    ) -> None:
        """`output` is JSON. `end` None: it goes on. Attempts before are those of `failed`."""
        self._seq += 1
        step = {
            "step_id": step_id,
            "name": step_id.partition("[")[0],
            "kind": kind,
            "status": "completed",
            "begun_seq": self._seq,
            "created_at": BEGAN + begin,
            "started_at": BEGAN + begin,
            **fields,
        }
        if end is None:
            step["status"] = fields.get("status", "running")
        else:
            self._seq += 1
            step |= {"seq": self._seq, "finished_at": BEGAN + end}
            self.ended = max(self.ended, end)
        if step["status"] == "completed":
            step["output"] = {"json": f"@{output}@"}
        self._steps.append(step)

    def paused(self, begin: int, end: int | None, reason: str) -> None:
        """`end` None: it goes on."""
        for what, at in (("$paused", begin), ("$resumed", end)):
            if at is None:
                continue
            self._seq += 1
            row = {"step_id": what, "attempt": self._seq, "begun_seq": self._seq, "seq": self._seq}
            times = {"finished_at": BEGAN + at, "retry_at": BEGAN + at, "forgotten": self._seq}
            self._attempts.append(row | times | {"error": {"message": reason}})

    def failed(  # noqa: PLR0917  an attempt, and its times
        self,
        step_id: str,
        attempt: int,
        begin: int,
        end: int,
        retry_at: int,
        worker_id: str | None = None,
        **fields: Any,
    ) -> None:
        """An attempt that another one follows."""
        self._seq += 2
        self._attempts.append(
            {
                "step_id": step_id,
                "attempt": attempt,
                "begun_seq": self._seq - 1,
                "seq": self._seq,
                "started_at": BEGAN + begin,
                "finished_at": BEGAN + end,
                "retry_at": BEGAN + retry_at,
                "error": ERROR,
                "worker_id": worker_id,
                **fields,
            }
        )

    def lines(self, run_id: str) -> str:
        self._seq += 1
        run = {
            "run_id": run_id,
            "request_id": str(uuid.uuid4()),
            "workflow_type": self.workflow,
            "workflow_id": run_id,
            "status": "completed",
            "created_at": BEGAN,
            "started_at": BEGAN,
            "finished_at": BEGAN + self.ended,
            "last_seq": self._seq,
            "version": "1",
            "lease": 1,
            "input": {"json": None},
            "output": {"json": None},
            **self.fields,
        }
        counts = {"steps": len(self._steps), "attempts": len(self._attempts), "signals": 0, "links": 0}
        records = [
            {"kagzi": 1, "run": run},
            *({"step": step} for step in self._steps),
            *({"attempt": attempt} for attempt in self._attempts),
            {"end": counts},
        ]
        return "".join(_line(record) for record in records)


def _line(record: dict[str, Any]) -> str:
    """Outputs are written as they are, not as they are read."""
    text = json.dumps(record)
    begin = text.find('"@')
    while begin >= 0:
        end = text.index('@"', begin)
        text = text[:begin] + json.loads(f'"{text[begin + 2 : end]}"') + text[end + 2 :]
        begin = text.find('"@', begin + 1)
    return f"{text}\n"


def add(dashboard: Dashboard, history: Recorded, *, namespace: str = "default") -> str:
    """The id of the run."""
    run_id = str(uuid.uuid4())
    lines = history.lines(run_id)
    headers = {"content-type": "application/x-ndjson"}
    answer = dashboard.api.post("/runs/import", content=lines, headers=headers, params={"namespace": namespace})
    assert answer.status_code == 200, answer.text
    return answer.json()["run_id"]


def long_run(count: int, failed: int) -> Recorded:
    """That many steps of 10 ms, one after the other, one of which failed."""
    history = Recorded()
    for number in range(count):
        begin = number * 12_000
        broken: dict[str, Any] = {"status": "failed", "error": ERROR} if number == failed else {}
        history.step(f"step-{number}", begin, begin + 10_000, **broken)
    return history
