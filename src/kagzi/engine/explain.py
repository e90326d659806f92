"""Why a run is where it is, in words: one sentence, a word for programs, the facts, and what to do about it."""

from collections.abc import Sequence

import msgspec

from ..core.errors import ErrorKind
from ..core.misfits import misfit_of, misfit_words
from ..core.records import RunRecord, Served, StepRecord, WorkerRecord
from ..core.retry import SERVER_DEFAULT, UNLIMITED
from ..core.seams import Clock
from ..core.states import RunStatus, StepKind, StepStatus, WaitReason, WorkerStatus
from ..core.times import LAST_TIME, Timestamp, to_datetime
from ..core.versions import best_first
from ..store.protocol import Store
from . import checks
from .held_words import held_back_by
from .lost_words import lost_attempts
from .presence import Presence

_WORKERS_SEEN = 1_000
_WORKERS_NAMED = 5
_STEPS_LOOKED_AT = 1_000
_STEPS_NAMED = 3


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    sentence: str
    reason: str  # a stable word
    facts: dict[str, str] = {}
    remedy: str = ""


class Explanations:
    def __init__(self, store: Store, *, clock: Clock, presence: Presence) -> None:
        self._store = store
        self._clock = clock
        self._presence = presence

    async def explain(self, namespace: str, *, run_id: str = "", workflow_id: str = "") -> Explanation:
        """Raises NotFound, InvalidArgument."""
        checks.name(namespace, "namespace")
        checks.one_of(run_id, workflow_id)
        run = await self._store.get_run(namespace, run_id=run_id, workflow_id=workflow_id)
        if run is None:
            raise checks.no_run(run_id or workflow_id)
        return _with_common_facts(await self._with_lost_attempts(await self._explain(run), run), run)

    async def _with_lost_attempts(self, explained: Explanation, run: RunRecord) -> Explanation:
        if run.status not in (RunStatus.PENDING, RunStatus.RUNNING) or run.started_at is None:
            return explained
        sentence, facts = lost_attempts(await self._open_steps(run))
        return msgspec.structs.replace(
            explained, sentence=explained.sentence + sentence, facts={**explained.facts, **facts}
        )

    async def _explain(self, run: RunRecord) -> Explanation:
        match run.status:
            case RunStatus.PENDING:
                return await self._pending(run)
            case RunStatus.RUNNING:
                return await self._running(run)
            case RunStatus.SLEEPING:
                return await self._sleeping(run)
            case RunStatus.PAUSED:
                return _paused(run)
            case _:
                return _ended(run)

    # --- waiting for a worker -------------------------------------------------------------------------------------------

    async def _pending(self, run: RunRecord) -> Explanation:
        held = await self._held_back(run)
        if held is not None and held.reason == "type_paused":
            return held
        workers = await self._workers(run)
        what = _served(run)
        if not workers:
            return Explanation(
                sentence=f"It waits for a worker: none is connected that serves {run.workflow_type}.",
                reason="no_worker",
                remedy=f"Start a worker for {run.workflow_type} in namespace {run.run.namespace}.",
            )
        fitting = [worker for worker in workers if _serves(worker, run)]
        if not fitting:
            versions = best_first(served.version for worker in workers for served in _of_type(worker, run))
            return Explanation(
                sentence=f"It waits for a worker with version {run.version} of {run.workflow_type}: those connected "
                f"serve {', '.join(versions)}.",
                reason="no_worker_for_version",
                facts={"version": run.version or "", "versions_served": ", ".join(versions)},
                remedy=f"Start a worker that registers {what}. If it is gone for good, let another version go on from where "
                f"this run is: kagzi fork {run.run.run_id} --version {versions[0]}; and have new runs get that one: "
                f"kagzi versions set-default {run.workflow_type} {versions[0]}",
            )
        active = [worker for worker in fitting if worker.status is WorkerStatus.ONLINE]
        if not active:
            return Explanation(
                sentence=f"It waits for a worker: the {_count(len(fitting), 'worker')} that serve {what} are draining.",
                reason="workers_draining",
                facts=_named(fitting),
                remedy=f"Start a worker for {run.workflow_type}.",
            )
        if held is not None:
            return held
        slots = sum(worker.max_concurrent for worker in active)
        busy = sum(min(worker.active_count, worker.max_concurrent) for worker in active)
        facts = {**_named(active), "slots": str(slots), "slots_in_use": str(busy)}
        cancel = " to clean up, as it is to be cancelled" if run.cancel_requested else ""
        return Explanation(
            sentence=f"It waits for a free slot{cancel}: {_count(len(active), 'worker')} serving {what} "
            f"{'has' if len(active) == 1 else 'have'} {busy} of {slots} slots in use.",
            reason="waiting_for_slot",
            facts=facts,
            remedy="It starts as soon as a slot is free. Add workers, or raise max_concurrent.",
        )

    async def _held_back(self, run: RunRecord) -> Explanation | None:
        """Limits of its type, or of its key."""
        key = run.concurrency_key
        pressure = await self._store.type_pressure(run.run.namespace, run.workflow_type, key)
        begun = run.started_at is not None
        held = pressure and held_back_by(pressure, run.workflow_type, key, self._clock.now(), begun=begun)
        if not held:
            return None
        facts = {"key": key, "held_back_by": held.reason}
        return Explanation(sentence=f"It waits: {held.sentence}.", reason=held.reason, facts=facts, remedy=held.remedy)

    async def _workers(self, run: RunRecord) -> list[WorkerRecord]:
        """Those that serve the type and have been heard of lately."""
        rows = await self._store.list_workers(
            run.run.namespace,
            workflow_type=run.workflow_type,
            status=None,
            cursor=None,
            limit=_WORKERS_SEEN,
            alive_since=self._presence.alive_since(self._clock.now()),
        )
        return [worker for worker in rows.rows if worker.status is not WorkerStatus.OFFLINE]

    # --- in somebody's hands ----------------------------------------------------------------------------------------------

    async def _running(self, run: RunRecord) -> Explanation:
        steps = await self._open_steps(run)
        worker = await self._store.get_worker(run.run.namespace, run.worker_id or "") if run.worker_id else None
        place = run.worker_id or "a worker"
        if worker is not None and worker.hostname:
            place += f" ({worker.hostname}{f', pid {worker.pid}' if worker.pid else ''})"
        facts = {"worker": run.worker_id or "", "started_at": _time(run.started_at)}
        facts |= {"steps": ", ".join(step.step_id for step in steps[:_STEPS_NAMED])} if steps else {}
        doing = _doing(steps)
        since = f" since {_time(run.started_at)}" if run.started_at is not None else ""
        if run.cancel_requested:
            return Explanation(
                sentence=f"Its cancellation was requested{_because(run.cancel_reason)}; worker {place} is to stop it"
                f" and may clean up first{doing}.",
                reason="cancel_requested",
                facts=facts,
                remedy="It ends when its cleanup is done, at the latest at its cleanup limit. Terminate it to end it now.",
            )
        if run.pause_requested:
            return Explanation(
                sentence=f"It is to be paused{_because(run.pause_reason)}: worker {place} finishes what is in flight{doing}.",
                reason="pause_requested",
                facts={**facts, "pause_reason": run.pause_reason},
            )
        return Explanation(
            sentence=f"It runs on worker {place}{since}{doing}.",
            reason="running",
            facts=facts,
            remedy="If the worker is gone, another one takes over when the lease ends, within seconds.",
        )

    async def _open_steps(self, run: RunRecord) -> list[StepRecord]:
        """Open steps, the latest first. Of a very long run the last ones only: that is where it is."""
        after = max(0, run.last_seq - _STEPS_LOOKED_AT)
        steps: list[StepRecord] = []
        more = True
        while more:  # a page may end early, at a number of bytes
            rows = await self._store.list_steps(
                run.run, name=None, after_begun_seq=after, limit=_STEPS_LOOKED_AT, payloads=False
            )
            if rows is None or not rows.rows:
                break
            steps += (step for step in rows.rows if step.status in (StepStatus.RUNNING, StepStatus.PENDING))
            after, more = rows.rows[-1].begun_seq, rows.has_more
        return steps[::-1]

    # --- waiting for something ----------------------------------------------------------------------------------------------

    async def _sleeping(self, run: RunRecord) -> Explanation:
        if run.blocked_by is not None:
            return Explanation(
                sentence=f"It has not begun: it begins when run {run.blocked_by} has ended.",
                reason="waiting_for_run",
                facts={"blocked_by": run.blocked_by},
                remedy=f"Look at that run: kagzi explain {run.blocked_by}",
            )
        if run.started_at is None and run.wait_reason is WaitReason.TIME:
            return Explanation(
                sentence=f"It has not begun: it is to start at {_time(run.wake_at)}.",
                reason="delayed_start",
                facts={"wakes_at": _time(run.wake_at)},
            )
        step = await self._nearest_wait(run)
        if run.wait_reason is WaitReason.RETRY and (step is None or step.kind is not StepKind.FUNCTION):
            return _run_retry(run)
        if step is None:
            return Explanation(
                sentence=f"It sleeps until {_time(run.wake_at)}." if run.wake_at else "It waits.",
                reason="sleeping",
                facts={"wakes_at": _time(run.wake_at)},
            )
        explained = _waiting_for(step, run)
        more = len(run.waits) - 1
        if more <= 0:
            return explained
        sentence = f"{explained.sentence[:-1]}, and for {more} other {'thing' if more == 1 else 'things'}."
        return msgspec.structs.replace(
            explained, sentence=sentence, facts={**explained.facts, "waits": ", ".join(run.waits[:_WORKERS_NAMED])}
        )

    async def _nearest_wait(self, run: RunRecord) -> StepRecord | None:
        if run.waits:
            return await self._store.get_step(run.run, run.waits[0])
        steps = await self._open_steps(run)
        return min(steps, key=lambda step: step.wake_at or step.retry_at or LAST_TIME, default=None)


def _waiting_for(step: StepRecord, run: RunRecord) -> Explanation:
    facts = {"step": step.step_id}
    match step.kind:
        case StepKind.SIGNAL:
            limit = f" until {_time(step.wake_at)}" if step.wake_at is not None else ""
            return Explanation(
                sentence=f"It waits for the signal {step.name!r} in step {step.step_id}{limit}.",
                reason="waiting_for_signal",
                facts={**facts, "signal": step.name, "times_out_at": _time(step.wake_at)},
                remedy=f"Send it: kagzi signal {run.run.run_id} {step.name} VALUE",
            )
        case StepKind.CHILD:
            return Explanation(
                sentence=f"It waits for its child run {step.child_run_id} (step {step.step_id}).",
                reason="waiting_for_child",
                facts={**facts, "child_run_id": step.child_run_id or ""},
                remedy=f"Look at the child: kagzi explain {step.child_run_id}",
            )
        case StepKind.SLEEP:
            return Explanation(
                sentence=f"It sleeps until {_time(step.wake_at)} in step {step.step_id}.",
                reason="sleeping",
                facts={**facts, "wakes_at": _time(step.wake_at)},
            )
        case _:
            return _step_retry(step)


def _step_retry(step: StepRecord) -> Explanation:
    policy = step.retry or SERVER_DEFAULT
    of = "" if policy.maximum_attempts == UNLIMITED else f" of {policy.maximum_attempts}"
    last = step.attempts[-1].error if step.attempts else step.error
    failed = f"; the last one failed with {_brief(last.text)}" if last is not None else ""
    return Explanation(
        sentence=f"It waits to retry step {step.step_id}: attempt {step.attempt}{of} at {_time(step.retry_at)}{failed}.",
        reason="waiting_for_retry",
        facts={
            "step": step.step_id,
            "attempt": str(step.attempt),
            "maximum_attempts": str(policy.maximum_attempts),
            "retry_at": _time(step.retry_at),
        },
    )


def _run_retry(run: RunRecord) -> Explanation:
    of = f" of {run.retry.maximum_attempts}" if run.retry and run.retry.maximum_attempts != UNLIMITED else ""
    failed = f"; the last one failed with {_brief(run.error.text)}" if run.error is not None else ""
    return Explanation(
        sentence=f"The whole run is to be tried again: attempt {run.attempt}{of} at {_time(run.wake_at)}{failed}.",
        reason="waiting_for_run_retry",
        facts={"attempt": str(run.attempt), "retry_at": _time(run.wake_at)},
    )


def _paused(run: RunRecord) -> Explanation:
    resume = f"kagzi resume {run.run.run_id}"
    problem = run.problem
    if problem is None:
        why = f": {_brief(run.pause_reason)}" if run.pause_reason else ""
        facts = {"pause_reason": run.pause_reason}
        return Explanation(sentence=f"It was paused{why}.", reason="paused", facts=facts, remedy=f"Resume it: {resume}")
    if (misfit := misfit_of(problem)) is not None:
        words = misfit_words(misfit, run.run.run_id)
        return Explanation(
            sentence=words.sentence, reason="signal_does_not_fit", facts=words.facts, remedy=words.remedy
        )
    if problem.kind is ErrorKind.NONDETERMINISM:
        return Explanation(
            sentence=f"It is paused because the code does not fit its history: {_brief(problem.message)}.",
            reason="diverged",
            facts={"step": problem.subject_id} if problem.subject == "step" else {},
            remedy="Deploy code that fits: it goes on by itself when a worker with another build id registers. "
            f"Or try again with the same code: {resume}",
        )
    if problem.kind is ErrorKind.LOST:
        return Explanation(
            sentence=f"It is quarantined: {_brief(problem.message)}.",
            reason="quarantined",
            facts={"lost_leases": str(run.lost_leases)},
            remedy=f"Look at what it does to its workers, then resume it: {resume}",
        )
    return Explanation(
        sentence=f"It is paused: {_brief(problem.message)}." if problem.message else "It was paused.",
        reason="paused",
        remedy=f"Resume it: {resume}",
    )


def _ended(run: RunRecord) -> Explanation:
    at = f" at {_time(run.finished_at)}"
    if run.status is RunStatus.COMPLETED:
        if run.continued_as is not None:
            return Explanation(
                sentence=f"It completed{at} and goes on as run {run.continued_as}.",
                reason="continued",
                facts={"continued_as": run.continued_as},
                remedy=f"kagzi explain {run.continued_as}",
            )
        return Explanation(sentence=f"It completed{at}.", reason="completed")
    error = run.error
    told = f": {_brief(error.text)}" if error is not None and error.text else ""
    if run.status is RunStatus.CANCELLED:
        terminated = error is not None and error.kind is ErrorKind.TERMINATED
        return Explanation(
            sentence=f"It was {'terminated' if terminated else 'cancelled'}{at}{_because(run.cancel_reason) or told}.",
            reason="terminated" if terminated else "cancelled",
        )
    facts = {"step": error.subject_id} if error is not None and error.subject == "step" else {}
    step = f" in step {error.subject_id}" if error is not None and error.subject == "step" else ""
    return Explanation(
        sentence=f"It failed{at}{step}{told}.",
        reason="timed_out" if error is not None and error.kind is ErrorKind.TIMEOUT and not step else "failed",
        facts=facts,
        remedy=f"When the cause is gone, go on from there: kagzi retry {run.run.run_id}",
    )


# --- words ----------------------------------------------------------------------------------------------------------------


def _with_common_facts(explanation: Explanation, run: RunRecord) -> Explanation:
    facts = {"run_id": run.run.run_id, "status": str(run.status), **explanation.facts}
    facts["deadline_at"] = _time(run.deadline_at)
    facts["status_text"] = run.status_text
    return msgspec.structs.replace(explanation, facts={key: value for key, value in facts.items() if value})


def _doing(steps: Sequence[StepRecord]) -> str:
    """The steps in flight, in words; waits only if there is nothing else."""
    busy = [step for step in steps if step.kind is StepKind.FUNCTION and step.status is StepStatus.RUNNING]
    named = ", ".join(f"{step.step_id} (attempt {step.attempt})" for step in busy[:_STEPS_NAMED])
    if not named:
        return ""
    more = f" and {len(busy) - _STEPS_NAMED} more" if len(busy) > _STEPS_NAMED else ""
    return f", in step {named}{more}" if len(busy) == 1 else f", in steps {named}{more}"


def _of_type(worker: WorkerRecord, run: RunRecord) -> list[Served]:
    return [served for served in worker.served if served.workflow_type == run.workflow_type]


def _serves(worker: WorkerRecord, run: RunRecord) -> bool:
    return run.version is None or any(
        served.workflow_type == run.workflow_type and served.version == run.version for served in worker.served
    )


def _served(run: RunRecord) -> str:
    return run.workflow_type if run.version is None else f"{run.workflow_type} version {run.version}"


def _named(workers: Sequence[WorkerRecord]) -> dict[str, str]:
    return {"workers": ", ".join(worker.worker_id for worker in workers[:_WORKERS_NAMED])}


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _because(reason: str) -> str:
    return f" ({_brief(reason)})" if reason else ""


def _brief(text: str, characters: int = 300) -> str:
    line = " ".join(text.split())
    return (line if len(line) <= characters else line[:characters] + "...").rstrip(".")


def _time(at: Timestamp | None) -> str:
    return "" if at is None else to_datetime(at).isoformat(timespec="milliseconds").replace("+00:00", "Z")
