"""Who calls, and what they may do: scopes, granted for one namespace or for all of them."""

from dataclasses import dataclass
from enum import StrEnum

EVERY_NAMESPACE = "*"
"""The namespace of a key that is good for all of them, also for those to come."""


class Scope(StrEnum):
    """What a key may be good for. Each method and each route needs exactly one of them."""

    READ = "read"
    """Look at runs, schedules, workers and the rest."""
    CLIENT = "client"
    """Start, signal, cancel and change runs and schedules; includes `read`."""
    WORKER = "worker"
    """Take runs and report about them."""
    ADMIN = "admin"
    """Change types, limits, namespaces, keys; includes all the others."""


_INCLUDED = {
    Scope.READ: frozenset({Scope.READ}),
    Scope.CLIENT: frozenset({Scope.CLIENT, Scope.READ}),
    Scope.WORKER: frozenset({Scope.WORKER}),
    Scope.ADMIN: frozenset(Scope),
}


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever makes a call, as the key says. `key_id` is empty where no keys are asked for."""

    key_id: str
    name: str
    namespace: str
    scopes: frozenset[Scope]

    def may(self, scope: Scope, namespace: str) -> bool:
        """Whether this may be done in that namespace. `namespace=EVERY_NAMESPACE`: in all of them."""
        return self.namespace in {EVERY_NAMESPACE, namespace} and any(scope in _INCLUDED[one] for one in self.scopes)


ANYONE = Caller(key_id="", name="", namespace=EVERY_NAMESPACE, scopes=frozenset(Scope))
"""The caller where no keys are asked for."""
