"""Support for pydantic, if the program uses it. Nothing here imports it: a model class provides all that is needed."""

import sys
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache
from typing import Any, cast, get_args, get_type_hints

import msgspec


@cache
def _names() -> dict[str, bool]:
    """Accept aliases and names where this pydantic can (2.11 and newer), so that whatever `dump` wrote can be read."""
    version = getattr(sys.modules.get("pydantic"), "VERSION", "0.0").split(".")
    return {"by_alias": True, "by_name": True} if (int(version[0]), int(version[1])) >= (2, 11) else {}


def is_pydantic(annotation: Any) -> bool:
    """Whether this is a pydantic model class, or a dataclass made by pydantic."""
    return isinstance(annotation, type) and hasattr(annotation, "__pydantic_validator__")


def mentions_pydantic(annotation: Any) -> bool:
    """Whether a pydantic model is somewhere in an annotation such as `list[User | Group]`."""
    return is_pydantic(annotation) or any(mentions_pydantic(part) for part in get_args(annotation))


def has_discriminator(annotation: Any) -> bool:
    """Whether a union somewhere in an annotation or in the dataclasses that it names has a discriminator of
    pydantic."""
    waiting, seen = [annotation], list[Any]()
    while waiting:
        each = waiting.pop()
        if any(each is known for known in seen):
            continue
        seen.append(each)
        if any(_is_discriminator(part) for part in getattr(each, "__metadata__", ())):
            return True
        waiting.extend(get_args(each))
        if isinstance(each, type) and is_dataclass(each):
            waiting.extend(get_type_hints(each, include_extras=True).values())
    return False


def _is_discriminator(metadata: Any) -> bool:
    """`pydantic.Discriminator(...)`, or `pydantic.Field(discriminator=...)`."""
    kind = cast("type[object]", type(metadata))
    if kind.__module__.partition(".")[0] != "pydantic":
        return False
    return kind.__name__ == "Discriminator" or getattr(metadata, "discriminator", None) is not None


def complete(model: Any) -> None:
    """Resolve the forward references of a model, unless they name what is not defined yet. Raises RuntimeError, as
    pydantic does, for a type that it does not support."""
    if getattr(model, "__pydantic_complete__", True):
        return
    if hasattr(model, "model_rebuild"):
        model.model_rebuild(raise_errors=False)
    else:
        sys.modules["pydantic.dataclasses"].rebuild_dataclass(model, raise_errors=False)


def pydantic_reader(model: Any) -> Callable[[bytes], Any]:
    # Looked up each time: pydantic replaces the validator of a model once its forward references are resolved.
    return lambda data: model.__pydantic_validator__.validate_json(data, **_names())


def adapter_reader(annotation: Any) -> Callable[[bytes], Any]:
    """A reader of types that contain models and need pydantic to distinguish them, such as unions of models."""
    adapter: Any = sys.modules["pydantic"].TypeAdapter(annotation)
    return lambda data: adapter.validate_json(data, **_names())


def adapter_writer(annotation: Any) -> Callable[[Any], bytes]:
    """The counterpart of `adapter_reader`."""
    adapter: Any = sys.modules["pydantic"].TypeAdapter(annotation)
    return lambda value: adapter.dump_json(value, by_alias=True, round_trip=True, warnings=False)


def validate(model: Any, plain: Any) -> Any:
    # In JSON mode a string may become a datetime, a UUID and so on, even for strict models.
    return model.__pydantic_validator__.validate_json(msgspec.json.encode(plain), **_names())


def dump(value: Any) -> Any:
    """Plain JSON of a model, in the form that `validate` reads."""
    return value.__pydantic_serializer__.to_python(value, mode="json", by_alias=True, round_trip=True)


def describe(error: BaseException) -> tuple[str, str]:
    """Path and reason of a msgspec or pydantic validation error."""
    problems: Any = getattr(error, "errors", None)
    if callable(problems) and hasattr(error, "error_count"):
        first = cast("dict[str, Any]", cast("list[Any]", problems())[0])
        path = "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
        return path, f"{first['msg']}, got {_short(first.get('input'))}"
    reason, _, path = str(error).partition(" - at `")
    path = path.rstrip("`") or "$"
    if error.__cause__ is not None and hasattr(error.__cause__, "error_count"):  # a model inside another type
        inner_path, reason = describe(error.__cause__)
        return path + inner_path.removeprefix("$"), reason
    return path, reason.replace("`", "")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
