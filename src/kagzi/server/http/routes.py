"""The table of all routes of the HTTP API."""

import pkgutil
from importlib import import_module
from typing import Any

import msgspec

from ..access.scopes import check_routes
from . import handlers
from .route import Route


def routes() -> tuple[Route, ...]:
    """The routes of all nouns. Raises CannotStart for a route without a scope: it must not be served unprotected."""
    nouns = sorted(module.name for module in pkgutil.iter_modules(handlers.__path__))
    table = tuple(route for noun in nouns for route in import_module(f"{handlers.__name__}.{noun}").ROUTES)
    check_routes((_name(route), route.scope) for route in table)
    for route in table:
        _check(route)
    return table


def noun_of(route: Route) -> str:
    return route.handler.__module__.rpartition(".")[2]


def _check(route: Route) -> None:
    for kind in (route.query, route.body):
        if _is_struct(kind) and not kind.__struct_config__.forbid_unknown_fields:
            raise TypeError(f"{_name(route)}: {kind.__name__} takes fields that it does not know; make it an Input")


def _name(route: Route) -> str:
    return f"{route.method} {route.path}"


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
