"""A page token brings back the place exactly, and only to the list it was made for."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagzi.core.errors import InvalidArgument
from kagzi.core.pages.cursor import Cursor, decode_cursor, encode_cursor
from tests.support.clock import BEGINNING

cursors = st.builds(
    Cursor, at=st.integers(0, 2**63 - 1), id=st.text(max_size=40), direction=st.sampled_from(["next", "prev"])
)
HERE = "runs|default|status=failed"
TOKEN = encode_cursor(Cursor(BEGINNING, "0191-run"), bound_to=HERE)
URL_SAFE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@given(cursors, st.text(max_size=60))
def test_a_token_brings_back_its_place_to_the_microsecond(cursor: Cursor, bound_to: str) -> None:
    token = encode_cursor(cursor, bound_to=bound_to)
    assert decode_cursor(token, bound_to=bound_to) == cursor
    assert set(token) <= set(URL_SAFE)


@given(cursors, st.text(max_size=60), st.text(max_size=60))
def test_a_token_of_another_list_is_refused(cursor: Cursor, made_for: str, used_for: str) -> None:
    token = encode_cursor(cursor, bound_to=made_for)
    if made_for != used_for:
        with pytest.raises(InvalidArgument, match="page_token"):
            decode_cursor(token, bound_to=used_for)


@given(st.integers(0, len(TOKEN) - 1), st.sampled_from(URL_SAFE))
def test_a_token_with_one_character_changed_is_refused(position: int, message: str) -> None:
    tampered = TOKEN[:position] + message + TOKEN[position + 1 :]
    if tampered != TOKEN:
        with pytest.raises(InvalidArgument, match="page_token"):
            decode_cursor(tampered, bound_to=HERE)


def test_a_token_moved_to_another_place_is_refused() -> None:
    raw = base64.urlsafe_b64decode(TOKEN + "=" * (-len(TOKEN) % 4))
    moved = raw.replace(str(BEGINNING).encode(), str(BEGINNING + 1).encode())
    with pytest.raises(InvalidArgument, match="page_token"):
        decode_cursor(base64.urlsafe_b64encode(moved).decode().rstrip("="), bound_to=HERE)


@given(st.text(max_size=100) | st.binary(max_size=60).map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_any_text_is_refused_in_words(token: str) -> None:
    with pytest.raises(InvalidArgument, match="page_token") as refused:
        decode_cursor(token, bound_to=HERE)
    assert refused.value.field == "page_token"


@pytest.mark.parametrize("noise", ["=", "\n", " ", "!", "==", "\x00", "é"])
def test_noise_around_or_inside_a_token_is_not_overlooked(noise: str) -> None:
    for tampered in (TOKEN + noise, noise + TOKEN, TOKEN[:9] + noise + TOKEN[9:]):
        with pytest.raises(InvalidArgument, match="page_token"):
            decode_cursor(tampered, bound_to=HERE)


@pytest.mark.parametrize("at", [-1, 2**63, 10**30])
def test_a_place_outside_of_time_is_refused(at: int) -> None:
    with pytest.raises(InvalidArgument, match="page_token"):
        decode_cursor(encode_cursor(Cursor(at, "x"), bound_to=HERE), bound_to=HERE)
