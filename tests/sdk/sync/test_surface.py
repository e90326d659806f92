"""The client without await has what the client has, in the same words."""

import inspect
from typing import Any

import pytest

import kagzi
from kagzi import sync
from kagzi.sdk.client.operations.bulk import Bulk, BulkOperation
from kagzi.sdk.client.operations.keys import Keys
from kagzi.sdk.client.operations.namespaces import Namespaces
from kagzi.sdk.client.operations.schedules import Schedules
from kagzi.sdk.client.operations.versions import Versions
from kagzi.sdk.client.operations.workers import Workers
from kagzi.sdk.client.operations.workflow_types import WorkflowTypes
from kagzi.sync import administration, keys, operations

# What a client without await says differently: `start` starts at once, so that many are started by their inputs;
# schedules are applied as `kagzi.schedule(...)` describes them; handles are made for a namespace.
OTHER_WORDS = {("Kagzi", "start_many"), ("Kagzi", "cancel")}
NOT_THERE = {
    ("Kagzi", "schedule"),
    ("Schedules", "create"),
    ("Schedules", "upsert"),
}

PAIRS: list[tuple[type[Any], type[Any]]] = [
    (kagzi.Kagzi, sync.Kagzi),
    (kagzi.Run, sync.Run),
    (BulkOperation, sync.BulkOperation),
    (Bulk, operations.Bulk),
    (Keys, keys.Keys),
    (Namespaces, administration.Namespaces),
    (Schedules, operations.Schedules),
    (Versions, administration.Versions),
    (Workers, administration.Workers),
    (WorkflowTypes, administration.WorkflowTypes),
]


def public(cls: type[Any]) -> dict[str, Any]:
    return {name: inspect.getattr_static(cls, name) for name in dir(cls) if not name.startswith("_")}


@pytest.mark.parametrize(("awaited", "waits"), PAIRS, ids=[pair[0].__name__ for pair in PAIRS])
def test_it_has_the_same_members(awaited: type[Any], waits: type[Any]) -> None:
    left_out = {name for cls, name in NOT_THERE if cls == awaited.__name__}
    assert set(public(awaited)) - left_out == set(public(waits))


@pytest.mark.parametrize(("awaited", "waits"), PAIRS, ids=[pair[0].__name__ for pair in PAIRS])
def test_its_methods_take_the_same_arguments(awaited: type[Any], waits: type[Any]) -> None:
    for name, member in public(waits).items():
        if (awaited.__name__, name) in OTHER_WORDS or isinstance(member, property):
            continue
        here, there = (
            [(each.name, each.kind, each.default) for each in inspect.signature(getattr(cls, name)).parameters.values()]
            for cls in (waits, awaited)
        )
        assert here == there, name
        assert not inspect.iscoroutinefunction(member), name
