"""`kagzi check` and `kagzi adopt`: runs of the code as it was, against changed code; on both stores, in this
process."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kagzi import Kagzi, Run, RunStatus, Worker
from kagzi.cli.develop.checking import Sample
from kagzi.cli.develop.code import load_code
from kagzi.cli.develop.findings import Finding, Findings, finding_of
from kagzi.cli.options import Server
from kagzi.core.error_details import ErrorDetail
from kagzi.testing import Replay
from tests.docs.snippets import blocks, write_files
from tests.support.deploys import AUDIT_LINE, CHANGED, REPAIRED, open_runs, write_code
from tests.support.kagzi_inline import kagzi_inline
from tests.support.kagzi_process import clean_environment, running
from tests.support.providers import LoadedRng

NO_PORTS = ("--listen", "127.0.0.1:0", "--http", "off")
COUNTS = {"waiting": 5, "charged": 5, "shipped": 10, "invoiced": 5, "reported": 3, "old": 2}
DEADLINE_S = 60.0
PAGE = "docs/how-to/deploy-checks.md"
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Shop:
    """A store with open runs, and the folder with the changed code."""

    def __init__(self, address: str, folder: Path, runs: dict[str, set[str]]) -> None:
        self.address = address
        self.folder = folder
        self.runs = runs

    def kagzi(self, *arguments: str) -> tuple[int, str, str]:
        done = kagzi_inline(*arguments, "--address", self.address)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        if request.param == "postgres":  # which is never in the process of a client
            databases = request.getfixturevalue("migrated_databases")
            with databases.database() as url, running("server", "--db", url, *NO_PORTS) as server:
                address = server.says(r"kagzi server ready .*?grpc=(\S+)", DEADLINE_S)[1]
                yield Shop(address, folder, asyncio.run(open_runs(address, COUNTS)))
        else:
            address = f"sqlite:///{folder}/kagzi.db"
            yield Shop(address, folder, asyncio.run(open_runs(address, COUNTS)))


# --- check ------------------------------------------------------------------------------------------------------------


def test_it_finds_exactly_the_runs_that_diverge(shop: Shop) -> None:
    write_code(shop.folder, CHANGED)
    code, out, err = shop.kagzi("check", "shop.py", "--jsonl")
    rows = [json.loads(line) for line in out.splitlines()]
    by_verdict = {
        verdict: {row["run_id"] for row in rows if row["verdict"] == verdict}
        for verdict in ("diverges", "no_version", "no_workflow")
    }
    assert by_verdict == {
        "diverges": shop.runs["shipped"],
        "no_version": shop.runs["old"],
        "no_workflow": shop.runs["reported"],
    }
    assert len(rows) == 15
    assert code == 1
    assert "30 open runs checked against shop.py: 15 fit, 10 diverge" in err


def test_runs_that_diverge_at_one_line_are_one_entry_with_what_to_write(shop: Shop) -> None:
    write_code(shop.folder, CHANGED)
    code, out, _ = shop.kagzi("check", "shop.py")
    assert code == 1
    assert f"order version 1: 10 runs diverge at shop.py:{AUDIT_LINE}\n" in out
    assert "and 5 more" in out
    assert 'if ctx.changed("add-audit"):\n          await ctx.step("audit")' in out
    assert "order version 0: 2 runs" in out
    assert "shop.py has no workflow 'report'" in out
    _, out, _ = shop.kagzi("check", "shop.py", "--json")
    summary = json.loads(out)
    assert (summary["runs"], summary["fit"], summary["diverge"]) == (30, 15, 10)
    first = summary["findings"][0]
    assert (first["verdict"], first["count"], first["line"], len(first["run_ids"])) == ("diverges", 10, AUDIT_LINE, 5)


def test_code_that_fits_passes_and_strict_wants_every_version(shop: Shop) -> None:
    write_code(shop.folder, REPAIRED, "fixed.py")
    code, _, err = shop.kagzi("check", "fixed.py")
    assert (code, "25 fit" in err) == (0, True), err
    assert shop.kagzi("check", "fixed.py", "--strict")[0] == 1


def test_a_changed_timeout_of_a_wait_under_way_is_reported_and_fits(shop: Shop) -> None:
    wait = "    return await ctx.wait_for(proceed)\n"
    assert REPAIRED.count(wait) == 1
    changed = REPAIRED.replace(wait, '    return await ctx.wait_for(proceed, timeout="3 days")\n')
    write_code(shop.folder, changed, "timed.py")
    code, out, err = shop.kagzi("check", "timed.py")
    line = changed.splitlines().index('    return await ctx.wait_for(proceed, timeout="3 days")') + 1
    assert code == 0
    assert f"invoice version 1: 5 runs fit and take a new timeout at timed.py:{line}\n" in out
    assert "'proceed' began without a timeout; the code waits with a timeout of 3d. It counts from when" in out
    assert "20 fit, " in err
    assert "5 fit and take a new timeout" in err
    _, out, _ = shop.kagzi("check", "timed.py", "--json")
    summary = json.loads(out)
    assert (summary["fit"], summary["new_timeout"]) == (20, 5)


def test_a_sample_has_some_of_each_workflow_and_version(shop: Shop) -> None:
    write_code(shop.folder, CHANGED)
    _, out, _ = shop.kagzi("check", "shop.py", "--sample", "2", "--json")
    assert json.loads(out)["runs"] == 2 + 2 + 2 + 2  # order 1, order 0, invoice, report


def test_a_file_is_checked_without_a_server(shop: Shop) -> None:
    write_code(shop.folder, CHANGED)
    file = shop.folder / "runs.jsonl"
    assert shop.kagzi("export", "--all", "--output", str(file))[0] == 0
    done = kagzi_inline("check", "shop.py", "--from", str(file), "--json", "--address", "127.0.0.1:1")
    summary = json.loads(done.stdout)
    assert (done.returncode, summary["runs"], summary["diverge"]) == (1, 30, 10)
    sampled = kagzi_inline("check", "shop.py", "--from", str(file), "--json", "--sample", "1")
    assert json.loads(sampled.stdout)["runs"] == 4
    other = shop.folder / "other.txt"
    other.write_text("no export\n")
    done = kagzi_inline("check", "shop.py", "--from", str(other))
    assert done.returncode not in (0, 1)
    assert "not a file of `kagzi export`" in done.stderr


def test_code_that_raises_before_it_comes_to_what_is_recorded(shop: Shop) -> None:
    line = '    await ctx.step("audit").run(lambda: "audited")'
    write_code(shop.folder, CHANGED.replace(line, "    missing()"), "failing.py")
    code, out, _ = shop.kagzi("check", "failing.py")
    assert code == 1
    assert f"10 runs diverge at failing.py:{AUDIT_LINE}" in out
    assert "the code raises NameError: name 'missing' is not defined" in out
    assert "ctx.changed" not in out, "that is not the remedy"


def test_code_that_would_fail_at_once_does_not_pass() -> None:
    error = ErrorDetail(type="KeyError", message="'x'", traceback='  File "/code/shop.py", line 9, in order\n')
    fails = finding_of(Replay(outcome="failed", error=error), "order", "1", ended=False)
    assert fails is not None
    assert (fails.verdict, fails.place, fails.message) == ("fails", "/code/shop.py:9", "KeyError: 'x'")
    assert finding_of(Replay(outcome="failed", error=error), "order", "1", ended=True) is None
    recorded = ErrorDetail(type="kagzi.StepError", message="charge failed")
    assert finding_of(Replay(outcome="failed", error=recorded), "order", "1", ended=False) is None


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("check", "missing.py"), 2, "does not exist"),
        (("check", "broken.py"), 2, "SyntaxError"),
        (("check", "shop.py", "--json", "--jsonl"), 2, "not both"),
        (("check", "shop.py", "--address", "127.0.0.1:1"), 4, "127.0.0.1:1"),
        (("adopt", "RUN"), 2, "--code"),
        (("adopt", "RUN", "--code", "shop.py", "--any-build"), 2, "--any-build"),
    ],
)
def test_wrong_use_has_its_own_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_code(tmp_path, CHANGED)
    write_code(tmp_path, "def (", "broken.py")
    done = kagzi_inline(*arguments)
    assert done.returncode == code, done.stderr
    assert says in done.stderr


def test_the_page_about_it_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(PAGE, tmp_path)
    subprocess.run([sys.executable, "begin.py"], env=clean_environment(), check=True, timeout=60)
    command, shown = next(block.text for block in blocks(PAGE) if block.language == "console").split("\n", 1)
    done = kagzi_inline(*command.removeprefix("$ kagzi ").split())
    assert (done.returncode, UUID.sub("RUN", done.stdout)) == (1, UUID.sub("RUN", shown))
    assert kagzi_inline("check", "fixed.py", "--address", "sqlite:///shop.db").returncode == 0


def test_steps_of_a_loop_are_one_entry() -> None:
    findings = Findings()
    for number in range(1_000):
        step = f"parallel[{number}]/audit#{number}"
        findings.add(f"run-{number}", Finding("diverges", "order", "1", "", "shop.py", 7, step))
    findings.add("other", Finding("diverges", "order", "1", "", "shop.py", 8, "audit"))
    assert [(entry.count, len(entry.run_ids)) for entry in findings.entries()] == [(1_000, 5), (1, 1)]
    assert findings.summary() == "0 fit, 1001 diverge"


def test_a_sample_keeps_no_more_than_it_needs() -> None:
    chosen: Sample[int] = Sample(3, LoadedRng())
    for number in range(10_000):
        chosen.add(number % 2, number)
    assert len(chosen.items()) == 6


# --- adopt ------------------------------------------------------------------------------------------------------------


def test_code_that_does_not_fit_is_refused_and_nothing_changes(shop: Shop) -> None:
    write_code(shop.folder, CHANGED)
    run_id = min(shop.runs["shipped"])
    code, out, err = shop.kagzi("adopt", run_id, "--code", "shop.py", "--yes")
    assert code == 1
    assert "does not fit" in err
    assert f"diverges at shop.py:{AUDIT_LINE}" in out
    assert "not called" in out
    assert json.loads(shop.kagzi("get", run_id, "--json")[1])["pinned_build"] is None


def test_a_run_of_another_version_or_workflow_is_refused(shop: Shop) -> None:
    write_code(shop.folder, CHANGED)
    code, _, err = shop.kagzi("adopt", min(shop.runs["old"]), "--code", "shop.py", "--yes")
    assert (code, "@workflow(version='0')" in err) == (2, True), err
    code, _, err = shop.kagzi("adopt", min(shop.runs["reported"]), "--code", "shop.py", "--yes")
    assert (code, "no workflow 'report'" in err) == (2, True), err


def test_a_stuck_run_goes_on_with_the_repaired_code_only(shop: Shop) -> None:
    """The deployed code has paused it; the repaired code is a file of its own, of which nobody has a worker yet."""
    write_code(shop.folder, CHANGED)
    write_code(shop.folder, REPAIRED, "hotfix.py")
    run_id = min(shop.runs["charged"])
    server = Server(shop.address, None)
    deployed, hotfix = load_code("shop.py", server), load_code("hotfix.py", server)
    assert deployed.build_id != hotfix.build_id

    code, out, err = shop.kagzi("adopt", run_id, "--code", "hotfix.py")
    assert (code, "--yes" in err) == (2, True), "nobody can be asked here"
    code, out, err = shop.kagzi("adopt", run_id, "--code", "hotfix.py", "--yes", "--reason", "ticket 7")
    assert code == 0, err
    assert "charge" in out
    assert "fits; next: " in out
    assert "kagzi worker hotfix.py" in err, "nobody has it yet"
    assert json.loads(shop.kagzi("get", run_id, "--json")[1])["pinned_build"] == hotfix.build_id
    [audited] = json.loads(shop.kagzi("audit", "--json")[1])
    assert (audited["action"], audited["subject"]) == ("run.adopt", run_id)
    assert audited["details"] == {"build_id": hotfix.build_id, "reason": "ticket 7"}

    async def continue_it() -> None:
        async with Kagzi.connect(shop.address) as client:
            run = client.get(run_id)
            async with Worker(shop.address, workflows=deployed.workflows):
                await run.signal("proceed", "go")
                await reason_of(run, "no_worker_for_build")
                async with Worker(shop.address, workflows=hotfix.workflows):
                    await until(run, RunStatus.SLEEPING)
            steps = [step.id for step in await run.steps() if not step.id.startswith("add-")]
            assert steps == ["charge", "proceed", "ship", "return period"] or "audit" in steps
            assert (await run.info()).problem is None

    asyncio.run(continue_it())
    assert shop.kagzi("adopt", run_id, "--any-build")[0] == 0
    assert json.loads(shop.kagzi("get", run_id, "--json")[1])["pinned_build"] is None


async def reason_of(run: Run[object], reason: str) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while (await run.explain()).reason != reason:  # noqa: ASYNC110  as below
            await asyncio.sleep(0.05)


async def until(run: Run[object], status: RunStatus) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while await run.status() is not status:  # noqa: ASYNC110  a pause has no signal for those who do not watch
            await asyncio.sleep(0.05)
