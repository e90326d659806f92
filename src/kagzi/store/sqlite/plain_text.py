"""Text that both stores can keep. PostgreSQL cannot store NUL, neither can store lone surrogates: refused alike."""

from collections.abc import Mapping

from ...core.commands import BeginSleep, BeginStep, Command, CompleteStep, FailStep, FinishSleep, ReleaseRun, StartRun
from ...core.errors import ErrorCode, ErrorDetail, ErrorKind, InvalidArgument
from ...core.outcomes import Refused
from ...core.records import Payload

_UNFIT = "{} holds a NUL character or a lone surrogate, which cannot be stored. Remove it."
RESERVED_STEPS = frozenset({"$input", "$context", "$output"})


def refused(code: ErrorCode, message: str, *, subject: str = "", subject_id: str = "", **metadata: str) -> Refused:
    kind = ErrorKind.TRANSIENT if code is ErrorCode.RESOURCE_EXHAUSTED else ErrorKind.PERMANENT
    return Refused(
        ErrorDetail(code=code, kind=kind, message=message, subject=subject, subject_id=subject_id, metadata=metadata)
    )


def is_plain(text: str) -> bool:
    """Whether `text` can be stored."""
    if text.isascii():
        return "\0" not in text
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def require_plain(**texts: str) -> None:
    """Raises InvalidArgument for the first of these that cannot be stored."""
    for field, text in texts.items():
        if not is_plain(text):
            raise InvalidArgument(_UNFIT.format(field), field=field)


def unfit_field(command: Command) -> str | None:
    """The name of the first field whose text cannot be stored; None if all can."""
    for field, text in _texts(command).items():
        if text and not is_plain(text):
            return field
    for field, mapping in _mappings(command).items():
        if mapping and not all(is_plain(key) and is_plain(value) for key, value in mapping.items()):
            return field
    return None


def _texts(command: Command) -> dict[str, str | None]:
    texts: dict[str, str | None] = {"run_id": command.run.run_id, "namespace": command.run.namespace}
    if isinstance(command, StartRun):
        texts |= {
            "workflow_id": command.workflow_id,
            "workflow_type": command.workflow_type,
            "request_id": command.request_id,
            "version": command.version,
        }
        if command.assignment is not None:
            texts |= {"worker_id": command.assignment.worker_id, "version": command.assignment.version}
    elif isinstance(command, (BeginStep, BeginSleep)):
        texts |= {
            "step_id": command.step_id,
            "name": command.name,
            "parent_step_id": command.parent_step_id,
            "parallel_group_id": command.parallel_group_id,
        }
    elif isinstance(command, ReleaseRun):
        texts["reason"] = command.reason
    elif isinstance(command, (CompleteStep, FailStep, FinishSleep)):
        texts["step_id"] = command.step_id
    return texts


def _mappings(command: Command) -> dict[str, Mapping[str, str] | None]:
    mappings: dict[str, Mapping[str, str] | None] = {}
    for field in ("input", "context", "output"):
        payload = getattr(command, field, None)
        if isinstance(payload, Payload):
            mappings[f"{field}.metadata"] = payload.metadata
    if isinstance(command, StartRun):
        mappings["labels"] = command.labels
    return mappings


def refuse_unfit(field: str) -> Refused:
    return refused(ErrorCode.INVALID_ARGUMENT, _UNFIT.format(field), subject="field", subject_id=field)
