"""Collects the rows of a batch, so that few statements write many commands at each flush."""

from typing import Any

from ....core.effects import Effects
from ....core.providers import Rng
from ....core.records import Payload
from ....core.run.commands import (
    BeginSleep,
    BeginStep,
    CancelRun,
    Command,
    CompleteRun,
    ContinueAsNew,
    FailRun,
    RecordPatch,
    RecordStep,
    StartChild,
    StartRun,
)
from ....core.run.state import OUTPUT_STEP
from ....core.states import KindCode, StepCode
from ....core.times import Timestamp
from ...protocol import LeaseTerms
from ...rows import context_beside_input, write_json, write_policy, write_strings
from ..connection.connection import Database
from ..operate.namespace_rows import Namespaces
from ..operate.type_limits import Types
from .fences import Fence, Fences

StepRow = list[Any]

# Positions in a row of `insert_steps` that a result in the same batch fills in.
STATUS, SEQ, OUTPUT, OUTPUT_META, FINISHED_AT = 4, 7, 14, 15, 22

_FUNCTION, _SLEEP, _PATCH = int(KindCode.FUNCTION), int(KindCode.SLEEP), int(KindCode.PATCH)
_RUNNING, _COMPLETED = int(StepCode.RUNNING), int(StepCode.COMPLETED)
_MAY_END = (CompleteRun, FailRun, CancelRun, ContinueAsNew, StartChild)  # the start of a child may evict another run
_NAMES = {KindCode.INPUT: "$input", KindCode.CONTEXT: "$context"}


class NotAsPlanned(Exception):
    """A statement changed fewer rows than planned: a row existed already, or does not exist any more."""


class Writer:
    """What the writer's thread uses: its connection, and its caches."""

    def __init__(self, database: Database, rng: Rng, *, fast_path: bool) -> None:
        self.database = database
        self.rng = rng
        self.fast_path = fast_path
        self.fences = Fences()
        self.namespaces = Namespaces(database)
        self.types = Types(database)

    def forget_all(self) -> None:
        self.fences.forget_all()
        self.namespaces.forget_all()
        self.types.forget_all()


class WritePlan:
    """Collects the changes of one batch. Nothing is in the database before `flush`."""

    def __init__(self, writer: Writer, now: Timestamp, terms: LeaseTerms) -> None:
        self.writer = writer
        self.database = writer.database
        self.fences = writer.fences
        self.now = now
        self.terms = terms
        self.effects: list[Effects] = []
        self.begun: dict[tuple[str, str], StepRow] = {}  # steps begun in this batch that have no result yet
        self.completed: set[tuple[str, str]] = set()  # steps of earlier batches that got a result in this one
        self.touched: dict[str, Fence] = {}
        self._ended: set[str] = set()
        self._run_rows: list[tuple[Any, ...]] = []
        self._label_rows: list[tuple[Any, ...]] = []
        self._step_rows: list[StepRow] = []
        self._completions: list[tuple[Any, ...]] = []
        self._endings: list[tuple[str, int, int, int]] = []
        self._progressed: list[str] = []  # runs whose lost leases no longer count
        self._counts: list[tuple[str, int, int, int]] = []  # see RunState.count_changes

    def add_run(self, command: StartRun, row: tuple[Any, ...]) -> None:
        """A new run, with its input, context and labels. The row is one of `insert_runs`."""
        self._run_rows.append(row)
        run_id = command.run.run_id
        beside = context_beside_input(command)
        if command.input is not None:
            self.add_payload(run_id, KindCode.INPUT, command.input, beside)
        if command.context is not None and beside is None:
            self.add_payload(run_id, KindCode.CONTEXT, command.context)
        for key, value in command.labels.items():
            self._label_rows.append((command.run.namespace, key, value, self.now, run_id))

    def add_payload(self, run_id: str, kind: KindCode, payload: Payload, beside: Payload | None = None) -> None:
        """A run's input or context, as a row of its history. `beside`: the context, in the row of the input."""
        name, now = _NAMES[kind], self.now
        meta = write_strings(payload.metadata) if payload.metadata else None
        row: StepRow = [run_id, name, name, int(kind), _COMPLETED, 1, 0, 0, 0, 0, None, 0]
        row += (None, None) if beside is None else (beside.data, write_strings(beside.metadata))
        row += (payload.data, meta, None, "", "", 0, now, None, now, None)
        self._step_rows.append(row)

    def add_step(self, command: BeginStep, fence: Fence, seq: int) -> None:
        """The first attempt of a new step."""
        parameters = command.input
        now = self.now
        row: StepRow = [
            fence.run_id,
            command.step_id,
            command.name,
            _FUNCTION,
            _RUNNING,
            1,
            seq,
            0,
            fence.lease,
            fence.nonce,
            None if command.retry is None else write_policy(command.retry),
            command.timeout_ms,
            None if parameters is None else parameters.data,
            None if parameters is None else write_strings(parameters.metadata),
            None,
            None,
            None,
            command.parent_step_id,
            command.parallel_group_id,
            command.once,
            now,
            now,
            None,
            fence.worker_id,
        ]
        self._step_rows.append(row)
        self.begun[fence.run_id, command.step_id] = row
        self.touched[fence.run_id] = fence

    def add_recorded(self, command: RecordStep, fence: Fence, begun_seq: int, seq: int) -> None:
        """The first attempt of a new step, with its result."""
        parameters, output, now = command.input, command.output, self.now
        self._step_rows.append(
            [
                fence.run_id,
                command.step_id,
                command.name,
                _FUNCTION,
                _COMPLETED,
                1,
                begun_seq,
                seq,
                fence.lease,
                fence.nonce,
                None if command.retry is None else write_policy(command.retry),
                command.timeout_ms,
                None if parameters is None else parameters.data,
                None if parameters is None else write_strings(parameters.metadata),
                output.data,
                write_strings(output.metadata) if output.metadata else None,
                None,
                command.parent_step_id,
                command.parallel_group_id,
                0,
                now,
                now,
                now,
                fence.worker_id,
            ]
        )
        self.touched[fence.run_id] = fence

    def add_sleep(self, command: BeginSleep, fence: Fence, seq: int, wake_at: Timestamp) -> None:
        """A new sleep; complete if its time has come."""
        now = self.now
        status, result_seq, finished_at = (_COMPLETED, seq, now) if wake_at <= now else (_RUNNING, 0, None)
        row: StepRow = [fence.run_id, command.step_id, command.name, _SLEEP, status, 1, seq, result_seq]
        row += (fence.lease, fence.nonce, None, 0, None, None, None, None, wake_at)
        row += (command.parent_step_id, command.parallel_group_id, 0, now, now, finished_at, fence.worker_id)
        self._step_rows.append(row)
        self.touched[fence.run_id] = fence

    def add_patch(self, command: RecordPatch, fence: Fence, seq: int) -> None:
        """A new patch marker: begun and complete at once."""
        now = self.now
        row: StepRow = [fence.run_id, command.step_id, command.name, _PATCH, _COMPLETED, 1, seq, seq]
        row += (fence.lease, fence.nonce, None, 0, None, None, None, None, None)
        row += ("", "", 0, now, now, now, fence.worker_id)
        self._step_rows.append(row)
        self.touched[fence.run_id] = fence

    def add_completion(self, fence: Fence, step_id: str, attempt: int, seq: int, output: Payload) -> None:
        """The result of a step that was begun in an earlier batch."""
        meta = write_strings(output.metadata) if output.metadata else None
        self.completed.add((fence.run_id, step_id))
        self._completions.append(
            (fence.run_id, step_id, attempt, fence.lease, fence.nonce, seq, output.data, meta, self.now)
        )
        self.touched[fence.run_id] = fence
        if attempt > 1:
            self.add_counts(fence.run_id, 0, -1, 0)  # a retried step has its result now

    def add_counts(self, run_id: str, waits: int, retries: int, unread: int) -> None:
        """Changes in the number of steps of an open run that wait for signals, or are being retried, and of its unread
        signals."""
        self._counts.append((run_id, waits, retries, unread))

    def add_end(self, fence: Fence, seq: int, output: Payload) -> None:
        """The run completes, and no longer has a fence."""
        now, meta = self.now, write_strings(output.metadata) if output.metadata else None
        row: StepRow = [fence.run_id, OUTPUT_STEP, OUTPUT_STEP, int(KindCode.OUTPUT), _COMPLETED, 1, seq, seq]
        row += (fence.lease, fence.nonce, None, 0, None, None, output.data, meta, None)
        row += ("", "", 0, now, now, now, fence.worker_id)
        self._step_rows.append(row)
        self._endings.append((fence.run_id, fence.lease, fence.nonce, seq))
        self._ended.add(fence.run_id)
        self._note_progress(fence)
        self.drop_fence(fence.run_id)

    def drop_fence(self, run_id: str) -> None:
        """The run is no longer leased: the caller writes its row."""
        self.touched.pop(run_id, None)
        self.fences.forget(run_id)

    def fence_of(self, run_id: str) -> Fence:
        """The fence of a RUNNING run."""
        if (fence := self.fences.get(run_id)) is None:
            self.fences.load(self.database, (run_id,))
            fence = self.fences.get(run_id)
        assert fence is not None  # the run was just read
        return fence

    def concerns(self, command: Command) -> bool:
        """Whether the plan contains something that this command must find in the database: of its run, or a start
        before it that may be refused because of a run that this command ends."""
        run_id = command.run.run_id
        return run_id in self.touched or run_id in self._ended or bool(self._run_rows and isinstance(command, _MAY_END))

    def flush(self) -> None:
        """Write the collected rows. Raises NotAsPlanned if they do not fit the database."""
        if self._run_rows:
            self._write("insert_runs", self._run_rows)
        if self._step_rows:
            self._write("insert_steps", self._step_rows)
            self.begun.clear()
        if self._label_rows:
            self._write("insert_labels", self._label_rows)
        if self._completions:
            self._write("complete_steps", self._completions)
            self.completed.clear()
        if self._counts:
            self.database.run("count_open_steps", {"rows": write_json(self._counts)})
            self._counts.clear()
        if self._endings:
            self._complete_runs()
        if self.touched:
            self._advance()
        if self._progressed:
            self.database.run("forget_lost_leases", (write_json(self._progressed),))
            self._progressed.clear()

    def _complete_runs(self) -> None:
        endings, database = self._endings, self.database
        if len(endings) == 1:
            run_id, lease, nonce, seq = endings[0]
            completed = database.run("complete_run", (seq, self.now, run_id, lease, nonce))
        else:
            completed = database.run("complete_runs", {"rows": write_json(endings), "now": self.now})
        if completed != len(endings):
            raise NotAsPlanned
        endings.clear()
        self._ended.clear()

    def _write(self, statement: str, rows: list[Any]) -> None:
        expected = len(rows)
        written = self.database.run_many(statement, rows)
        rows.clear()
        if written != expected:
            raise NotAsPlanned

    def _note_progress(self, fence: Fence) -> None:
        if fence.lost_leases < 0:
            fence.lost_leases = 0
            self._progressed.append(fence.run_id)

    def _advance(self) -> None:
        """Write the seqs of the touched runs, and renew their leases if these end before `renew_before`."""
        plain: list[tuple[str, int, int, int]] = []
        renewed: list[tuple[str, int, int, int]] = []
        renew_before, until = self.terms.renew_before, self.terms.until
        for fence in self.touched.values():
            row = (fence.run_id, fence.lease, fence.nonce, fence.seq)
            self._note_progress(fence)
            if fence.lease_until >= renew_before:
                plain.append(row)
            else:
                fence.lease_until = until
                renewed.append(row)
        self.touched = {}
        if plain and self._advance_plain(plain) != len(plain):
            raise NotAsPlanned
        if renewed:
            parameters = {"rows": write_json(renewed), "until": until}
            if self.database.run("advance_and_renew_runs", parameters) != len(renewed):
                raise NotAsPlanned

    def _advance_plain(self, rows: list[tuple[str, int, int, int]]) -> int:
        if len(rows) == 1:
            run_id, lease, nonce, seq = rows[0]
            return self.database.run("advance_run", (seq, run_id, lease, nonce))
        return self.database.run("advance_runs", {"rows": write_json(rows)})
