"""kagzi replay, kagzi diff and kagzi export --pytest: recorded runs against code."""

import asyncio
import importlib
import inspect
import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from kagzi import Kagzi, Worker
from kagzi.cli.demo import shop as shop_code
from kagzi.cli.develop.code import short_path
from tests.cli.recorded_shop import CODE, Shop, record
from tests.support.kagzi_inline import kagzi_inline
from tests.support.timeouts import LOADED_MACHINE_S

SECRET = """
from collections.abc import Mapping
from kagzi import Context, workflow


class Reversed:
    def encode(self, data: bytes) -> tuple[bytes, Mapping[str, str]]:
        return data[::-1], {"encoding": "reversed"}

    def decode(self, data: bytes, metadata: Mapping[str, str]) -> bytes:
        return data[::-1]


codec = Reversed()


async def upper(word: str) -> str:
    return word.upper()


@workflow
async def hush(ctx: Context, word: str) -> str:
    return await ctx.step("upper").run(upper, word)
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return record(tmp_path_factory.mktemp("shop"))


def kagzi(shop: Shop, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = kagzi_inline(*arguments, env={"KAGZI_ADDRESS": shop.address})
    assert done.returncode == code, done.stderr
    return done


def changed_file(tmp_path: Path, old: str, new: str) -> Path:
    """The code of the shop, otherwise, in a file of its own."""
    source = inspect.getsource(shop_code).replace("from ...", "from kagzi.")
    assert old in source
    (tmp_path / "changed_shop.py").write_text(source.replace(old, new))
    return tmp_path / "changed_shop.py"


# --- replay -----------------------------------------------------------------------------------------------------------


def test_replay_prints_the_steps_with_values_times_and_lines_and_the_end(shop: Shop) -> None:
    done = kagzi(shop, "replay", "rejected", "--code", CODE)
    line = inspect.getsource(shop_code).splitlines().index('    payment = await ctx.step("charge-card", '
        'retry=Retry.exponential(5, initial="2s", max="30s")).run(') + 1  # fmt: skip
    row = next(row for row in done.stdout.splitlines() if row.startswith("charge-card"))
    assert row.split()[1:3] == ["function", "completed"]
    assert f" {short_path(shop_code.__file__)}:{line} " in row
    assert '"amount": "300.00 EUR"' in row
    assert "reserve[kettle]" in done.stdout
    assert '{"approved": false, "note": "too dear"}' in done.stdout
    assert 'completed  {"status": "rejected"' in done.stdout
    assert "recorded steps reached" in done.stderr


def test_replay_of_a_failed_run_from_a_file_comes_to_the_same_failure(shop: Shop) -> None:
    done = kagzi(shop, "replay", "declined", "--from", str(shop.file), "--code", CODE, "--json")
    view = json.loads(done.stdout)
    assert (view["status"], view["outcome"], view["fits"], view["as_recorded"]) == ("failed", "failed", True, True)
    assert view["error"]["text"] == "CardDeclined: the card of ada@example.com was declined"
    last = view["steps"][-1]
    assert (last["step_id"], last["status"], last["file"]) == ("charge-card", "failed", shop_code.__file__)
    assert last["finished_at"] is not None


def test_replay_names_the_first_divergence_with_line_and_remedy(shop: Shop, tmp_path: Path) -> None:
    file = changed_file(tmp_path, '"charge-card"', '"charge-twice"')
    done = kagzi(shop, "replay", "rejected", "--code", str(file), code=1)
    assert "diverged at " in done.stdout
    assert "changed_shop.py:" in done.stdout
    assert 'if ctx.changed("' in done.stdout
    view = json.loads(kagzi(shop, "replay", "rejected", "--code", str(file), "--json", code=1).stdout)
    assert (view["outcome"], view["divergence"]["step"]) == ("diverged", "charge-twice")
    assert view["divergence"]["line"] > 0


def test_replay_tells_of_another_end(shop: Shop, tmp_path: Path) -> None:
    file = changed_file(tmp_path, '"status": "rejected"', '"status": "refused"')
    done = kagzi(shop, "replay", "rejected", "--code", str(file), code=1)
    assert 'completed  {"status": "refused"' in done.stdout
    assert 'the code does not end as recorded: completed, {"status": "rejected"' in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["replay", "declined", "--code", CODE, "--at", "x"], 2, "--at needs --pdb"),
        (["replay", "--code", CODE], 2, "give a RUN, or a file with one run"),
        (["replay", "nobody", "--code", CODE], 3, "run nobody not found"),
        (["replay", "declined", "--code", "nowhere"], 2, "There is no module 'nowhere'"),
        (["replay", "declined", "--code", "kagzi.cli.bench.flows"], 3, "'process-order' version 1, which is not here"),
        (["replay", "declined"], 2, "missing option --code\nhint: add --code MODULE"),
        (["diff", "declined"], 2, "is not a fork"),
        (["export", "declined", "--pytest"], 2, "--pytest needs --code MODULE"),
        (["export", "declined", "--code", CODE], 2, "--code needs --pytest"),
        (["export", "declined", "again", "--pytest", "--code", CODE], 2, "give one RUN"),
        (["export", "--all", "--pytest", "--code", CODE], 2, "give one RUN"),
        (["export", "--pytest", "--code", CODE], 2, "or a file with one run: --from FILE"),
        (["export", "declined", "--from", __file__], 2, "--from needs --pytest"),
        (["export", "declined", "--pytest", "--code", CODE, "--status", "failed"], 2, "need --all"),
    ],
)
def test_mistakes_are_named(shop: Shop, arguments: list[str], code: int, says: str) -> None:
    assert says in kagzi(shop, *arguments, code=code).stderr


def test_runs_of_a_file_are_named_like_those_of_a_server(shop: Shop) -> None:
    source = ("--from", str(shop.file))
    assert "has 3 runs" in kagzi(shop, "replay", *source, "--code", CODE, code=2).stderr
    assert "not found in" in kagzi(shop, "replay", "nobody", *source, "--code", CODE, code=3).stderr
    run_id = json.loads(kagzi(shop, "replay", "again", *source, "--code", CODE, "--json").stdout)["run_id"]
    assert json.loads(kagzi(shop, "get", "again", "--json").stdout)["run_id"] == run_id
    by_prefix = kagzi(shop, "replay", run_id[:-2].upper(), *source, "--code", CODE, "--json")
    assert json.loads(by_prefix.stdout)["run_id"] == run_id
    assert "beginning of more than one" in kagzi(shop, "replay", run_id[:4], *source, "--code", CODE, code=2).stderr


# --- diff -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("from_file", [False, True])
def test_a_fork_is_compared_with_its_original(shop: Shop, from_file: bool) -> None:
    source = ("--from", str(shop.file)) if from_file else ()
    done = kagzi(shop, "diff", "again", *source, code=1)
    assert "first difference: step charge-card (differs)" in done.stdout
    assert "left   failed  CardDeclined: the card of ada@example.com was declined  (at +" in done.stdout
    assert 'right  completed  {"transaction": "tx_' in done.stdout
    assert "the end differs" in done.stdout
    rows = {row.split("  ")[0]: row for row in done.stdout.splitlines()}
    assert "same" in rows["reserve[kettle]"]
    assert "right only" in rows["approve-order"]


def test_the_difference_for_programs(shop: Shop) -> None:
    view = json.loads(kagzi(shop, "diff", "declined", "rejected", "--json", code=1).stdout)
    assert (view["same"], view["first_difference"]) == (False, "charge-card")
    assert (view["left"]["workflow_id"], view["right"]["workflow_id"]) == ("declined", "rejected")
    verdicts = {step["step_id"]: step["verdict"] for step in view["steps"]}
    assert verdicts == {
        "reserve[kettle]": "same", "reserve[tea]": "same", "charge-card": "differs", "approve-order": "right only",
        "give-back": "right only",
    }  # fmt: skip
    charge = view["steps"][2]
    assert charge["differences"][0] == {"field": "status", "path": "$", "left": "failed", "right": "completed"}
    assert charge["left"]["finished_at"] < charge["right"]["finished_at"]
    assert [each["field"] for each in view["end"]] == ["status", "output", "error"]


def test_a_run_does_not_differ_from_itself(shop: Shop) -> None:
    assert "no difference: 3 steps" in kagzi(shop, "diff", "declined", "declined").stdout


# --- export --pytest --------------------------------------------------------------------------------------------------


def test_the_exported_test_of_a_failed_run_passes_and_fails_when_the_workflow_is_changed(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "test_declined.py"
    done = kagzi(shop, "export", "declined", "--pytest", "--code", CODE, "--output", str(file))
    assert done.stderr == "test_declined: 3 recorded steps, with values in plain text\n"
    assert done.stdout == ""
    assert file.read_text() == kagzi(shop, "export", "declined", "--pytest", "--code", CODE).stdout

    pytest_command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(file),
    ]
    passed = subprocess.run(pytest_command, capture_output=True, text=True, timeout=LOADED_MACHINE_S, check=False)
    assert passed.returncode == 0, passed.stdout

    test: Any = {}
    source = inspect.getsource(shop_code)
    old = "charge_card, order.customer, order.total"
    assert source.count(old) == 1
    changed = types.ModuleType(CODE)
    changed.__file__, changed.__package__ = shop_code.__file__, shop_code.__package__
    monkeypatch.setitem(sys.modules, CODE, changed)
    exec(source.replace(old, "charge_card, order.customer, order.total * 1.1"), vars(changed))  # noqa: S102  it is our own
    exec(file.read_text(), test)  # noqa: S102  it is our own
    with pytest.raises(AssertionError, match=r"step 'charge-card' is called with args=\['ada@example.com', 330"):
        test["test_declined"]()


def test_a_test_is_exported_from_a_file_too_without_a_server(shop: Shop, tmp_path: Path) -> None:
    nowhere = Shop("localhost:1", tmp_path)
    export = ("--pytest", "--code", CODE)
    from_server = kagzi(shop, "export", "declined", *export).stdout
    from_file = kagzi(nowhere, "export", "declined", "--from", str(shop.file), *export).stdout
    command = f"kagzi export declined --from {shop.file} --pytest --code {CODE}"
    assert from_file == from_server.replace(f"kagzi export declined --pytest --code {CODE}", command)
    assert command in from_file
    assert "has 3 runs" in kagzi(nowhere, "export", "--from", str(shop.file), *export, code=2).stderr
    one = tmp_path / "one.jsonl"
    kagzi(shop, "export", "declined", "--output", str(one))
    assert "def test_declined" in kagzi(nowhere, "export", "--from", str(one), *export).stdout


def test_encoded_values_need_their_codec_and_are_written_in_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret_flows.py").write_text(SECRET)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    secret_flows: Any = importlib.import_module("secret_flows")
    address = f"sqlite:///{tmp_path}/secret.db"

    async def run() -> None:
        worker = Worker(address, workflows=[secret_flows.hush], codec=secret_flows.codec)
        async with worker, Kagzi.connect(address, codec=secret_flows.codec) as client:
            await client.run(secret_flows.hush, "the word", id="hush")

    asyncio.run(run())
    shop = Shop(address, tmp_path)
    export = ("export", "hush", "--pytest", "--code", "secret_flows")
    refused = kagzi(shop, *export, code=5)
    assert "cannot be decoded" in refused.stderr
    assert "codec" in refused.stderr
    source = kagzi(shop, *export, "--codec", "secret_flows:codec").stdout
    assert 'args=["the word"], returns="THE WORD"' in source
    done = kagzi(shop, "replay", "hush", "--code", "secret_flows", "--codec", "secret_flows:codec")
    assert "completed  THE WORD" in done.stdout


def test_who_exports_a_test_that_fails_is_told(shop: Shop, tmp_path: Path) -> None:
    file = changed_file(tmp_path, '"charge-card"', '"charge-twice"')
    done = kagzi(shop, "export", "declined", "--pytest", "--code", str(file))
    assert "the test fails with the code at hand: " in done.stderr
    assert "'charge-twice'" in done.stderr
    assert 'run.step("charge-card", raises=' in " ".join(done.stdout.split()).replace("( ", "(")


def test_a_run_that_makes_too_long_a_test_stays_in_a_file(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kagzi.cli.develop.pytest_files.LARGEST_BYTES", 500)
    done = kagzi(shop, "export", "declined", "--pytest", "--code", CODE, code=5)
    assert "the limit is 500" in done.stderr
    assert "kagzi export declined -o run.jsonl" in done.stderr
    done = kagzi(shop, "export", "declined", "--from", str(shop.file), "--pytest", "--code", CODE, code=5)
    assert f'History.load("{shop.file}", "' in done.stderr
