"""A client that a public tool makes from the OpenAPI document starts a run and reads its result."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from kagzi.core.version import __version__
from tests.server.http.world import World


@pytest.fixture
def package(api: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the client, which can be imported."""
    name = "made_by_a_tool"
    document = tmp_path / "openapi.json"
    document.write_bytes(api.client.get("/openapi.json").content)
    tool = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
    done = subprocess.run(
        [*tool, "--path", str(document), "--output-path", str(tmp_path / name)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_it_starts_a_run_and_reads_its_result(api: World, package: str) -> None:
    def part(name: str) -> Any:
        return import_module(f"{package}.{name}")

    models = part("models")
    with part("client").Client(base_url=api.url) as client:
        body = models.StartIn(workflow="hello", input_="generated world", workflow_id="by a/tool")
        started = part("api.runs.runs_start").sync(client=client, body=body)
        assert started.created
        ended = part("api.runs.runs_wait").sync(started.run_id, client=client, timeout="30s")
        assert (ended.status.value, ended.output) == ("completed", "Hello, generated world!")
        run = part("api.runs.runs_get").sync("workflow_id:by a/tool", client=client)
        assert (run.run_id, run.output) == (started.run_id, "Hello, generated world!")
        page = part("api.runs.runs_list_runs").sync(client=client, status=[models.RunStatus.COMPLETED], count=True)
        assert started.run_id in [row.run_id for row in page.rows]
        refused = part("api.runs.runs_get").sync("nobody", client=client)
        assert (type(refused).__name__, refused.status) == ("Problem", 404)
        assert part("api.server.server_get").sync(client=client).version == __version__
