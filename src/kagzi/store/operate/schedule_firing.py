"""Fires schedules: many in one transaction, under the locks of their rows."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from ...core.effects import Effects, merge
from ...core.records import RunKey
from ...core.run.commands import StartRun
from ...core.run.outcomes import Outcome
from ...core.schedules.firing import FiredSchedule, Firing, FiringPlan
from ...core.schedules.schedule import Fire, OpenRun
from ...core.times import Timestamp
from ..protocol import LeaseTerms
from ..rows import read_fire
from ..sessions import Session
from .schedules import fire_values, record_fires

FIRING_TERMS = LeaseTerms(0, 0)  # a start that is not assigned to a worker has no lease
_OPEN_RUNS = 1_000

_Key = tuple[str, str]
"""Namespace and schedule id."""


class ScheduledRuns(Protocol):
    """What a store does to runs within the session's transaction."""

    async def cancel(self, runs: Sequence[RunKey], reason: str) -> Iterable[tuple[RunKey, Effects]]: ...

    async def start(self, starts: Sequence[StartRun]) -> tuple[Sequence[Outcome], Sequence[Effects]]:
        """Like any other start; every one gets an outcome."""
        ...


async def fire_schedules(
    session: Session, runs: ScheduledRuns, firings: Sequence[Firing], now: Timestamp
) -> tuple[Sequence[FiredSchedule | None], Effects]:
    """See `store.protocol.ScheduleVerbs`. The caller opens the transaction."""
    keys = [_key(firing) for firing in firings]
    rows = await session.read("lock_schedules", schedules=list(map(_key_values, firings)))
    locked = {(row["namespace"], row["schedule_id"]): (row["revision"], row["next_at"]) for row in rows}
    unchanged = [firing for firing in firings if _is_unchanged(firing, locked)]
    plans = await _plans(session, unchanged, now) if unchanged else {}
    effects: list[Effects] = []
    while starts := [(plan, *each) for plan in plans.values() for each in plan.next_starts()]:
        for plan, _, decided in starts:
            if decided.cancel:
                cancelled = [RunKey(plan.firing.schedule.namespace, run_id) for run_id in decided.cancel]
                for run, cancel_effects in await runs.cancel(cancelled, plan.cancel_reason):
                    plan.note_cancelled(run.run_id, cancel_effects)
        outcomes, start_effects = await runs.start([decided.start for _, _, decided in starts])
        for (plan, scheduled, decided), started in zip(starts, outcomes, strict=True):
            plan.note_outcome(scheduled, decided.start, started)
        effects += start_effects
    if plans:
        await _move(session, list(plans.values()), now)
    effects += [each for plan in plans.values() for each in plan.effects]
    return [plans[key].outcome() if key in plans else None for key in keys], merge(effects)


def _key(firing: Firing) -> _Key:
    return firing.schedule.namespace, firing.schedule.schedule_id


def _key_values(firing: Firing) -> dict[str, object]:
    return {"namespace": firing.schedule.namespace, "schedule_id": firing.schedule.schedule_id}


def _is_unchanged(firing: Firing, locked: dict[_Key, tuple[int, Timestamp | None]]) -> bool:
    """A manual trigger of a schedule only requires that the schedule exists."""
    current = locked.get(_key(firing))
    read = firing.schedule
    return current is not None and (not firing.moves or current == (read.revision, read.next_at))


async def _plans(session: Session, firings: Sequence[Firing], now: Timestamp) -> dict[_Key, FiringPlan]:
    scheduled = [(firing, each) for firing in firings for each in firing.scheduled_starts]
    fired: dict[_Key, dict[Timestamp, Fire]] = {}
    runs: dict[str, dict[str, str]] = {}
    if scheduled:
        times = [_key_values(firing) | {"nominal_at": each.nominal_at} for firing, each in scheduled]
        for row in await session.read("fires_at", nominal_times=times):
            fire = read_fire(row)
            fired.setdefault((row["namespace"], row["schedule_id"]), {})[fire.nominal_at] = fire
        requests = [
            {"namespace": firing.schedule.namespace, "request_id": each.start.request_id} for firing, each in scheduled
        ]
        for row in await session.read("runs_of_requests", requests=requests):
            runs.setdefault(row["namespace"], {})[row["request_id"]] = row["run_id"]
    open_runs = await _open_runs(session, [firing for firing in firings if firing.overlap != "allow"])
    return {
        (key := _key(firing)): FiringPlan(
            firing, now, fired=fired.get(key, {}), runs=runs.get(key[0], {}), open_runs=open_runs.get(key, ())
        )
        for firing in firings
    }


async def _open_runs(session: Session, firings: Sequence[Firing]) -> dict[_Key, list[OpenRun]]:
    runs: dict[_Key, list[OpenRun]] = {}
    if firings:
        schedules = list(map(_key_values, firings))
        for row in await session.read("open_scheduled_runs", schedules=schedules, limit=_OPEN_RUNS):
            run = OpenRun(row["run_id"], waits=bool(row["waits"]), stops=bool(row["stops"]))
            runs.setdefault((row["namespace"], row["schedule_id"]), []).append(run)
    return runs


async def _move(session: Session, plans: Sequence[FiringPlan], now: Timestamp) -> None:
    fires = [fire_values(plan.firing.schedule, fire) for plan in plans for fire in plan.to_record]
    await record_fires(session, fires)
    moves = [
        _key_values(plan.firing)
        | {
            "moves": plan.firing.moves,
            "next_at": plan.firing.next_at,
            "due_at": plan.firing.due_at,
            "fired_at": now if plan.has_fired else None,
        }
        for plan in plans
    ]
    await session.read("move_schedules", moves=moves)
