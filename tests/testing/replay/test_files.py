"""Histories in files: what is read is what was written, and what is wrong with a file is said with line and field."""

from pathlib import Path

import pytest

from kagzi import Context, InvalidArgument, NotFound, RunStatus, StepKind, workflow
from kagzi.testing import History, RecordedStep, Replayer


@workflow
async def order(ctx: Context, number: int) -> str:
    word = await ctx.step("a").run(str, number)
    await ctx.sleep("b", "1h")
    return str(word)


STEPS = [RecordedStep(id="a", value="7"), RecordedStep(id="b", kind=StepKind.SLEEP)]
HISTORY = History.build(order, 7, steps=STEPS, status=RunStatus.COMPLETED, output="7")
OTHER = "00000000-0000-7000-8000-000000000001"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    HISTORY.save(path)
    return path


async def test_what_is_saved_is_loaded_and_replays(path: Path) -> None:
    history = History.load(path)
    assert history.to_bytes() == HISTORY.to_bytes()
    assert (history.input, history.output, history.status) == (7, "7", RunStatus.COMPLETED)
    assert history.steps == HISTORY.steps
    assert (await Replayer([order]).run(history)).as_recorded is True


async def test_steps_that_a_retry_discarded_are_kept_in_the_file_and_not_replayed() -> None:
    lines = HISTORY.to_bytes().splitlines(keepends=True)
    discarded = lines[1].replace(b'{"step":{', b'{"forgotten":{"retried_at":1,"retry_seq":2,').replace(b'"7"', b'"6"')
    end = lines[-1].replace(b'"links":0', b'"forgotten":1,"links":0')
    history = History.read([*lines[:-1], discarded, end], "run.jsonl", namespace="default")
    assert b'{"forgotten":' in history.to_bytes()
    assert [(step.id, step.value) for step in history.steps] == [("a", "7"), ("b", None)]
    assert (await Replayer([order]).run(history)).as_recorded is True
    with pytest.raises(InvalidArgument, match="has 1 forgotten lines, but its end line counts 0"):
        History.read([*lines[:-1], discarded, lines[-1]], "run.jsonl", namespace="default")


def test_a_file_with_several_runs(path: Path) -> None:
    child = History.build(order, 8, run_id=OTHER, workflow_id="child-1", parent_run_id=HISTORY.run_id)
    path.write_bytes(HISTORY.to_bytes() + child.to_bytes())
    assert [each.run_id for each in History.load_all(path)] == [HISTORY.run_id, OTHER]
    assert History.load(path, "child-1").parent_run_id == HISTORY.run_id
    with pytest.raises(InvalidArgument, match=r"has 2 runs: .* Name one of them"):
        History.load(path)
    with pytest.raises(NotFound, match=r"has no run 'nobody'\. It has: "):
        History.load(path, "nobody")


def refusal(path: Path, data: bytes) -> InvalidArgument:
    path.write_bytes(data)
    with pytest.raises(InvalidArgument) as refused:
        History.load_all(path)
    assert str(path) in refused.value.message
    return refused.value


def test_a_file_that_was_cut_off_anywhere_is_refused_with_its_line(path: Path) -> None:
    """Wherever: not one prefix of a file is taken for a whole one."""
    whole = HISTORY.to_bytes()
    for size in range(len(whole) - 1):
        error = refusal(path, whole[:size])
        line = whole[:size].count(b"\n") + (0 if size and whole[size - 1 : size] == b"\n" else 1)
        if size:
            assert any(f"line {number}" in error.message for number in (line, line + 1)), (size, error.message)
        assert "export" in error.message


def test_lines_that_are_missing_or_in_another_order_are_refused(path: Path) -> None:
    run, first, second, end = HISTORY.to_bytes().splitlines(keepends=True)
    lost = refusal(path, run + first + end)
    assert "line 3: " in lost.message
    assert "has 1 step lines, but its end line counts 2" in lost.message
    assert lost.field == "line 3: end.steps"
    assert "line 2: another run begins before the end line" in refusal(path, run + run).message
    assert "line 1: step belongs to no run" in refusal(path, first + run).message
    assert "line 2: Object contains unknown field `colour`" in refusal(
        path, run + first.replace(b'{"step":{', b'{"step":{"colour":1,') + second + end
    ).message  # fmt: skip
    kind = refusal(path, run + first.replace(b'"function"', b'"dance"') + second + end)
    assert "line 2: Invalid enum value 'dance' - at `$.step.kind`" in kind.message


def test_files_of_another_kind_and_of_newer_versions_are_refused(path: Path) -> None:
    assert "is empty" in refusal(path, b"").message
    for foreign in (b"hello\n", b"\x1f\x8b\x08\x00\n", b'{"a": 1}\n', b"[]\n", b"\xff\xfe\n"):
        error = refusal(path, foreign)
        assert "is not a file of `kagzi export`" in error.message
        assert "kagzi export RUN > FILE" in error.message
    newer = refusal(path, HISTORY.to_bytes().replace(b'{"kagzi":1', b'{"kagzi":2'))
    assert "line 1: it was exported in a format that this version of kagzi does not know (it knows 1)" in newer.message
    assert newer.field == "line 1: kagzi"
    renamed = HISTORY.to_bytes().replace(b'{"kagzi":1', b'{"kagzi":2').replace(b'"run":', b'"execution":', 1)
    assert "does not know" in refusal(path, renamed).message


async def test_values_that_are_damaged_are_refused_with_their_field() -> None:
    damaged = HISTORY.to_bytes().replace(b'{"json":"7"},"step_id"', b'{"base64":"7"},"step_id"')
    history = History.read(damaged.splitlines(keepends=True), "a test", namespace="default")
    with pytest.raises(InvalidArgument, match=r"step 'a': output\.base64 is not valid base64"):
        await Replayer([order]).run(history)


def test_a_history_that_is_written_wrongly_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="step 'a' is there twice"):
        History.build(order, 1, steps=[RecordedStep(id="a"), RecordedStep(id="a")])
    with pytest.raises(InvalidArgument, match="has no begun_seq, but others have"):
        History.build(order, 1, steps=[RecordedStep(id="a", begun_seq=1), RecordedStep(id="b")])


async def test_a_workflow_that_is_not_here_is_named() -> None:
    with pytest.raises(NotFound, match=r"is of workflow 'other' version 1, which is not here.*which has 'order' versi"):
        await Replayer([order]).run(History.build("other"))
    with pytest.raises(NotFound, match="version 2"):
        await Replayer([order]).run(History.build(order, 1, version="2"))
