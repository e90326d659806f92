"""What a start says about a run for good comes back from every way to read the run, and goes where `store/columns.py`
says.

The test goes over the fields of RunAttributes, so that a new one is tested without being named here.
"""

from typing import Any

from kagzi.core.conversion import fields_of
from kagzi.core.records import RunAttributes, RunFilter, RunKey
from kagzi.core.retry.policy import RetryPolicy
from kagzi.core.run.outcomes import Started
from kagzi.store.columns import RUN, Use
from kagzi.store.rows import type_of
from tests.support.providers import CountingIds

from .places import memory_place
from .verbs import StoreHarness, continue_as, the

_USES = {column.name: column.use for column in RUN}


def values(now: int) -> dict[str, Any]:
    """Something for each attribute that is not its default."""
    by_type: dict[Any, Any] = {int: 7, str: "some text", RetryPolicy: RetryPolicy(maximum_attempts=3)}
    chosen = {field.name: by_type.get(type_of(field), {"a": "b"}) for field in fields_of(RunAttributes)}
    chosen |= {"workflow_type": "hello", "deadline_at": now + 3_600_000_000}
    assert not [field.name for field in fields_of(RunAttributes) if chosen[field.name] == field.default]
    return chosen


def attributes_of(run: RunAttributes) -> dict[str, Any]:
    return {name: getattr(run, name) for name in RunAttributes.__struct_fields__}


def passed_on(all_values: dict[str, Any], use: Use) -> dict[str, Any]:
    defaults = {field.name: field.default for field in fields_of(RunAttributes)}
    return {name: value if use in _USES[name] else defaults[name] for name, value in all_values.items()}


async def test_every_attribute_is_shown_and_passed_on(harness: StoreHarness) -> None:
    expected = values(harness.now)
    run = await harness.start(version="1", **expected)
    assert attributes_of(await harness.run(run)) == expected
    listed = await harness.store.list_runs(run.namespace, RunFilter(), None, 10)
    assert [attributes_of(record) for record in listed.rows] == [expected]

    fork = the(Started, await harness.fork(run, "", workflow_id="fork"))
    forked = await harness.run(RunKey(run.namespace, fork.run_id))
    assert attributes_of(forked) == passed_on(expected, Use.FORKED)

    new_run_id = harness.ids.run_id(harness.now, run.namespace)
    await harness.do(continue_as(await harness.hold(run), new_run_id))
    continued = await harness.run(RunKey(run.namespace, new_run_id))
    assert attributes_of(continued) == passed_on(expected, Use.CONTINUED)


async def test_every_attribute_is_exported(harness: StoreHarness) -> None:
    expected = values(harness.now)
    run = await harness.start(**expected)
    image = await harness.store.export_run(run)
    assert image is not None
    assert attributes_of(image) == expected


async def test_every_attribute_is_imported(harness: StoreHarness) -> None:
    place = memory_place()
    other = StoreHarness(await place.open(), harness.clock, CountingIds(3))
    try:
        expected = values(harness.now)
        run = await other.start(**expected)
        image = await other.store.export_run(run)
    finally:
        await place.close()
    assert image is not None
    await harness.store.begin_import(run.run_id, "token", harness.now, harness.now)
    await harness.store.finish_import(run, "token", image, harness.now)
    assert attributes_of(await harness.run(run)) == expected
