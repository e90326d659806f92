"""Who makes a call and what they may do: scopes, granted for one namespace or for all of them."""

from dataclasses import dataclass
from enum import StrEnum

EVERY_NAMESPACE = "*"
"""The namespace of a key that is valid in all namespaces, including future ones."""


class Scope(StrEnum):
    """What a key may be good for. Each method and each route needs exactly one of them."""

    READ = "read"
    """View runs, schedules, workers and everything else."""
    CLIENT = "client"
    """Start, signal, cancel and change runs and schedules; includes `read`."""
    WORKER = "worker"
    """Claim runs and report on them."""
    ADMIN = "admin"
    """Change types, limits, namespaces, keys; includes all other scopes."""


_INCLUDED = {
    Scope.READ: frozenset({Scope.READ}),
    Scope.CLIENT: frozenset({Scope.CLIENT, Scope.READ}),
    Scope.WORKER: frozenset({Scope.WORKER}),
    Scope.ADMIN: frozenset(Scope),
}


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller, as identified by its key. `key_id` is empty if the server does not require keys."""

    key_id: str
    name: str
    namespace: str
    scopes: frozenset[Scope]

    def may(self, scope: Scope, namespace: str) -> bool:
        """Whether the caller has this scope in that namespace. `namespace=EVERY_NAMESPACE`: in all of them."""
        return self.namespace in {EVERY_NAMESPACE, namespace} and any(scope in _INCLUDED[one] for one in self.scopes)


ANYONE = Caller(key_id="", name="", namespace=EVERY_NAMESPACE, scopes=frozenset(Scope))
"""The caller on a server that does not require keys."""
