"""Checks a JSON value against the JSON Schema that a worker registered. See docs/adr/0046.

It never refuses a value that a worker would accept. So it only uses keywords that every reader interprets alike, and
accepts any value for the rest: patterns and formats, references to other documents, schemas that are too deep. Schemas
come from workers and values from clients, so the number of steps of a check is bounded, whatever they contain.

With `x-kagzi-accepts`, the SDK states that a reader accepts more than its schema: `any` accepts everything from there
on; `lax` (pydantic) only distinguishes null, objects, arrays and other values, and requires required fields;
`lax-names` does not require them either, because they may have other names.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import msgspec

from ..limits import CHECKED_PAYLOAD_BYTES, SCHEMA_DEPTH, SCHEMA_VISITS
from ..records import Payload
from .schema_words import SHOWN, is_list, listed, shown, word_of

ACCEPTS = "x-kagzi-accepts"
ACCEPTS_ANY = "any"
ACCEPTS_LAX = "lax"
ACCEPTS_LAX_NAMES = "lax-names"

_LAX, _LAX_NAMES = 1, 2
_MODES = {ACCEPTS_LAX: _LAX, ACCEPTS_LAX_NAMES: _LAX_NAMES}

_NULL = b"null"
_SHOWN_CHOICES = 5
_SHOWN_REASON = 400
_CHEAP = 16  # names or characters that are compared at the cost of one visit
_DECODED_BYTES = 64  # the same for decoded bytes


class Misfit(NamedTuple):
    """Where in the value, and why; `bare`: the whole value has another type."""

    path: str
    why: str
    bare: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


class Visits:
    """The remaining budget of a check, or of several checks of one value: each step has a cost."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = SCHEMA_VISITS


_Part: TypeAlias = Callable[[Any, str, int, Visits], Misfit | None]
"""Takes a value, its path and its depth; returns why it does not match."""


class SchemaCheck:
    """A compiled schema. Raises nothing for any text: an invalid schema accepts everything."""

    __slots__ = ("_check",)

    def __init__(self, schema: str) -> None:
        try:
            document = msgspec.json.decode(schema)
            self._check = _Compiler(document).part(document, lax=0)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            self._check = None

    def misfit(self, payload: Payload | None, what: str, visits: Visits | None = None) -> Misfit | None:
        """Why a reader would refuse the payload. None: it matches, or that is unknown, as for payloads that are encoded
        by a codec or large. No payload is read as null. `visits`: the remaining budget, if several checks share one."""
        if self._check is None:
            return None
        data = _NULL if payload is None else payload.data or _NULL
        if (payload is not None and payload.metadata) or len(data) > CHECKED_PAYLOAD_BYTES:
            return None
        visits = visits or Visits()
        if visits.left < 0:
            return None
        visits.left -= len(data) // _DECODED_BYTES
        try:
            return self._check(msgspec.json.decode(data), what, 0, visits)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None


# --- compiling --------------------------------------------------------------------------------------------------------

_Limit: TypeAlias = tuple[str, Callable[[Any, Any], bool], str]

_NUMBER_LIMITS: tuple[_Limit, ...] = (
    ("minimum", lambda value, limit: value < limit, "is less than"),
    ("maximum", lambda value, limit: value > limit, "is more than"),
    ("exclusiveMinimum", lambda value, limit: value <= limit, "must be more than"),
    ("exclusiveMaximum", lambda value, limit: value >= limit, "must be less than"),
)
_TEXT_LIMITS: tuple[_Limit, ...] = (
    ("minLength", lambda value, limit: len(value) < limit, "is shorter than"),
    ("maxLength", lambda value, limit: len(value) > limit, "is longer than"),
)
_ARRAY_LIMITS: tuple[_Limit, ...] = (
    ("minItems", lambda value, limit: len(value) < limit, "has fewer items than"),
    ("maxItems", lambda value, limit: len(value) > limit, "has more items than"),
)


class _Compiler:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._by_reference: dict[tuple[str, int], list[_Part | None]] = {}

    def part(self, schema: Any, *, lax: int, depth: int = 0) -> _Part | None:
        """None: every value matches."""
        if schema is False and not lax:
            return _never  # further items of a tuple
        if not isinstance(schema, dict) or depth > SCHEMA_DEPTH:
            return None
        keywords = cast("dict[str, Any]", schema)
        accepts = keywords.get(ACCEPTS)
        if accepts == ACCEPTS_ANY:
            return None
        lax = max(lax, _MODES.get(accepts, 0) if isinstance(accepts, str) else 0)
        combined = self._all(keywords, lax, depth)
        every = (
            self._reference(keywords, lax, depth),
            _type_part(keywords, lax=lax),
            None if lax else _choice_part(keywords),
            self._alternatives(keywords, lax, depth),
            *combined,
            None if lax else _limits_part(keywords),
            self._object_part(keywords, lax, depth),
            self._array_part(keywords, lax, depth),
        )
        parts = [part for part in every if part is not None]
        if len(parts) > 1:
            return _all_of(parts, len(combined))
        return parts[0] if parts else None

    def _reference(self, keywords: dict[str, Any], lax: int, depth: int) -> _Part | None:
        reference = keywords.get("$ref")
        if not isinstance(reference, str):
            return None
        known = self._by_reference.get((reference, lax))
        if known is None:  # stored before it is compiled: it may refer to itself
            known = self._by_reference[reference, lax] = [None]
            known[0] = self.part(self._resolved(reference), lax=lax, depth=depth + 1)
        kept = known

        def check(value: Any, path: str, depth: int, visits: Visits) -> Misfit | None:
            part = kept[0]
            return None if part is None or _enough(depth, visits) else part(value, path, depth + 1, visits)

        return check

    def _resolved(self, reference: str) -> Any:
        """Resolves references within this document; None, which accepts everything, for others."""
        place = self._root
        if reference != "#" and not reference.startswith("#/"):
            return None
        for key in reference.split("/")[1:]:
            name = key.replace("~1", "/").replace("~0", "~")
            if not isinstance(place, dict) or name not in place:
                return None
            place = cast("dict[str, Any]", place)[name]
        return place

    def _alternatives(self, keywords: dict[str, Any], lax: int, depth: int) -> _Part | None:
        """Treats `oneOf` as `anyOf`: readers take the first match."""
        alternatives = _items(keywords.get("anyOf", keywords.get("oneOf")))
        if not alternatives:
            return None
        parts = [self.part(each, lax=lax, depth=depth + 1) for each in alternatives]
        if any(part is None for part in parts):
            return None
        return _any_of([part for part in parts if part is not None])

    def _all(self, keywords: dict[str, Any], lax: int, depth: int) -> list[_Part | None]:
        return [self.part(each, lax=lax, depth=depth + 1) for each in _items(keywords.get("allOf"))]

    def _object_part(self, keywords: dict[str, Any], lax: int, depth: int) -> _Part | None:
        named = keywords.get("properties")
        schemas = cast("dict[str, Any]", named) if isinstance(named, dict) else {}
        parts = {name: self.part(each, lax=lax, depth=depth + 1) for name, each in schemas.items()}
        wanted = None if lax == _LAX_NAMES else keywords.get("required")
        required = [name for name in _items(wanted) if isinstance(name, str) and not _is_tag(schemas.get(name))]
        closed, others = False, None
        if "patternProperties" not in keywords and lax != _LAX_NAMES:
            closed = not lax and keywords.get("additionalProperties") is False
            others = None if closed else self.part(keywords.get("additionalProperties"), lax=lax, depth=depth + 1)
        if not (required or closed or others or any(parts.values())):
            return None
        return _object(parts, required, others, closed=closed)

    def _array_part(self, keywords: dict[str, Any], lax: int, depth: int) -> _Part | None:
        firsts = [self.part(each, lax=lax, depth=depth + 1) for each in _items(keywords.get("prefixItems"))]
        others = self.part(keywords.get("items"), lax=lax, depth=depth + 1)
        if others is None and not any(firsts):
            return None
        return _array(firsts, others)


def _items(value: object) -> list[Any]:
    """The items of a list; empty for anything else."""
    return value if is_list(value) else []


def _is_tag(schema: Any) -> bool:
    """A field with one possible value: readers that know the type do not need it."""
    if not isinstance(schema, dict):
        return False
    keywords = cast("dict[str, Any]", schema)
    return "const" in keywords or len(_items(keywords.get("enum"))) == 1


def _type_part(keywords: dict[str, Any], *, lax: int) -> _Part | None:
    declared = keywords.get("type")
    names: list[Any] = [declared] if isinstance(declared, str) else _items(declared)
    if not names:
        return None
    allowed: set[type] = set()
    for name in names:
        types = (_LAX_TYPES if lax else _TYPES).get(name) if isinstance(name, str) else None
        if types is None:
            return None
        allowed |= types
    if keywords.get("format") == "decimal":  # a decimal is written as text and may be read as a number
        allowed |= {int, float}
    wanted = listed([_WORDS.get(name, str(name)) for name in names])
    kept = frozenset(allowed)
    whole_only = not lax and "integer" in names and "number" not in names

    def check(value: Any, path: str, depth: int, visits: Visits) -> Misfit | None:
        if value.__class__ in kept and not (whole_only and value.__class__ is float and not value.is_integer()):
            return None
        return Misfit(path, f"expected {wanted}, got {word_of(value)}", True)

    return check


_SCALARS = frozenset({str, int, float, bool})
_TYPES: dict[str, frozenset[type]] = {
    "null": frozenset({type(None)}),
    "boolean": frozenset({bool}),
    "integer": frozenset({int, float}),  # 1.0 is an integer, too
    "number": frozenset({int, float}),
    "string": frozenset({str}),
    "array": frozenset({list}),
    "object": frozenset({dict}),
}
_LAX_TYPES = {name: _SCALARS if types & _SCALARS else types for name, types in _TYPES.items()}
_WORDS = {"integer": "a whole number", "number": "number"}


def _choice_part(keywords: dict[str, Any]) -> _Part | None:
    if "const" not in keywords and not isinstance(keywords.get("enum"), list):
        return None
    allowed: list[Any] = [keywords["const"]] if "const" in keywords else _items(keywords["enum"])
    words = listed([shown(each) for each in allowed[:_SHOWN_CHOICES]])
    wanted = words if len(allowed) == 1 else f"one of {words}"
    if len(allowed) > _SHOWN_CHOICES:
        wanted = f"one of {len(allowed)} values, such as {words}"

    single = frozenset(each for each in allowed if each.__class__ not in (list, dict))
    others = [each for each in allowed if each.__class__ in (list, dict)]
    cost = len(msgspec.json.encode(others)) // _CHEAP  # plus the cost of showing it

    def check(value: Any, path: str, depth: int, visits: Visits) -> Misfit | None:
        if value.__class__ not in (list, dict):
            fits = value in single
        else:
            fits = _is_spent(cost + SHOWN, visits) or value in others
        return None if fits else Misfit(path, f"expected {wanted}, got {shown(value)}")

    return check


def _limits_part(keywords: dict[str, Any]) -> _Part | None:
    numbers = _limits_of(keywords, _NUMBER_LIMITS)
    texts = _limits_of(keywords, _TEXT_LIMITS)
    # A set may be sent with repeated items, and has fewer items once it is read.
    arrays = [] if keywords.get("uniqueItems") else _limits_of(keywords, _ARRAY_LIMITS)
    if not (numbers or texts or arrays):
        return None
    by_type = {int: numbers, float: numbers, str: texts, list: arrays}

    def check(value: Any, path: str, depth: int, visits: Visits) -> Misfit | None:
        for exceeds, limit, words in by_type.get(value.__class__, ()):
            if exceeds(value, limit):
                return Misfit(path, f"{shown(value)} {words} {limit}")
        return None

    return check


def _limits_of(keywords: dict[str, Any], known: Sequence[_Limit]) -> list[tuple[Callable[[Any, Any], bool], Any, str]]:
    return [
        (exceeds, keywords[name], words)
        for name, exceeds, words in known
        if isinstance(keywords.get(name), (int, float)) and not isinstance(keywords[name], bool)
    ]


# --- checking ---------------------------------------------------------------------------------------------------------


def _enough(depth: int, visits: Visits) -> bool:
    """Whether the check ends here and accepts the rest."""
    visits.left -= 1
    return depth > SCHEMA_DEPTH or visits.left < 0


def _is_spent(cost: int, visits: Visits) -> bool:
    """Whether a step of this cost exceeds the budget."""
    visits.left -= cost
    return visits.left < 0


def _never(value: Any, path: str, depth: int, visits: Visits) -> Misfit | None:
    return Misfit(path, "is not expected")


def _all_of(parts: Sequence[_Part], combined: int) -> _Part:
    """`combined`: how many of the parts come from `allOf`. The others are few."""

    def check(value: Any, path: str, depth: int, visits: Visits) -> Misfit | None:
        if _is_spent(combined, visits):
            return None
        for part in parts:
            if (misfit := part(value, path, depth, visits)) is not None:
                return misfit
        return None

    return check


def _any_of(parts: Sequence[_Part]) -> _Part:
    def check(value: Any, path: str, depth: int, visits: Visits) -> Misfit | None:
        misfits: list[Misfit] = []
        for part in parts:
            if _enough(depth, visits) or (misfit := part(value, path, depth + 1, visits)) is None:
                return None
            misfits.append(misfit)
        nearer = [misfit for misfit in misfits if not misfit.bare]
        if len(nearer) == 1:
            return nearer[0]
        if nearer:
            first = f"fits none of {len(parts)} alternatives; the first says {nearer[0]}"
            return Misfit(path, first[:_SHOWN_REASON])
        wanted = [misfit.why.removeprefix("expected ").partition(", got ")[0] for misfit in misfits]
        return Misfit(path, f"expected {listed(wanted)}, got {word_of(value)}", True)

    return check


def _object(parts: Mapping[str, _Part | None], required: Sequence[str], others: _Part | None, *, closed: bool) -> _Part:
    def check(value: Any, path: str, depth: int, visits: Visits) -> Misfit | None:
        if value.__class__ is not dict or _is_spent(len(required) // _CHEAP, visits):
            return None
        for name in required:
            if name not in value:
                return Misfit(path, f"the field {shown(name)} is missing")
        for name, each in value.items():
            if _enough(depth, visits):
                return None
            if name in parts:
                part = parts[name]
            elif closed:
                return Misfit(f"{path}.{name[:SHOWN]}", "there is no such field")
            else:
                part = others
            place = f"{path}.{name[:SHOWN]}"
            if part is not None and (misfit := part(each, place, depth + 1, visits)) is not None:
                return misfit
        return None

    return check


def _array(firsts: Sequence[_Part | None], others: _Part | None) -> _Part:
    def check(value: Any, path: str, depth: int, visits: Visits) -> Misfit | None:
        if value.__class__ is not list:
            return None
        for index, each in enumerate(value):
            if _enough(depth, visits):
                return None
            part = firsts[index] if index < len(firsts) else others
            if part is not None and (misfit := part(each, f"{path}[{index}]", depth + 1, visits)) is not None:
                return misfit
        return None

    return check
