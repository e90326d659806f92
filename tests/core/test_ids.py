"""Run ids sort by the time they were made and are proper UUIDs of version 7."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagzi.core.ids import RUN_RANDOM_BITS, is_of, is_uuid, made_of, uuid7, uuid7_of
from kagzi.core.times import US_PER_MS
from kagzi.system import SystemIds
from tests.support.clock import BEGINNING

times = st.integers(0, 4_102_444_800_000_000)  # until 2100
bits = st.integers(0, 2**62 - 1)


@given(times, bits)
def test_version_variant_and_milliseconds_are_where_the_standard_wants_them(now: int, random_bits: int) -> None:
    made = UUID(uuid7(now, random_bits))
    assert made.version == 7
    assert made.variant == RFC_4122
    assert made.int >> 80 == now // US_PER_MS
    assert made.int & (2**62 - 1) == random_bits


@given(times, times, bits, bits)
def test_ids_sort_by_the_microsecond_they_were_made_in(first: int, second: int, some: int, other: int) -> None:
    if first < second:
        assert uuid7(first, some) < uuid7(second, other)


@given(st.integers(0, 999), bits, bits)
def test_also_within_one_millisecond(microsecond: int, some: int, other: int) -> None:
    base = BEGINNING // US_PER_MS * US_PER_MS
    assert uuid7(base + microsecond, some) < uuid7(base + microsecond + 1, other)


@given(times, bits)
def test_an_id_knows_itself(now: int, random_bits: int) -> None:
    assert is_uuid(uuid7(now, random_bits))


@given(times, st.integers(2**62, 2**70))
def test_too_many_random_bits_do_not_spill_into_the_time(now: int, random_bits: int) -> None:
    assert UUID(uuid7(now, random_bits)).int >> 80 == now // US_PER_MS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "order-17",
        "0191B0B0-0000-7000-8000-000000000000",  # upper case
        "0191b0b000007000800000000000000",
        "{0191b0b0-0000-7000-8000-000000000000}",
        "urn:uuid:0191b0b0-0000-7000-8000-000000000000",
        " 0191b0b0-0000-7000-8000-000000000000",
    ],
)
def test_another_spelling_is_not_an_id(text: str) -> None:
    assert not is_uuid(text)


@given(st.text(max_size=40))
def test_any_text_is_judged_without_raising(text: str) -> None:
    assert not is_uuid(text) or len(text) == 36


names = st.text(min_size=1, max_size=20)
run_bits = st.integers(0, 2**RUN_RANDOM_BITS - 1)


@given(names, times, run_bits)
def test_an_id_has_the_mark_of_its_namespace_and_all_else_of_its_kind(name: str, now: int, random_bits: int) -> None:
    made = uuid7_of(name, now, random_bits)
    assert is_uuid(made)
    assert is_of(name, made)
    assert made[:18] == uuid7(now, 0)[:18]
    assert made_of(name, made) == made
    assert random_bits == 0 or made != uuid7_of(name, now, random_bits - 1)


@given(names, times, bits)
def test_an_id_from_elsewhere_has_one_place_in_a_namespace(name: str, now: int, random_bits: int) -> None:
    elsewhere = uuid7(now, random_bits)
    made = made_of(name, elsewhere)
    assert is_uuid(made)
    assert is_of(name, made)
    assert made == made_of(name, elsewhere) == made_of(name, made)
    assert made[:18] == elsewhere[:18], "it sorts by the time of the run, still"


def test_two_namespaces_have_no_id_in_common() -> None:
    ids = SystemIds()
    suffixes = {name: ids.run_id(BEGINNING, name)[-6:] for name in (f"tenant-{number}" for number in range(1_000))}
    assert len(set(suffixes.values())) > 998, "of 16 million suffixes two should hardly be the same"


def test_what_is_made_in_one_moment_is_never_made_twice() -> None:
    """However few bits are random: a batch has one time for all its runs."""
    ids = SystemIds()
    made = [ids.run_id(BEGINNING + moment, name) for moment in range(3) for name in ("a", "b") for _ in range(5_000)]
    assert len(set(made)) == len(made)


# --- drawn ------------------------------------------------------------------------------------------------------------

MANY = 3_000  # more than a page of randomness holds


def test_a_token_is_a_uuid_of_version_4_and_never_drawn_twice() -> None:
    ids = SystemIds()
    tokens = [ids.token() for _ in range(MANY)]
    assert len(set(tokens)) == MANY
    for token in tokens:
        assert is_uuid(token)
        assert (UUID(token).version, UUID(token).variant) == (4, RFC_4122)


def test_a_request_id_is_a_uuid_of_version_7_and_never_drawn_twice() -> None:
    """Stores index them: they sort by the moment in which they were made."""
    ids = SystemIds()
    before = time.time_ns() // 1_000
    drawn = [ids.request_id() for _ in range(MANY)]
    after = time.time_ns() // 1_000
    assert len(set(drawn)) == MANY
    assert all(is_uuid(request_id) and UUID(request_id).version == 7 for request_id in drawn)
    assert uuid7(before, 0) <= min(drawn) <= max(drawn) < uuid7(after + 1, 0)


def test_nonces_are_odd_and_fit_the_wire() -> None:
    ids = SystemIds()
    nonces = [ids.nonce() for _ in range(MANY)]
    assert len(set(nonces)) == MANY
    assert all(0 < nonce < 2**63 and nonce % 2 for nonce in nonces)


def test_threads_share_no_randomness() -> None:
    ids = SystemIds()

    def draw() -> list[object]:
        return [drawn for _ in range(MANY) for drawn in (ids.token(), ids.nonce(), ids.request_id())]

    with ThreadPoolExecutor(8) as threads:
        drawn = [each for some in [threads.submit(draw) for _ in range(8)] for each in some.result()]
    assert len(set(drawn)) == len(drawn)


FORKING = """
import os
from kagzi.system import SystemIds
ids = SystemIds()
NOW = 1_700_000_000_000_000

def draw():
    runs = [ids.run_id(NOW, "default"), SystemIds().run_id(NOW, "default")]
    return [ids.token(), str(ids.nonce()), ids.request_id(), *runs]

draw()
ours, theirs = os.pipe()
if os.fork() == 0:
    os.write(theirs, " ".join(draw()).encode())
    os._exit(0)
os.close(theirs)
print(*draw())
print(os.read(ours, 10_000).decode())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_repeats_nothing_of_its_parent() -> None:
    drawn = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, check=True).stdout.split()
    assert len(set(drawn)) == len(drawn) == 10
