"""Random programs whose code changes while they run: a step moves into a task, a gather or a helper, to another place,
or is renamed.

Every action has a mark, and the names of its steps end with it. So a body is known again wherever its step was moved
to.
"""

import asyncio
from contextvars import ContextVar
from random import Random
from typing import Any, NamedTuple

from kagzi import Context, Retry

from .random_programs import Action, Player, Program

_mark: ContextVar[str] = ContextVar("mark")

HARMLESS = ("helper",)
CHANGES = ("task", "gather", "group", "parallel", "helper", "swap", "double", "rename", "drop")


class Marked(NamedTuple):
    mark: str
    action: Action


def marked(program: Program, prefix: str = "") -> list[Any]:
    """The same program with marks: where an action stands."""
    return [Marked(f"{prefix}{place}", _inside(action, f"{prefix}{place}.")) for place, action in enumerate(program)]


def _inside(action: Action, prefix: str) -> Action:
    match action:
        case (str() as name, list() as parts) if parts and isinstance(parts[0], list):
            return (name, [marked(part, f"{prefix}{place}:") for place, part in enumerate(parts)])
        case (str() as name, list() as part):
            return (name, marked(part, prefix))
        case _:
            return action


def logical_name(step_id: str) -> str:
    """What a step is called wherever it is, and however often it was renamed."""
    return step_id.rpartition("/")[2].partition("#")[0].replace("~", "")


def change(program: list[Any], how: str, rng: Random) -> list[Any] | None:
    """The program with one action changed. None if there is nothing to be changed like that."""
    paths = [path for path in _places(program) if how != "swap" or path[1] + 1 < len(path[0])]
    if not paths:
        return None
    chosen, place = rng.choice(paths)
    action = chosen[place]
    match how:
        case "task" | "helper":
            changed = [Marked(f"{action.mark}!", (how, [action]))]
        case "gather" | "group" | "parallel":
            changed = [Marked(f"{action.mark}!", (how, [[action]]))]
        case "double":
            copy = Marked(f"{action.mark}!", ("gather", [[_with_suffix(action, "+")]]))
            changed = [action, copy] if rng.random() < 0.5 else [copy, action]
        case "rename":
            changed = [_with_suffix(action, "~")]
        case "swap":
            changed = [chosen[place + 1], action]
        case _:
            changed = []
    width = 2 if how == "swap" else 1
    return _replaced(program, chosen, [*chosen[:place], *changed, *chosen[place + width :]])


def _with_suffix(action: Marked, suffix: str) -> Marked:
    """The same action with other marks, also inside of it."""
    inner = _programs_in(action)
    changed = [[_with_suffix(each, suffix) for each in part] for part in inner]
    return Marked(action.mark + suffix, _with_programs(action, changed) if inner else action.action)


def _with_programs(action: Marked, programs: list[list[Any]]) -> Action:
    return (action.action[0], programs[0] if isinstance(action.action[1][0], Marked) else programs)


def _places(program: list[Any]) -> list[tuple[list[Any], int]]:
    places = [(program, place) for place in range(len(program))]
    for each in program:
        for part in _programs_in(each):
            places.extend(_places(part))
    return places


def _programs_in(action: Marked) -> list[list[Any]]:
    if len(action.action) < 2 or not isinstance(action.action[1], list):
        return []
    parts = action.action[1]
    return [parts] if isinstance(parts[0], Marked) else parts


def _replaced(program: list[Any], old: list[Any], new: list[Any]) -> list[Any]:
    if program is old:
        return new
    return [_replaced_in(action, old, new) for action in program]


def _replaced_in(action: Marked, old: list[Any], new: list[Any]) -> Marked:
    inner = _programs_in(action)
    if not inner:
        return action
    return Marked(action.mark, _with_programs(action, [_replaced(part, old, new) for part in inner]))


class ChangingPlayer(Player):
    """Plays marked programs. `program` may be replaced while a run of it is open."""

    async def play(self, ctx: Context, program: Program) -> list[Any]:
        seen: list[Any] = []
        for mark, action in program:
            token = _mark.set(mark)
            seen.append(await getattr(self, "do_" + action[0])(ctx, *action[1:]))
            _mark.reset(token)
        return seen

    async def _child(self, ctx: Context, fails: bool) -> str:
        _mark.set("child")
        return await super()._child(ctx, fails)

    async def step(self, ctx: Context, name: str, kind: str, retry: Retry) -> str | None:
        return await super().step(ctx, f"{name}-{_mark.get()}", kind, retry)

    async def do_once(self, ctx: Context, name: str) -> str:
        return await super().do_once(ctx, f"{name}-{_mark.get()}")

    async def do_map(self, ctx: Context, count: int, limit: int) -> list[str]:
        return await ctx.map(f"each-{_mark.get()}", range(count), self.world.item, limit=limit)

    async def do_map_collect(self, ctx: Context, count: int, limit: int, name: str = "some") -> list[str]:
        return await super().do_map_collect(ctx, count, limit, f"{name}-{_mark.get()}")

    async def do_limited(self, ctx: Context, programs: list[Program]) -> Any:
        """Each of them once, or a step would be there a second time under the same name."""
        return await self.limited(ctx, [*self.every(ctx, programs), self.step(ctx, "stops", "fail", Retry.none())])

    async def do_task(self, ctx: Context, program: Program) -> list[Any]:
        return await asyncio.create_task(self.play(ctx, program))

    async def do_helper(self, ctx: Context, program: Program) -> list[Any]:
        return await self.play(ctx, program)
