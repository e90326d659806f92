"""Names and texts from outside: their size is checked first, and characters one by one only where they may be wrong."""

import pytest

from kagzi.core import limits
from kagzi.core.checks.values import entries, name, text
from kagzi.core.errors import InvalidArgument
from kagzi.engine.checks.requests import reason

MANY = 4_000_000


class Watched(str):
    """Cannot be looked at character by character."""

    __slots__ = ()

    def __iter__(self) -> "Watched":  # pyright: ignore[reportIncompatibleMethodOverride]  raises
        raise AssertionError("each character was looked at")


@pytest.mark.parametrize("value", [Watched("x" * MANY), Watched("ü" * MANY), Watched("\x01" * MANY)])
def test_the_size_of_a_text_is_checked_before_its_characters(value: str) -> None:
    size = len(value.encode())
    for check in (lambda: name(value, "workflow_id"), lambda: text(value, "workflow_id", limits.NAME_BYTES)):
        with pytest.raises(InvalidArgument) as refusal:
            check()
        assert refusal.value.message == f"workflow_id has {size} bytes; the limit is 256. Shorten it."
        assert refusal.value.metadata == {"limit": "text_bytes", "maximum": "256"}


def test_labels_and_reasons_alike() -> None:
    with pytest.raises(InvalidArgument, match=r"labels\[team\] has 4000000 bytes; the limit is 256"):
        entries({"team": Watched("x" * MANY)}, "labels", limits.LABELS)
    with pytest.raises(InvalidArgument, match="reason has 4000000 bytes; the limit is 4096"):
        reason(Watched("x" * MANY))


def test_texts_of_printable_ascii_need_no_look_at_each_character() -> None:
    text(Watched("x" * limits.NAME_BYTES), "workflow_id", limits.NAME_BYTES)


@pytest.mark.parametrize("value", ["ü" * 128, "日本語", "a\u200bb", "", "\N{FAMILY}"])
def test_other_texts_are_accepted(value: str) -> None:
    text(value, "workflow_id", limits.NAME_BYTES)


@pytest.mark.parametrize(
    ("value", "code"), [("a\nb", "000A"), ("ü\x7f", "007F"), ("ü\x85", "0085"), ("\ud800", "D800")]
)
def test_control_characters_and_lone_surrogates_are_refused(value: str, code: str) -> None:
    with pytest.raises(InvalidArgument, match=rf"workflow_id contains the control character U\+{code}. Remove it."):
        text(value, "workflow_id", limits.NAME_BYTES)
    with pytest.raises(InvalidArgument, match="has 257 bytes"):
        text(value.ljust(257 - len(value.encode(errors="replace")) + len(value)), "workflow_id", limits.NAME_BYTES)
