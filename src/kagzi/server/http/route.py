"""Defines routes of the HTTP API. Tables of routes are the only source: from them `routes.py` serves requests, decodes
them and encodes responses by their structs, and generates OpenAPI."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from ...core.access import Caller, Scope
from ...core.error_details import ErrorCode
from .page_data import PageData

JSON = "application/json"
Query = TypeVar("Query")
Body = TypeVar("Body")


@dataclass(frozen=True, slots=True)
class ApiRequest(Generic[Query, Body]):
    """An admitted and decoded request. `namespace` is never empty; `request_id` is the Idempotency-Key, or a new one;
    `headers` have names in lower case."""

    data: PageData
    caller: Caller
    namespace: str
    path: Mapping[str, str]
    query: Query
    body: Body
    request_id: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of queries, bodies and their parts. Unknown fields are refused by name."""


class NoQuery(Input, frozen=True):
    """The query of a route that takes only `namespace`, or nothing."""


class NoBody(Input, frozen=True):
    """The body of a route that takes none: an empty object, or nothing."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a handler returns to override the route's status or to add headers."""

    value: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Route:
    """`path`: below /api/v1, with `{names}` of segments. `query`, `body`: kinds of `Input`. `answer`: a type that
    msgspec can encode, preferably a struct; None: 204 without a body. `other_answers`: by status, what the handler may
    return in an `Answer` instead. `stream`: the response is server-sent events (an `EventStream`), unless the handler
    returns an `answer`. `everywhere`: requires its scope for every namespace, as it concerns the server.

    `takes`: the media type of the body; if it is not JSON, the handler gets an iterator of bytes. `makes`: that of the
    response; if it is not JSON, the handler returns bytes or an iterator of them. `large`: the response may contain
    payloads, or is a page of a list. `waits`: a long poll. `in_parts`: the handler returns an iterator. `any_key`: any
    valid key. `public`: no key is required, as browsers use it to log in."""

    method: str
    path: str
    handler: Callable[[ApiRequest[Any, Any]], Awaitable[Any]]
    scope: Scope
    summary: str
    query: type[msgspec.Struct] = NoQuery
    body: Any = None
    answer: Any = None
    status: int = 200
    errors: tuple[ErrorCode, ...] = field(default=())
    stream: bool = False
    everywhere: bool = False
    other_answers: Mapping[int, Any] = field(default_factory=dict[int, Any])
    takes: str = JSON
    makes: str = JSON
    large: bool = False
    waits: bool = False
    in_parts: bool = False
    any_key: bool = False
    public: bool = False

    @property
    def namespaced(self) -> bool:
        """Whether it is about one namespace, which the query names; otherwise the path does, or it is about all."""
        return not self.everywhere and "{namespace}" not in self.path
