"""A server and a worker as real processes, and how tests make them do something."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import httpx
from playwright.sync_api import Page

from kagzi.sync import Kagzi
from tests.support.kagzi_process import RunningCommand
from tests.support.timeouts import LOADED_MACHINE_S

FLOWS = Path(__file__).parent / "flows.py"
PORTS = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
Value = TypeVar("Value")


class Dashboard:
    """`url`: of the dashboard, with a slash at its end. `api`: a client of the HTTP API. `client`: of the SDK. Servers
    may be killed and started again with `server` and `restart`; the others stay as they are."""

    def __init__(self, database: str, directory: Path, *options: str, worker: bool = True) -> None:
        self.database = database
        self.directory = directory
        self._options = options
        self._has_worker = worker
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start(self) -> None:
        self.server = self._command("server", "--db", self.database, *PORTS, *self._options)
        ready = self.server.says(r"kagzi server ready .*?grpc=(\S+).*?http=(\S+)")
        self.address, self.url = ready[1], f"{ready[2]}/"
        self.worker_pid = self.worker().process.pid if self._has_worker else 0
        self.api = self._stack.enter_context(httpx.Client(base_url=f"{self.url}api/v1", timeout=LOADED_MACHINE_S))

    def _command(self, *arguments: str) -> RunningCommand:
        command = RunningCommand(*arguments, cwd=self.directory)
        self._stack.callback(command.close)
        return command

    def worker(self, *options: str, flows: Path = FLOWS) -> RunningCommand:
        """Another one, which serves."""
        worker = self._command("worker", str(flows), "--address", self.address, *options)
        worker.says(r"worker \S+ serves")
        return worker

    def restart(self) -> None:
        """The server, on its ports, after it was killed or not."""
        self.server.close()
        ports = ("--listen", self.address, "--http", self.url.removeprefix("http://").split("/")[0])
        self.server = self._command("server", "--db", self.database, *ports, *self._options)
        self.server.says(r"kagzi server ready")

    @contextmanager
    def connected(self) -> Iterator[Kagzi]:
        with Kagzi.connect(self.address) as client:
            yield client

    # --- runs ---------------------------------------------------------------------------------------------------------

    def start(self, workflow: str, input: Any = None, *, namespace: str = "default", **fields: Any) -> str:
        """The id of a new run."""
        body = {"workflow": workflow, "input": input, **fields}
        answer = self.api.post("/runs", json=body, params={"namespace": namespace})
        assert answer.status_code == 201, answer.text
        return answer.json()["run_id"]

    def get(self, path: str, **query: Any) -> Any:
        answer = self.api.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def run(self, run_id: str, **query: Any) -> dict[str, Any]:
        return self.get(f"/runs/{run_id}", **query)

    def signal(self, run_id: str, name: str, payload: Any = None, **query: Any) -> None:
        answer = self.api.post(f"/runs/{run_id}/signal", json={"name": name, "payload": payload}, params=query)
        assert answer.status_code == 200, answer.text

    def retried(self, failures: int) -> str:
        """A run that completed after so many retries."""
        run_id = self.start("unlucky", failures)
        for _ in range(failures):
            self.reached(run_id, {"status": "failed"})
            answer = self.api.post(f"/runs/{run_id}/retry", json={})
            assert answer.is_success, answer.text
        self.reached(run_id, {"status": "completed"})
        return run_id

    def ended(self, run_id: str, **query: Any) -> dict[str, Any]:
        """How it ended, once it has."""
        return until(lambda: self.get(f"/runs/{run_id}/wait", **query), lambda end: end["ended"])

    def reached(self, run_id: str, wanted: Mapping[str, Any], **query: Any) -> dict[str, Any]:
        """The run, once it has these fields."""
        return until(lambda: self.run(run_id, **query), lambda run: wanted.items() <= run.items())


class Keyed(NamedTuple):
    """`operator`: a key that may do everything, with which `dashboard` asks."""

    dashboard: Dashboard
    operator: str

    def key(self, namespace: str, *scopes: str) -> str:
        """Another one."""
        body = {"name": f"{' and '.join(scopes)} of {namespace}", "scopes": scopes}
        answer = self.dashboard.api.post("/keys", params={"namespace": namespace}, json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()["secret"]

    def log_in(self, page: Page, key: str, path: str = "runs") -> None:
        """And go on to the page."""
        page.goto(f"{self.dashboard.url}{path}")
        page.get_by_label("API key").fill(key)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(lambda url: "/login" not in url)


def until(read: Callable[[], Value], holds: Callable[[Value], object], timeout_s: float = LOADED_MACHINE_S) -> Value:
    """What is seen, once it is as it should be."""
    end = time.monotonic() + timeout_s
    while True:
        seen = read()
        if holds(seen):
            return seen
        assert time.monotonic() < end, f"after {timeout_s:g} s it is still {seen}"
        time.sleep(0.02)
