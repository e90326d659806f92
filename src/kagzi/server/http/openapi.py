"""The table of routes as an OpenAPI 3.1 document, generated entirely from the table so that it cannot drift."""

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ...core import limits
from ...core.error_details import ErrorCode
from ...core.records import DEFAULT_NAMESPACE
from ...core.version import __version__
from .decoding import parameters
from .matching import PREFIX
from .problems import PROBLEM_JSON, STATUS_OF_CODE, Problem
from .route import JSON, Route
from .routes import noun_of

_REFERENCE = "#/components/schemas/{name}"
_NAMES = re.compile(r"\{(\w+)\}")
_EVERYWHERE = (
    ErrorCode.INVALID_ARGUMENT,
    ErrorCode.UNAUTHENTICATED,
    ErrorCode.UNAUTHORIZED,
    ErrorCode.NOT_FOUND,
    ErrorCode.RESOURCE_EXHAUSTED,
    ErrorCode.INTERNAL,
    ErrorCode.UNAVAILABLE,
)
_WORDS = {
    400: "The request cannot be right; `field` says what to fix.",
    401: "There is no key, or none that is known.",
    403: "The key does not allow this.",
    404: "There is no such thing in this namespace.",
    409: "Not possible in the present state, or the id is taken.",
    413: f"The body is larger than {limits.MESSAGE_HARD_BYTES} bytes.",
    415: "The body has another media type.",
    429: "A limit was reached; `limit` names it.",
    500: "A bug; `instance` names the incident in the server's log.",
    501: "This server does not do that.",
    503: "The server is stopping, or its database is down.",
    504: "A deadline has passed.",
}
_NAMESPACE = {
    "name": "namespace",
    "in": "query",
    "description": "The namespace.",
    "schema": {"type": "string", "default": DEFAULT_NAMESPACE},
}
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A repeated request with the same key has the effect of one, and the same answer.",
    "schema": {"type": "string", "maxLength": limits.NAME_BYTES},
}
_IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The ETag of an earlier answer: 304 if it is still the same.",
    "schema": {"type": "string"},
}
_ETAG = {"ETag": {"description": "Changes with the answer.", "schema": {"type": "string"}}}


def described(table: Iterable[Route]) -> bytes:
    return msgspec.json.encode(document(tuple(table)))


def document(table: Sequence[Route]) -> dict[str, Any]:
    schemas = _Schemas(table)
    paths: dict[str, dict[str, Any]] = {}
    for route in table:
        paths.setdefault(PREFIX + route.path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Kagzi",
            "version": __version__,
            "description": "Durable execution: runs and all about them.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


class _Schemas:
    """The schemas of all types in the table; a type that several routes use is described once."""

    def __init__(self, table: Sequence[Route]) -> None:
        kinds: list[Any] = [Problem]
        for route in table:
            kinds += [kind for kind in (route.body, route.answer, *route.other_answers.values()) if kind is not None]
            kinds += [parameter.kind for parameter in parameters(route.query).values()]
        schemas, self.components = msgspec.json.schema_components(kinds, ref_template=_REFERENCE)
        self._of = list(zip(kinds, schemas, strict=True))

    def __getitem__(self, kind: Any) -> dict[str, Any]:
        return next(schema for known, schema in self._of if known is kind or known == kind)


def _operation(route: Route, schemas: _Schemas) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": f"{noun_of(route)}_{route.handler.__name__.strip('_')}",
        "tags": [noun_of(route)],
        "summary": route.summary,
        "description": _description(route),
        **({} if route.public or route.any_key else {"x-kagzi-scope": route.scope.value}),
        "parameters": list(_parameters(route, schemas)),
        "responses": _responses(route, schemas),
    }
    if route.takes != JSON:
        operation["requestBody"] = {"required": True, "content": {route.takes: {"schema": {"type": "string"}}}}
    elif route.body is not None:
        content = {JSON: {"schema": schemas[route.body]}}
        operation["requestBody"] = {"required": _is_required(route.body), "content": content}
    return operation


def _description(route: Route) -> str:
    where = "every namespace" if route.everywhere else "the namespace"
    words = inspect.cleandoc(route.handler.__doc__ or "")
    need = f"Needs the scope `{route.scope.value}` for {where}."
    if route.public or route.any_key:
        need = "Needs no key." if route.public else "Needs a key, whatever its scopes."
    return f"{words}\n\n{need}".strip()


def _is_required(body: Any) -> bool:
    if isinstance(body, type) and issubclass(body, msgspec.Struct):
        return any(field.required for field in msgspec.structs.fields(body))
    return True


def _parameters(route: Route, schemas: _Schemas) -> Iterable[dict[str, Any]]:
    for name in _NAMES.findall(route.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    if route.namespaced:
        yield _NAMESPACE
    defaults = {field.encode_name: field.default for field in msgspec.structs.fields(route.query)}
    for name, parameter in parameters(route.query).items():
        schema = _without_null(schemas[parameter.kind])
        default = defaults[name]
        if isinstance(default, (str, int, float)) and default != "":
            schema = {**schema, "default": default}
        yield {"name": name, "in": "query", "required": parameter.required, "schema": schema}
    if route.method == "POST":
        yield _IDEMPOTENCY_KEY
    if _is_tagged(route):
        yield _IF_NONE_MATCH
    if route.stream:
        yield {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}}


def _without_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A query has no null: an optional parameter is left out."""
    rest = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    return {**schema} if len(rest) != 1 else {**{k: v for k, v in schema.items() if k != "anyOf"}, **rest[0]}


def _responses(route: Route, schemas: _Schemas) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    answers = {route.status if route.answer is not None or _is_raw(route) else 204: route.answer, **route.other_answers}
    for status, kind in sorted(answers.items()):
        responses[str(status)] = _response(route, status, kind, schemas)
    if _is_tagged(route):
        responses["304"] = {"description": "As the caller has it already.", "headers": _ETAG}
    for status in sorted(_error_statuses(route)):
        schema = schemas[Problem]
        responses[str(status)] = {"description": _WORDS[status], "content": {PROBLEM_JSON: {"schema": schema}}}
    return responses


def _is_tagged(route: Route) -> bool:
    """A response in parts has no ETag: its content is not known in full before it is sent."""
    return route.method == "GET" and not route.stream and not route.in_parts


def _is_raw(route: Route) -> bool:
    return route.stream or route.makes != JSON


def _response(route: Route, status: int, kind: Any, schemas: _Schemas) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if route.makes != JSON:
        content[route.makes] = {"schema": {"type": "string"}}
    elif kind is not None:
        content[JSON] = {"schema": schemas[kind]}
    if route.stream:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    response: dict[str, Any] = {"description": "Done." if status != 304 else "Unchanged."}
    if content:
        response["content"] = content
    if _is_tagged(route) and status == 200:
        response["headers"] = _ETAG
    return response


def _error_statuses(route: Route) -> set[int]:
    statuses = {STATUS_OF_CODE[code] for code in (*_EVERYWHERE, *route.errors)} | {401}
    if route.body is not None or route.takes != JSON:
        statuses |= {413, 415}
    return statuses
