"""One table says what may follow what. An end is final, but for the one way back."""

from contextlib import nullcontext
from itertools import product

import pytest

from kagzi.core import states
from kagzi.core.states import CODE_OF_RUN_STATUS, ENDED, OPEN, TRANSITIONS, RunCode, RunStatus, require_transition

S = RunStatus

# Written out by hand from the promises, as (from, to): whoever changes the table has to change this too.
ALLOWED = {
    (S.PENDING, S.RUNNING),  # claim
    (S.PENDING, S.PAUSED),
    (S.PENDING, S.FAILED),  # deadline
    (S.PENDING, S.CANCELLED),
    (S.RUNNING, S.PENDING),  # release, lost lease, run retry due at once
    (S.RUNNING, S.SLEEPING),  # park, run retry
    (S.RUNNING, S.PAUSED),
    (S.RUNNING, S.COMPLETED),
    (S.RUNNING, S.FAILED),
    (S.RUNNING, S.CANCELLED),
    (S.SLEEPING, S.PENDING),  # woken
    (S.SLEEPING, S.PAUSED),
    (S.SLEEPING, S.FAILED),
    (S.SLEEPING, S.CANCELLED),
    (S.PAUSED, S.PENDING),  # resume
    (S.PAUSED, S.SLEEPING),
    (S.PAUSED, S.FAILED),
    (S.PAUSED, S.CANCELLED),
    (S.FAILED, S.PENDING),  # the explicit retry
}


@pytest.mark.parametrize(("now", "then"), list(product(S, S)))
def test_every_transition(now: RunStatus, then: RunStatus) -> None:
    codes = CODE_OF_RUN_STATUS[now], CODE_OF_RUN_STATUS[then]
    with nullcontext() if (now, then) in ALLOWED else pytest.raises(AssertionError):
        require_transition(*codes)


def test_an_end_is_final_but_for_the_retry_of_a_failed_run() -> None:
    ways_back = {(now, then) for now in ENDED for then in TRANSITIONS[now]}
    assert ways_back == {(S.FAILED, S.PENDING)}


def test_only_a_worker_completes_a_run() -> None:
    assert {now for now in S if S.COMPLETED in TRANSITIONS[now]} == {S.RUNNING}


def test_every_state_is_open_or_ended() -> None:
    assert set(S) == ENDED | OPEN
    assert not ENDED & OPEN
    assert {status for status in S if status.ended} == {S.COMPLETED, S.FAILED, S.CANCELLED}


def test_every_open_state_is_reached_from_the_first_and_can_end() -> None:
    reached, frontier = {S.PENDING}, [S.PENDING]
    while frontier:
        for then in TRANSITIONS[frontier.pop()] - reached:
            reached.add(then)
            frontier.append(then)
    assert reached == set(S)
    assert all(TRANSITIONS[status] & ENDED for status in OPEN)


def test_ended_codes_lie_together_for_partial_indexes() -> None:
    assert {states.RUN_STATUS_OF_CODE[code] for code in (4, 5, 6)} == ENDED
    assert {int(code) for code in RunCode} == set(range(1, 8))


@pytest.mark.parametrize(
    ("of_code", "code_of", "words"),
    [
        (states.RUN_STATUS_OF_CODE, states.CODE_OF_RUN_STATUS, states.RunStatus),
        (states.WAIT_REASON_OF_CODE, states.CODE_OF_WAIT_REASON, states.WaitReason),
    ],
)
def test_words_and_codes_match_one_to_one(of_code: dict[int, str], code_of: dict[str, int], words: type) -> None:
    assert set(code_of) == set(words)
    assert {of_code[code_of[word]] for word in words} == set(words)


def test_every_state_and_kind_of_a_step_has_a_code() -> None:
    assert set(states.STEP_STATUS_OF_CODE.values()) == set(states.StepStatus)
    assert set(states.STEP_KIND_OF_CODE.values()) == set(states.StepKind)
