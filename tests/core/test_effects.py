"""Effects as values: cheap when there are none, complete when there are many."""

from kagzi.core.effects import CHILDREN_DUE, NO_EFFECTS, Effects, LeaseNotice, merge, pending_effects
from kagzi.core.records import Lease, RunEnd, RunKey, RunLease
from kagzi.core.states import RunStatus
from kagzi.core.workflow_types.type_key import TypeKey

RUN, OTHER = RunKey("default", "run"), RunKey("default", "other")
HELLO = TypeKey("default", "hello")


def test_nothing_merged_is_no_effects_itself() -> None:
    assert merge([]) is NO_EFFECTS
    assert merge([NO_EFFECTS, NO_EFFECTS]) is NO_EFFECTS
    assert merge([NO_EFFECTS, CHILDREN_DUE]) is CHILDREN_DUE
    assert pending_effects([]) is NO_EFFECTS


def test_merged_effects_keep_everything_once() -> None:
    notice = LeaseNotice(RunLease(RUN, Lease(1, 2)), "result", "worker-1")
    end = RunEnd(run=OTHER, status=RunStatus.CANCELLED)
    one = Effects(pending=(HELLO,), notices=(notice,), due=(5,), changed=(RUN,))
    two = Effects(
        pending=(HELLO,), released=(HELLO,), ended=(end,), due=(5, 7), changed=(RUN, OTHER), children_due=True
    )
    assert merge([one, two]) == Effects(
        pending=(HELLO,),
        released=(HELLO,),
        notices=(notice,),
        ended=(end,),
        due=(5, 7),
        changed=(RUN, OTHER),
        children_due=True,
    )


def test_every_field_is_merged() -> None:
    """A new field that `merge` forgets would be lost."""
    for name in Effects.__struct_fields__:
        value = True if name == "children_due" else ("x",)
        part = Effects(**{name: value})  # type: ignore[arg-type]
        assert getattr(merge([part, CHILDREN_DUE]), name) == value, name
