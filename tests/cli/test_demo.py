"""`kagzi demo`: a shop that is alive at the first look, and ends when it is told to."""

import time
from collections import Counter
from pathlib import Path

import httpx

from tests.support.kagzi_process import running
from tests.support.timeouts import LOADED_MACHINE_S

NO_PORTS = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")


def test_the_shop_shows_something_of_everything(tmp_path: Path) -> None:
    with running("demo", *NO_PORTS, "--data", "shop", "--every", "0.05", cwd=tmp_path) as demo:
        demo.says("The shop is open")
        url = demo.says(r"^  look +(\S+)$")[1]
        with httpx.Client(base_url=f"{url}/api/v1", timeout=LOADED_MACHINE_S) as http:
            deadline = time.monotonic() + LOADED_MACHINE_S
            while not _is_alive(rows := http.get("/runs", params={"size": 200}).json()["rows"]):
                assert time.monotonic() < deadline, Counter((run["workflow"], run["status"]) for run in rows)
                time.sleep(0.2)
            schedules = http.get("/schedules").json()["rows"]
        assert {each["schedule"] for each in schedules} == {"daily-report", "pulse", "reindex-at-night"}
        declined = [run["error"]["text"] for run in rows if run["status"] == "failed"]
        assert any(text.startswith("CardDeclined: the card of") for text in declined), declined
        assert demo.interrupt() == 0
    assert (tmp_path / "shop" / "demo.db").exists()


def _is_alive(rows: list[dict[str, object]]) -> bool:
    orders = [run for run in rows if run["workflow"] == "process-order"]
    return (
        {"failed", "sleeping"} <= {run["status"] for run in orders}
        and any(run["awaits_signal"] for run in orders)
        and {"ship-order", "reindex-catalogue"} <= {run["workflow"] for run in rows}
    )
