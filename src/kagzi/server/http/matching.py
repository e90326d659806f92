"""Finds the route of a request. Splits the raw path, so that `%2F` stays within its segment."""

from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from ...core.errors import NotFound
from .problems import MethodNotAllowed, Unreadable
from .route import Route

PREFIX = "/api/v1"


class _Path:
    """A path template of the table."""

    def __init__(self, path: str) -> None:
        self.segments = tuple(path.split("/")[1:])
        self.routes: dict[str, Route] = {}

    def match(self, segments: tuple[str, ...]) -> bool:
        return all(
            bool(segment) if own.startswith("{") else own == segment
            for own, segment in zip(self.segments, segments, strict=True)
        )

    @property
    def order(self) -> tuple[bool, ...]:
        """Literals sort before names: `/runs/batch` is not a run."""
        return tuple(segment.startswith("{") for segment in self.segments)


class Table:
    """Raises ValueError for two routes with the same method and path."""

    def __init__(self, routes: Iterable[Route]) -> None:
        paths: dict[str, _Path] = {}
        for route in routes:
            path = paths.setdefault(route.path, _Path(route.path))
            if route.method in path.routes:
                raise ValueError(f"{route.method} {route.path} is in the table of routes twice")
            path.routes[route.method] = route
        self._paths: dict[int, list[_Path]] = {}
        for path in sorted(paths.values(), key=lambda path: path.order):
            self._paths.setdefault(len(path.segments), []).append(path)

    def find(self, method: str, raw_path: str) -> tuple[Route, Mapping[str, str]]:
        """The route, and the decoded names of the path. Raises NotFound, MethodNotAllowed, Unreadable."""
        below = raw_path.removeprefix(PREFIX)
        segments = tuple(below.split("/")[1:]) if raw_path.startswith(f"{PREFIX}/") else ()
        allowed: set[str] = set()
        for path in self._paths.get(len(segments), ()):
            if path.match(segments):
                route = path.routes.get("GET" if method == "HEAD" else method)
                if route is not None:
                    pairs = zip(path.segments, segments, strict=True)
                    named = {own[1:-1]: segment for own, segment in pairs if own.startswith("{")}
                    return route, {name: _decoded(segment, name) for name, segment in named.items()}
                allowed.update(path.routes)
        if allowed:
            raise _not_allowed(method, allowed)
        raise NotFound(f"there is nothing at {raw_path[:256]!r}. {PREFIX}/openapi.json describes what there is.")


def _not_allowed(method: str, allowed: set[str]) -> MethodNotAllowed:
    names = ", ".join([*sorted(allowed), *(["HEAD"] if "GET" in allowed else [])])
    return MethodNotAllowed(f"{method[:32]!r} is not possible here. Use {names}.", metadata={"allow": names})


def _decoded(segment: str, name: str) -> str:
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise Unreadable(
            f"the path segment {segment[:256]!r} is not UTF-8, percent-encoded. Encode it so.", field=name
        ) from None
