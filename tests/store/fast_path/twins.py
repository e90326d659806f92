"""Two stores that are sent the same: one takes its fast path where it can, the other loads, decides and saves every
command."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, get_args

from kagzi.core.run import commands as c
from kagzi.core.run import outcomes as o
from kagzi.core.states import KindCode, StepCode
from kagzi.store.protocol import Claimed, Store

from .scenarios import Batch, Operation, Scenario, Verb
from .scene import Call, Scene

Row: TypeAlias = Mapping[str, object]
Tables: TypeAlias = dict[str, list[Row]]

FEW = 3
"""Leased runs, below which a refill adds one."""
REFUSALS = (o.Refused, o.LeaseLost, o.RunNotFound, o.DeadlinePassed)
LEAST_FAST, LEAST_SLOW = 0.2, 0.1
"""Shares of the batches in which the fast path must have saved statements, and in which it must have given up."""


class Difference(AssertionError):
    """The two stores are no longer alike, or failed on a command."""


class Written(NamedTuple):
    commands: Sequence[c.Command]
    outcomes: Sequence[o.Outcome]
    fast: bool  # the fast path saved statements


class Tally:
    """What was compared."""

    def __init__(self) -> None:
        self.batches = 0
        self.fast = 0
        self.accepted: Counter[type[c.Command]] = Counter()
        self.refused: Counter[type[c.Command]] = Counter()
        self.counted: Counter[str] = Counter()  # runs that told of waits and of retries

    def note(self, written: Written) -> None:
        self.batches += 1
        self.fast += written.fast
        for command, outcome in zip(written.commands, written.outcomes, strict=True):
            (self.refused if isinstance(outcome, REFUSALS) else self.accepted)[type(command)] += 1

    def check(self) -> None:
        """Raises AssertionError unless both paths were taken often enough, and commands of every kind were accepted."""
        share = self.fast / self.batches
        assert share >= LEAST_FAST, f"only {share:.0%} of the batches took the fast path"
        assert share <= 1 - LEAST_SLOW, f"{share:.0%} of the batches took the fast path: the others are too few"
        never = [kind.__name__ for kind in get_args(c.Command) if not self.accepted[kind]]
        assert not never, f"no command of these kinds was accepted: {never}"
        assert self.refused.total() > self.batches // 4, "too few commands were refused"
        assert min(self.counted[each] for each in ("waits", "retries", "unread")) > self.batches // 20, (
            f"too few: {self.counted}"
        )

    def __str__(self) -> str:
        counts = [f"{kind.__name__} {self.accepted[kind]}+{self.refused[kind]}" for kind in get_args(c.Command)]
        return f"{self.batches} batches, {self.fast} by the fast path; accepted+refused: {', '.join(counts)}"


class Twins(ABC):
    """Plays scenarios, each on two empty stores."""

    def __init__(self, fast: Store, careful: Store) -> None:
        self.fast = fast
        self.careful = careful
        self.tally = Tally()

    @abstractmethod
    async def empty(self) -> None:
        """Nothing is left of what was played before."""

    @abstractmethod
    async def tables(self, store: Store) -> Tables:
        """Every row of every table."""

    async def play(self, scenario: Scenario) -> None:
        """Raises Difference at the first operation after which they differ."""
        await self.empty()
        scene = Scene()
        for number, operation in enumerate(scenario, start=1):
            try:
                await self._play(operation, scene)
            except Difference as difference:
                listed = "\n".join(f"{n:>4}  {each}" for n, each in enumerate(scenario, start=1))
                difference.add_note(f"at operation {number} of\n{listed}")
                raise

    async def _play(self, operation: Operation, scene: Scene) -> None:
        if isinstance(operation, Batch):
            self.tally.note(await self._write(operation, scene))
        elif isinstance(operation, Verb):
            await self._do(operation, scene)
        elif scene.holds < FEW:
            await self._write(Batch((operation.start,)), scene)
            await self._do(Verb("claim"), scene)

    async def _write(self, batch: Batch, scene: Scene) -> Written:
        commands = [scene.command(draft) for draft in batch.drafts]
        before = self.fast.statements, self.careful.statements
        outcomes, _ = await self._both(lambda store: store.write(commands, scene.now, scene.terms), commands)
        fast = self.fast.statements - before[0] < self.careful.statements - before[1]
        if failed := [outcome for outcome in outcomes if isinstance(outcome, (o.Failed, o.Busy))]:
            raise Difference(f"both failed on {commands}: {failed}")
        await self._compare_tables(commands)
        scene.learn(commands, outcomes)
        return Written(commands, outcomes, fast)

    async def _do(self, verb: Verb, scene: Scene) -> None:
        call: Call | None = getattr(scene, verb.name)(**verb.fields)
        if call is not None:
            answer = await self._both(call, verb)
            if isinstance(answer, Claimed):
                scene.claimed(answer)

    async def _both(self, call: Call, what: object) -> Any:
        """What both return."""
        fast, careful = await call(self.fast), await call(self.careful)
        if fast != careful:
            raise Difference(_unlike(what, fast, careful))
        return fast

    async def _compare_tables(self, commands: Sequence[c.Command]) -> None:
        fast, careful = await self.tables(self.fast), await self.tables(self.careful)
        if fast == careful:
            self.tally.counted.update(_check_counts(fast))
            return
        lines = [line for table in fast for line in _unlike_rows(table, fast[table], careful[table])]
        raise Difference("\n".join(["the rows differ after", *(f"  {command}" for command in commands), *lines]))


def _check_counts(tables: Tables) -> Counter[str]:
    """Every run says of its open steps what the steps say. Returns how many say something."""
    waits, retried = Counter[object](), Counter[object]()
    for step in tables["steps"]:
        match step["kind"], step["status"], step["attempt"]:
            case KindCode.SIGNAL, StepCode.RUNNING, _:
                waits[step["run_id"]] += 1
            case KindCode.FUNCTION, StepCode.PENDING | StepCode.RUNNING, int(attempt) if attempt > 1:
                retried[step["run_id"]] += 1
            case _:
                pass
    unread = Counter(signal["run_id"] for signal in tables["signals"] if signal["step_id"] is None)
    counted = Counter[str]()
    for run in tables["runs"]:
        run_id, is_open = run["run_id"], run["finished_at"] is None
        expected = (waits[run_id], retried[run_id]) if is_open else (0, 0)
        if (run["awaits_signal"], run["retrying_steps"]) != expected:
            raise Difference(f"waits and retries of the steps: {expected}\n  {run}")
        if run["unread_signals"] != unread[run_id]:
            raise Difference(f"unread signals: {unread[run_id]}\n  {run}")
        counted.update({"waits": expected[0] > 0, "retries": expected[1] > 0, "unread": unread[run_id] > 0})
        counted["handed on"] += run["handed_on_to"] is not None
    return counted


def _unlike(what: object, fast: object, careful: object) -> str:
    if not (isinstance(what, list) and isinstance(fast, list) and isinstance(careful, list)):
        return f"the answers to {what} differ\n  fast     {fast}\n  careful  {careful}"
    lines = ["the outcomes differ"]
    for command, one, other in zip(what, fast, careful, strict=True):
        lines.append(f"  {command}")
        lines += [f"      both     {one}"] if one == other else [f"   !  fast     {one}", f"   !  careful  {other}"]
    return "\n".join(lines)


def _unlike_rows(table: str, fast: Sequence[Row], careful: Sequence[Row]) -> list[str]:
    only_fast = [row for row in fast if row not in careful]
    only_careful = [row for row in careful if row not in fast]
    lines: list[str] = []
    for row in only_fast:
        twin = next((other for other in only_careful if _key(other) == _key(row)), None)
        if twin is None:
            lines.append(f"  {table}: only the fast one has {row}")
            continue
        only_careful.remove(twin)
        unlike = ", ".join(f"{name}: {row[name]!r} != {twin[name]!r}" for name in row if row[name] != twin[name])
        lines.append(f"  {table} {_key(row)}: fast != careful: {unlike}")
    return lines + [f"  {table}: only the careful one has {row}" for row in only_careful]


def _key(row: Row) -> list[object]:
    """What tells one row of a table from another, roughly."""
    return [row[name] for name in ("run_id", "step_id", "forgotten", "number", "key") if name in row]
