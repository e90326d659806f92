"""Random scenarios: batches of commands, and between them everything else that changes a run.

An operation names runs, leases and attempts by how they came about ("the run started second", "the lease before the
current one"). It becomes concrete when it is played, so that a scenario makes sense after any part of it was dropped.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kagzi.core.error_details import ErrorDetail
from kagzi.core.limits import STATUS_TEXT_BYTES
from kagzi.core.records import Payload
from kagzi.core.retry.policy import NO_RETRY
from kagzi.core.run import commands as c
from kagzi.core.times import US_PER_S
from tests.store.conformance.verbs import AT_ONCE, BOOM, MISFIT, STEADY, STOPPED

CURRENT, WRONG_NONCE, FUTURE = 0, -1, -2
"""Leases. Positive numbers: so many claims ago."""
UNKNOWN, OTHER_NAMESPACE, NOT_A_UUID, ANY = -1, -2, -3, 100
"""Runs. Other numbers: one of those that workers hold; from ANY on one of all."""

OPEN = "an open one"
"""Steps of functions and sleeps: one that was begun and not ended, as far as its worker knows. If there is none, one
begins."""

FAILURES = (
    BOOM,
    BOOM,
    ErrorDetail(type="shop.PaymentError", message="never again", non_retryable=True),
    ErrorDetail(type="shop.PaymentError", message="later", retry_after_ms=7_000),
    ErrorDetail(message="a NUL \0 in an error is escaped"),
    ErrorDetail(message="half of a pair \ud800"),
)
WORKFLOW_IDS = ("order-1", "order-2", "order-3", "order-4")
SIGNALS = ("approved", "paid")
BUILDS = ("build-1", "build-2")

Fields: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Draft:
    """A command that is not addressed yet."""

    kind: type[c.Command]
    run: int = 0
    lease: int = CURRENT
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.fields.items())
        lease = "" if self.lease == CURRENT else f", lease={self.lease}"
        return f"{self.kind.__name__}(run={self.run}{lease}{', ' * bool(shown)}{shown})"


@dataclass(frozen=True)
class Again:
    """The command sent so many commands ago, word for word."""

    back: int


@dataclass(frozen=True)
class Batch:
    drafts: tuple[Draft | Again, ...]

    def __str__(self) -> str:
        return "write:" + "".join(f"\n      {draft}" for draft in self.drafts)


@dataclass(frozen=True)
class Verb:
    """Something else that is done to the store, by the name of a method of `Twins`."""

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.fields.items())})"


@dataclass(frozen=True)
class Refill:
    """A new run, in hand at once, unless the workers hold some."""

    start: Draft

    def __str__(self) -> str:
        return f"refill: {self.start}"


Operation: TypeAlias = Batch | Verb | Refill
Scenario: TypeAlias = list[Operation]


def scenario(rng: random.Random, batches: int) -> Scenario:
    """Begins with runs in hand."""
    drafts = _Drafts(rng)
    operations: Scenario = [Batch(tuple(drafts.start() for _ in range(rng.randint(1, 3)))), Verb("claim")]
    while batches:
        for _ in range(rng.choice((0, 0, 1, 1, 2))):
            operations.append(_verb(rng))
        if rng.random() < 0.75:
            operations.append(Verb("claim", {"worker_id": rng.choice(("worker-1", "worker-2"))}))
        operations += [Refill(drafts.start(workflow_id="", start_at=-1)), drafts.batch()]
        batches -= 1
    return operations


def _verb(rng: random.Random) -> Verb:
    run = rng.randrange(6) + rng.choice((0, ANY))
    step = f"f{rng.randint(1, 6)}"
    verbs: tuple[tuple[int, Callable[[], Verb]], ...] = (
        (6, lambda: Verb("tick", {"us": rng.choice((1_000, US_PER_S, 6 * US_PER_S, 9 * US_PER_S))})),
        (3, lambda: Verb("tick", {"us": 16 * US_PER_S})),
        (6, lambda: Verb("fire", {"end_leases": rng.random() < 0.7})),
        (5, lambda: Verb("signal", {"run": run, "name": rng.choice(SIGNALS)})),
        (2, lambda: Verb("replace_signal", {"run": run, "name": rng.choice(SIGNALS), "some": rng.random() < 0.7})),
        (3, lambda: Verb("cancel", {"run": run})),
        (2, lambda: Verb("pause", {"run": run})),
        (3, lambda: Verb("resume", {"run": run})),
        (1, lambda: Verb("terminate", {"run": run})),
        (3, lambda: Verb("retry", {"run": run, "from_step": rng.choice(("", "", step))})),
        (2, lambda: Verb("fork", {"run": run, "from_step": rng.choice(("", step))})),
        (3, lambda: Verb("renew", {"run": run})),
        (1, lambda: Verb("shorten_leases", {"run": run})),
        (2, lambda: Verb("release", {"run": run})),
        (2, lambda: Verb("lost_before_ack", {"run": run})),
        (2, lambda: Verb("cascade")),
        (2, lambda: Verb("new_build", {"build_id": rng.choice(BUILDS)})),
    )
    [make] = rng.choices([make for _, make in verbs], [weight for weight, _ in verbs])
    return make()


class _Drafts:
    """Writes batches as a busy worker does, and as a confused one."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._fresh = 6
        self._confused = False
        self._targets: list[int] = []
        self._makers: tuple[tuple[int, Callable[[], list[Draft | Again]]], ...] = (
            (14, self._pair),
            (14, lambda: [self._record()]),
            (10, lambda: [self._begin()]),
            (10, lambda: [self._complete(self._open("f"))]),
            (3, self._end_with_step),
            (8, lambda: [self._fail()]),
            (5, lambda: [self._sleep()]),
            (3, lambda: [self._draft(c.FinishSleep, step_id=self._open("s"))]),
            (5, lambda: [self._wait()]),
            (4, lambda: [self._child()]),
            (3, lambda: [self._race()]),
            (4, lambda: [self._draft(c.RecordPatch, step_id=self._step("p"), name=self._text("patch"))]),
            (3, lambda: [self._status()]),
            (2, lambda: [self._draft(c.SetState, state=self._payload())]),
            (3, lambda: [self._beat()]),
            (6, lambda: [self._park()]),
            (3, lambda: [self._end()]),
            (2, lambda: [self._fail_run()]),
            (2, lambda: [self._draft(c.CancelRun, error=STOPPED)]),
            (2, lambda: [self._draft(c.ReleaseRun, reason="worker stops")]),
            (2, lambda: [self._continue()]),
            (1, lambda: [self._draft(c.PauseDiverged, problem=MISFIT, build_id=self.rng.choice(BUILDS))]),
            (4, lambda: [self.start()]),
            (6, self._begin_again),
            (8, lambda: [Again(self.rng.randint(1, 8))]),
        )

    def batch(self) -> Batch:
        """One to twelve commands over one to three runs. Often nothing but steps that begin and complete."""
        self._confused = self.rng.random() < 0.3
        self._targets = [self._run() for _ in range(self.rng.choice((1, 1, 2, 3)))]
        size = self.rng.choice((1, 1, 2, 2, 3, 4, 6, 12))
        makers = self._makers[: self.rng.choice((1, 2, 3, 4, 5, 7, 9))] if self.rng.random() < 0.6 else self._makers
        drafts: list[Draft | Again] = []
        while len(drafts) < size:
            [make] = self.rng.choices([make for _, make in makers], [weight for weight, _ in makers])
            drafts += make()
        return Batch(tuple(drafts[:12]))

    def start(self, **fixed: Any) -> Draft:
        some = self._some
        rng = self.rng
        fields: Fields = {
            "workflow_id": rng.choice(WORKFLOW_IDS),
            "workflow_type": rng.choice(("hello",) * 6 + ("child",)),
        }
        fields |= some(0.5, input=self._payload(), context=self._payload())
        fields |= some(0.3, retry=rng.choice((STEADY, AT_ONCE, NO_RETRY)))
        fields |= some(0.12, deadline_at=rng.choice((5, 30, 90)) * US_PER_S)
        fields |= some(0.2, assigned=True) | some(0.1, start_at=rng.choice((-1, 4)) * US_PER_S)
        fields |= some(0.2, on_conflict=rng.choice(("fail", "replace", "existing_or_completed")))
        fields |= some(0.1, labels={"colour": self._text("green")}) | some(0.1, priority=rng.choice((-5, 5)))
        fields |= some(0.1, signal=rng.choice(SIGNALS)) | some(0.05, behind=rng.randrange(3))
        fields |= some(0.1, request_id=f"request-{rng.randint(1, 3)}") | some(0.1, version="1")
        return Draft(c.StartRun, NOT_A_UUID if self._odd(0.1) else 0, fields=fields | fixed)

    # --- what a draft is made of --------------------------------------------------------------------------------------

    def _some(self, chance: float, **fields: Any) -> Fields:
        return fields if self.rng.random() < chance else {}

    def _odd(self, chance: float) -> bool:
        return self._confused and self.rng.random() < chance

    def _run(self) -> int:
        if self._odd(0.2):
            return self.rng.choice((UNKNOWN, OTHER_NAMESPACE, NOT_A_UUID, ANY + self.rng.randrange(6)))
        return self.rng.randrange(6)

    def _draft(self, kind: type[c.Command], **fields: Any) -> Draft:
        lease = self.rng.choice((1, 2, WRONG_NONCE, FUTURE)) if self._odd(0.15) else CURRENT
        return Draft(kind, self.rng.choice(self._targets), lease, fields)

    def _step(self, prefix: str, *, fresh: float = 0.0) -> str:
        """Ids say what their steps are, mostly."""
        if self._odd(0.05):
            return self.rng.choice(("$output", "$input", "$mine", "a\0b", "\ud800", ""))
        if self._odd(0.1):
            prefix = self.rng.choice("fswcrp")
        if self.rng.random() < fresh:
            self._fresh += 1
            return f"{prefix}{self._fresh}"
        return f"{prefix}{self.rng.randint(1, 6 if prefix == 'f' else 3)}"

    def _open(self, prefix: str) -> str:
        return OPEN if self.rng.random() < 0.8 else self._step(prefix)

    def _text(self, plain: str) -> str:
        return self.rng.choice(("a\0b", "\ud800")) if self._odd(0.03) else plain

    def _payload(self) -> Payload:
        data = self.rng.choice((b"", b"1", b'"done"'))
        metadata = self.rng.choice((None, None, {}, {"encoding": "json"}, {"note": self._text("n")}))
        return Payload(data) if metadata is None else Payload(data, metadata)

    def _attempt(self) -> int | None:
        """None: the one its worker knows of."""
        return self.rng.choice((0, 1, 2, 3, -1)) if self._odd(0.3) else None

    def _place(self) -> Fields:
        return self._some(0.1, parent_step_id=self._text("f1")) | self._some(0.1, parallel_group_id=self._text("all"))

    # --- commands -----------------------------------------------------------------------------------------------------

    def _begin(self, step_id: str = "") -> Draft:
        step_id = step_id or (OPEN if self.rng.random() < 0.2 else self._step("f", fresh=0.5))
        fields: Fields = {"step_id": step_id, "name": self._text("charge"), "attempt": self._attempt()}
        fields |= self._some(0.4, retry=self.rng.choice((STEADY, AT_ONCE, NO_RETRY)))
        fields |= self._some(0.15, timeout_ms=5_000) | self._some(0.3, input=self._payload())
        fields |= self._some(0.08, once=True) | self._some(0.15, cleanup=True) | self._place()
        return self._draft(c.BeginStep, **fields)

    def _record(self, step_id: str = "") -> Draft:
        begun = self._begin(step_id or (OPEN if self.rng.random() < 0.15 else self._step("f", fresh=0.8)))
        fields = {name: value for name, value in begun.fields.items() if name != "once"}
        return Draft(c.RecordStep, begun.run, begun.lease, {**fields, "output": self._payload()})

    def _complete(self, step_id: str) -> Draft:
        return self._draft(c.CompleteStep, step_id=step_id, attempt=self._attempt(), output=self._payload())

    def _pair(self) -> list[Draft | Again]:
        begun = self._begin(OPEN if self.rng.random() < 0.15 else self._step("f", fresh=0.9))
        completed = self._complete(begun.fields["step_id"])  # if that is an open one, it is the same
        return [begun, Draft(c.CompleteStep, begun.run, begun.lease, completed.fields)]

    def _end_with_step(self) -> list[Draft | Again]:
        begun, completed = self._pair()
        assert isinstance(begun, Draft)
        recorded = self._record(begun.fields["step_id"])
        kind = self.rng.choice((c.CompleteRun, c.CompleteRun, c.FailRun))
        result: Fields = {"output": self._payload()} if kind is c.CompleteRun else {"error": BOOM}
        end = Draft(kind, begun.run, begun.lease, {**result, "after_step": begun.fields["step_id"]})
        if self.rng.random() < 0.4:
            return [Draft(c.RecordStep, begun.run, begun.lease, recorded.fields), end]
        return [begun, end] if self.rng.random() < 0.2 else [begun, completed, end]

    def _end(self) -> Draft:
        after = self._some(0.3, after_step=self._step("f"))
        return self._draft(c.CompleteRun, output=self._payload(), **after)

    def _fail_run(self) -> Draft:
        after = self._some(0.3, after_step=self._step("f"))
        return self._draft(c.FailRun, error=self.rng.choice(FAILURES), **after)

    def _fail(self) -> Draft:
        arguments = self._some(0.5, input=self._payload())
        error = self.rng.choice(FAILURES)
        return self._draft(c.FailStep, step_id=self._open("f"), attempt=self._attempt(), error=error, **arguments)

    def _begin_again(self) -> list[Draft | Again]:
        """A step that fails and begins again at once: its second attempt may complete in another batch."""
        begun = self._begin(self._step("f", fresh=0.9))
        fields = {name: value for name, value in begun.fields.items() if name != "once"} | {"retry": AT_ONCE}
        step_id = fields["step_id"]
        failure = {"step_id": step_id, "attempt": 1, "error": BOOM} | self._some(0.5, input=self._payload())
        failed = Draft(c.FailStep, begun.run, begun.lease, failure)
        first, second = (Draft(c.BeginStep, begun.run, begun.lease, fields | {"attempt": n}) for n in (1, 2))
        return [first, failed, second]

    def _sleep(self) -> Draft:
        when = {"duration_us": self.rng.choice((0, -US_PER_S, US_PER_S, 20 * US_PER_S))}
        when |= self._some(0.3, duration_us=None, until=self.rng.choice((-US_PER_S, 3 * US_PER_S)))
        step_id, name = self._step("s", fresh=0.3), self._text("nap")
        cleanup = self._some(0.1, cleanup=True)
        return self._draft(c.BeginSleep, step_id=step_id, name=name, **when, **cleanup, **self._place())

    def _wait(self) -> Draft:
        timeout = self._some(0.5, timeout_us=self.rng.choice((0, US_PER_S, 60 * US_PER_S)))
        step_id, name = self._step("w", fresh=0.3), self._text(self.rng.choice(SIGNALS))
        cleanup = self._some(0.1, cleanup=True)
        return self._draft(c.WaitSignal, step_id=step_id, signal_name=name, **timeout, **cleanup, **self._place())

    def _child(self) -> Draft:
        start: Fields = {"workflow_id": self.rng.choice((*WORKFLOW_IDS, "", "", "", ""))}
        start |= self._some(0.3, assigned=True) | self._some(0.1, start_at=4 * US_PER_S)
        start |= self._some(0.1, request_id=f"request-{self.rng.randint(1, 3)}") | self._some(
            0.3, input=self._payload()
        )
        fields: Fields = {"step_id": self._step("c", fresh=0.2), "name": self._text("child"), "start": start}
        fields |= self._some(0.3, attach=True) | self._some(0.3, on_close="abandon") | self._some(0.1, cleanup=True)
        return self._draft(c.StartChild, **fields, **self._place())

    def _race(self) -> Draft:
        losers = tuple(self._step(prefix) for prefix in self.rng.choices("fswc", k=self.rng.randint(0, 3)))
        return self._draft(c.DecideRace, step_id=self._step("r"), name="race", winner=self._step("f"), losers=losers)

    def _status(self) -> Draft:
        text = "x" * (STATUS_TEXT_BYTES + 1) if self.rng.random() < 0.1 else self._text("half way")
        return self._draft(c.SetStatus, text=text, progress=self.rng.choice((None, 0.5)))

    def _beat(self) -> Draft:
        return self._draft(c.BeatStep, step_id=self._open("f"), attempt=self._attempt(), details=self._payload())

    def _park(self) -> Draft:
        waits = tuple(self._step(prefix) for prefix in self.rng.choices("swcf", k=self.rng.choice((0, 0, 1, 2, 3))))
        known_seq = self.rng.choice((0, 3, 10, 1_000_000, 1_000_000))
        return self._draft(c.FetchResults if self.rng.random() < 0.3 else c.Park, waits=waits, known_seq=known_seq)

    def _continue(self) -> Draft:
        return self._draft(c.ContinueAsNew, input=self._payload(), **self._some(0.3, version="2"))
