"""kagzi.effect: done once, in the user's transaction, with each driver."""

from dataclasses import dataclass

import pytest

import kagzi
from kagzi import NonRetryable

from .databases import KINDS, opened, payments, step


@dataclass
class Receipt:
    order: str
    cents: int


async def charge(kind: str, url: str, order: str = "a") -> tuple[Receipt, bool]:
    """The body of a step, as users write it; and whether it did the work."""
    async with opened(kind, url) as database, database.effect() as effect:
        if effect.done:
            return effect.result(Receipt), False
        await database.pay(order)
        receipt = Receipt(order, 100)
        effect.record(receipt)
        return receipt, True


@pytest.mark.parametrize("kind", KINDS)
async def test_a_repeated_attempt_reads_what_the_first_one_committed(kind: str, url: str) -> None:
    with step(1):
        assert await charge(kind, url) == (Receipt("a", 100), True)
    for attempt in (1, 2, 3):  # a lost worker's attempt is begun again under its number
        with step(attempt):
            assert await charge(kind, url) == (Receipt("a", 100), False)
    assert await payments(kind, url) == ["a"]
    with step(1, run="run-2"):
        assert (await charge(kind, url, "b"))[1]
    with step(1, step_id="charge#2"):
        assert (await charge(kind, url, "c"))[1]
    assert await payments(kind, url) == ["a", "b", "c"]


@pytest.mark.parametrize("kind", KINDS)
async def test_what_raises_leaves_nothing(kind: str, url: str) -> None:
    async def body() -> None:
        async with opened(kind, url) as database, database.effect() as effect:
            assert not effect.done
            await database.pay("a")
            effect.record(1)
            raise ValueError("declined")

    with step(1), pytest.raises(ValueError, match="declined"):
        await body()
    assert await payments(kind, url) == []
    with step(2):
        assert (await charge(kind, url))[1]
    assert await payments(kind, url) == ["a"]


async def test_a_block_that_records_nothing_is_rolled_back(kind: str, url: str) -> None:
    with step(1):
        async with opened(kind, url) as database:
            with pytest.raises(NonRetryable, match=r"'charge' has ended without effect\.record\(result\)"):
                async with database.effect():
                    await database.pay("a")
    assert await payments(kind, url) == []


async def test_a_block_that_does_not_ask_whether_it_is_done_is_rolled_back(kind: str, url: str) -> None:
    async def body(*, records: bool) -> None:
        async with opened(kind, url) as database, database.effect() as effect:
            await database.pay("a")
            if records:
                effect.record(2)

    with step(1):
        await charge(kind, url)
    with step(2), pytest.raises(NonRetryable, match=r"the block did not ask; it is rolled back"):
        await body(records=False)
    with step(3), pytest.raises(NonRetryable, match=r"about to be done again"):
        await body(records=True)
    assert await payments(kind, url) == ["a"]


async def test_several_effects_of_a_step_have_names(kind: str, url: str) -> None:
    for attempt in (1, 2):
        with step(attempt):
            async with opened(kind, url) as database:
                for name in ("debit", "credit"):
                    async with database.effect(name) as effect:
                        if not effect.done:
                            await database.pay(name)
                            effect.record(name)
                        else:
                            assert effect.result() == name
    assert await payments(kind, url) == ["credit", "debit"]


async def test_a_second_effect_without_a_name_is_refused(kind: str, url: str) -> None:
    with step(1):
        await charge(kind, url)
        with pytest.raises(NonRetryable, match="needs a name of its own"):
            await charge(kind, url, "b")
    assert await payments(kind, url) == ["a"]


async def test_an_effect_may_be_tried_again_within_an_attempt(kind: str, url: str) -> None:
    with step(1):
        async with opened(kind, url) as database:
            for attempt in (1, 2):
                try:
                    async with database.effect() as effect:
                        await database.pay("a")
                        effect.record(attempt)
                        if attempt == 1:
                            raise ConnectionError("serialization failure, as far as this body knows")
                except ConnectionError:
                    continue
    assert await payments(kind, url) == ["a"]


async def test_values_are_those_of_steps(kind: str, url: str) -> None:
    with step(1):
        async with opened(kind, url) as database:
            async with database.effect("nothing") as effect:
                effect.record()
            async with database.effect("text") as effect:
                effect.record({"naïve": 'a ":name" and $1 and %s'})
            with pytest.raises(kagzi.InvalidArgument, match="result of the effect 'object' of step 'charge'"):
                async with database.effect("object") as effect:
                    effect.record(object())
    with step(2):
        async with opened(kind, url) as database:
            async with database.effect("nothing") as effect:
                assert effect.done
                assert effect.result() is None
            async with database.effect("text") as effect:
                assert effect.result() == {"naïve": 'a ":name" and $1 and %s'}
            async with database.effect("object") as effect:
                assert not effect.done
                with pytest.raises(NonRetryable, match="has no result yet"):
                    effect.result()
                effect.record(1)
