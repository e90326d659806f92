"""The run ids in the lines of an export: the run's own, and those of its relatives."""

from collections.abc import Callable, Iterator
from typing import TypeAlias, TypeVar

import msgspec

from ..error_details import ErrorDetail
from ..ids import is_uuid
from .images import AttemptImage, ForgottenImage, LinkImage, Part, RunImage, StepImage

Rename: TypeAlias = Callable[[str], str]
Image = TypeVar("Image", bound=RunImage | Part)

_FIELDS: dict[type, tuple[str, ...]] = {
    RunImage: ("run_id", "parent_run_id", "blocked_by", "forked_from", "continued_as", "handed_on_to"),
    StepImage: ("child_run_id",),
    LinkImage: ("child_run_id",),
    ForgottenImage: ("child_run_id",),
}


def runs_named(item: RunImage | Part) -> Iterator[str]:
    for field in _FIELDS.get(type(item), ()):
        run_id: str | None = getattr(item, field)
        if run_id is not None:
            yield run_id
    error = _error_of(item)
    while error is not None:
        if _names_run(error):
            yield error.subject_id
        error = error.cause


def renamed(item: Image, rename: Rename) -> Image:
    """The item with other ids; the texts of errors are unchanged."""
    changes: dict[str, object] = {
        field: rename(run_id) for field in _FIELDS.get(type(item), ()) if (run_id := getattr(item, field)) is not None
    }
    error = _error_of(item)
    if error is not None:
        changes["error"] = _renamed_error(error, rename)
    return msgspec.structs.replace(item, **changes) if changes else item


def _error_of(item: RunImage | Part) -> ErrorDetail | None:
    return item.error if isinstance(item, RunImage | StepImage | AttemptImage | ForgottenImage) else None


def _names_run(error: ErrorDetail) -> bool:
    return error.subject == "run" and is_uuid(error.subject_id)


def _renamed_error(error: ErrorDetail, rename: Rename) -> ErrorDetail:
    cause = None if error.cause is None else _renamed_error(error.cause, rename)
    subject_id = rename(error.subject_id) if _names_run(error) else error.subject_id
    return msgspec.structs.replace(error, subject_id=subject_id, cause=cause)
