"""The effects of an import."""

from ..effects import Effects
from ..records import RunKey
from ..states import RunStatus
from ..workflow_types.type_key import TypeKey
from .images import RunImage


def import_effects(run: RunKey, image: RunImage, status: RunStatus) -> Effects:
    """The run exists now, with this status. Callers that wait for an ended run look up how it ended."""
    times = () if status.ended else (image.wake_at, image.deadline_at, image.cancel_by)
    return Effects(
        pending=(TypeKey(run.namespace, image.workflow_type),) if status is RunStatus.PENDING else (),
        due=tuple(at for at in times if at is not None),
        children_due=image.cascade_due,
    )
