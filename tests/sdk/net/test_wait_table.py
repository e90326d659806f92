"""What the server is told on a stream of waits, message by message, and who gets its answers."""

import pytest

from kagzi.core import limits
from kagzi.sdk.client.wait_table import IDS_PER_MESSAGE, Message, WaitTable
from tests.sdk.net.waits_kit import run_end

STREAM = "stream"


class Table(WaitTable[str]):
    def __init__(self) -> None:
        self.changes = 0
        super().__init__(self._count)
        self.open_stream(STREAM)

    def _count(self) -> None:
        self.changes += 1

    def message(self) -> tuple[list[str], list[str]]:
        """The ids that the next message asks for, and those that it forgets."""
        following = self.next_message()
        if following is None:
            return [], []
        self.sent()
        return following.run_ids, following.forget

    def named(self) -> str:
        """A start names the stream."""
        self.starts_under_way += 1
        return self.stream_id


@pytest.fixture
def table() -> Table:
    """Its stream is open, and known to the server."""
    table = Table()
    table.want("first", "w")
    assert table.next_message() == Message(["first"], [], STREAM)
    table.sent()
    assert table.ended("first", run_end("first")) == ["w"]
    return table


def test_a_stream_is_named_in_its_first_message(table: Table) -> None:
    table.want("a", "w")
    assert table.next_message() == Message(["a"], [], "")
    table.open_stream("another")
    assert table.next_message() == Message(["a"], [], "another")


def test_one_message_says_what_has_changed_since_the_last_one(table: Table) -> None:
    table.want("a", "1")
    table.want("a", "2")
    table.want("b", "3")
    table.give_up("b", "3")
    assert table.message() == (["a"], [])
    table.give_up("a", "1")
    assert table.message() == ([], [])
    table.give_up("a", "2")
    table.want("a", "4")
    assert table.message() == ([], [])
    table.give_up("a", "4")
    assert table.message() == ([], ["a"])
    table.want("a", "5")
    assert table.message() == (["a"], [])
    assert table.ended("a", run_end("a")) == ["5"]
    assert table.message() == ([], [])
    assert table.is_idle


def test_long_messages_are_divided(table: Table) -> None:
    for number in range(IDS_PER_MESSAGE):
        table.want(f"given up {number}", "w")
        table.give_up(f"given up {number}", "w")
    wanted = [str(number) for number in range(IDS_PER_MESSAGE + 1)]
    for run_id in wanted:
        table.want(run_id, "w")
    assert table.message() == (wanted[:-1], [])
    assert table.message() == (wanted[-1:], [])
    assert table.message() == ([], [])


def test_a_new_stream_asks_for_everything_that_is_wanted(table: Table) -> None:
    table.want("a", "1")
    table.want("b", "2")
    table.message()
    table.give_up("b", "2")
    table.close_stream()
    table.want("c", "3")
    table.open_stream("another")
    assert table.message() == (["a", "c"], [])


def test_a_run_that_does_not_exist_is_asked_for_again_by_the_next_caller(table: Table) -> None:
    table.want("a", "1")
    table.message()
    assert table.missing("a") == ["1"]
    table.want("a", "2")
    assert table.message() == (["a"], [])


def test_a_failure_reaches_everybody(table: Table) -> None:
    table.want("a", "1")
    table.want("b", "2")
    assert table.fail() == ["1", "2"]
    assert table.is_idle


# --- starts that name the stream --------------------------------------------------------------------------------------


def test_a_run_is_not_asked_for_after_its_start(table: Table) -> None:
    table.started("a", table.named(), is_new=True)
    table.end_start()
    assert table.want("a", "w") is None
    assert table.message() == ([], [])
    assert table.ended("a", run_end("a")) == ["w"]


@pytest.mark.parametrize("is_wanted", [False, True])
def test_an_end_that_comes_before_the_answer_to_the_start_is_kept(table: Table, is_wanted: bool) -> None:
    stream_id = table.named()
    assert table.ended("a", run_end("a")) == []
    if is_wanted:
        assert table.want("a", "somebody else") == run_end("a")
    table.started("a", stream_id, is_new=True)
    table.end_start()
    assert table.want("a", "w") == run_end("a")
    assert table.is_idle
    assert table.message() == ([], [])


def test_an_end_that_somebody_has_is_not_asked_for_on_the_next_stream(table: Table) -> None:
    """A run was wanted and its end was known, because a start was in flight: nobody asked the next stream."""
    table.named()
    table.ended("a", run_end("a"))
    assert table.want("a", "w") == run_end("a")
    assert not table.is_wanted


def test_a_run_whose_stream_broke_during_its_start_is_asked_for(table: Table) -> None:
    stream_id = table.named()
    table.open_stream("another")
    table.started("a", stream_id, is_new=True)
    assert table.message() == (["a"], [])


def test_a_run_that_existed_before_its_start_is_asked_for(table: Table) -> None:
    """Two starts of the same id: the end may have gone to the other one."""
    first, second = table.named(), table.named()
    table.started("a", first, is_new=True)
    table.want("a", "1")
    assert table.ended("a", run_end("a")) == ["1"]
    table.started("a", second, is_new=False)
    assert table.message() == (["a"], [])


@pytest.mark.parametrize("is_withdrawn", [False, True])
def test_a_run_that_somebody_else_asked_for_during_its_start_is_asked_for(table: Table, is_withdrawn: bool) -> None:
    """The server was told to forget it, or has answered, after the start had announced the wait."""
    stream_id = table.named()
    table.want("a", "somebody else")
    assert table.message() == (["a"], [])
    if is_withdrawn:
        table.give_up("a", "somebody else")
        assert table.message() == ([], ["a"])
    else:
        table.ended("a", run_end("a"))
    table.started("a", stream_id, is_new=True)
    assert table.message() == (["a"], [])


def test_a_start_that_is_not_awaited_is_forgotten(table: Table) -> None:
    table.started("a", table.named(), is_new=True)
    table.forget_start("a")
    assert table.message() == ([], ["a"])
    table.started("b", table.stream_id, is_new=False)
    table.forget_start("b")
    assert table.message() == ([], ["b"])


def test_a_stream_with_much_to_remember_is_not_named(table: Table) -> None:
    table.named()
    for number in range(IDS_PER_MESSAGE):
        assert table.can_be_named
        table.ended(str(number), run_end("a"))
    assert not table.can_be_named
    table.end_start()
    assert table.can_be_named


def test_a_stream_has_so_many_waits_and_no_more(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WAITS_PER_STREAM", 2)
    table.want("a", "1")
    table.want("b", "2")
    assert table.can_add("a")
    assert not table.can_add("c")
