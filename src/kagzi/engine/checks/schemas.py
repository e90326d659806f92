"""The registered schemas of a type's input, output and signals; refuses values that do not match them.

A value is refused only if every worker that might receive it would refuse it. So it must match neither the latest
schemas of the version that will execute the run nor, for a while, the previous ones: one build may be replacing
another. Versions and types without schemas accept everything. See docs/adr/0046.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from ...core import limits
from ...core.errors import InvalidArgument, KagziError, not_found
from ...core.providers import Clock
from ...core.records import Payload
from ...core.run.outcomes import Refused
from ...core.text.commands import quoted
from ...core.workflow_types.schema_check import Misfit, SchemaCheck, Visits
from ...core.workflow_types.schemas import SchemaRecord, TypeSchemas
from ...core.workflow_types.versions import VersionMark, best_first, default_version
from ...store.protocol import Store, TypeKey
from ..services.versions import Versions
from . import requests as checks
from .refusals import refused

_REMEMBERED = 2_000
_REMEMBERED_BYTES = 16 * limits.MIB  # size of the texts; compiled, they take about twenty times as much
_READ_TIMEOUT_S = 2.0
_PREPARED_BYTES = 16  # of a schema that are compiled at the cost of one visit
_INPUT = "input"
_SIGNAL = "signal"


class TypeChecks:
    """The schemas of one registration, compiled on first use."""

    __slots__ = ("_input", "_signals", "schemas")

    def __init__(self, schemas: TypeSchemas) -> None:
        self.schemas = schemas
        self._input: SchemaCheck | None = None
        self._signals: dict[str, SchemaCheck] = {}

    def input_misfit(self, payload: Payload | None, visits: Visits) -> Misfit | None:
        if self._input is None:
            self._input = _made_ready(self.schemas.input_schema, visits)
        return self._input.misfit(payload, _INPUT, visits)

    def signal_misfit(self, name: str, payload: Payload, visits: Visits) -> Misfit | None:
        schema = self.schemas.signal_schemas.get(name)
        if schema is None:  # do not cache names that clients invent
            return None
        known = self._signals.get(name)
        if known is None:
            known = self._signals[name] = _made_ready(schema, visits)
        return known.misfit(payload, _SIGNAL, visits)


def _made_ready(schema: str, visits: Visits) -> SchemaCheck:
    """Compiling uses up the budget too: a type may have many versions, each with its own schemas."""
    visits.left -= len(schema) // _PREPARED_BYTES
    return SchemaCheck(schema)


class Schemas:
    """`versions` determines the version that a run would get."""

    def __init__(self, store: Store, *, clock: Clock, versions: Versions) -> None:
        self._store = store
        self._clock = clock
        self.versions = versions
        self._checks: dict[tuple[str, str], TypeChecks] = {}
        self._remembered_bytes = 0

    # --- starts -------------------------------------------------------------------------------------------------------

    def known(self, key: TypeKey, version: str) -> Sequence[TypeChecks] | None:
        """The schemas of which a run must match one; empty: any value is valid. None: not cached, call `load`."""
        digests = self.versions.schemas_known(key, version)
        if not digests:
            return None if digests is None else ()
        try:
            return [self._checks[key.namespace, digest] for digest in digests]
        except KeyError:
            return None

    async def load(self, key: TypeKey, version: str) -> Sequence[TypeChecks]:
        """Reads them from the store. An unresponsive store must not delay starts: on timeout nothing is checked."""
        try:
            async with asyncio.timeout(_READ_TIMEOUT_S):
                digests = await self.versions.schemas(key, version)
                return await self._checks_of(key.namespace, digests)
        except (KagziError, TimeoutError):
            return ()

    async def _checks_of(self, namespace: str, digests: Sequence[str]) -> Sequence[TypeChecks]:
        missing = [digest for digest in digests if (namespace, digest) not in self._checks]
        if missing:
            known = await self._store.get_schemas(namespace, missing)
            if len(known) < len(missing):
                return ()
            self._remember(namespace, known)
        return [self._checks[namespace, digest] for digest in digests]

    def _remember(self, namespace: str, known: Mapping[str, TypeSchemas]) -> None:
        added_bytes = sum(map(_size_of, known.values()))
        if len(self._checks) + len(known) > _REMEMBERED or self._remembered_bytes + added_bytes > _REMEMBERED_BYTES:
            self._checks.clear()
            self._remembered_bytes = 0
        for digest, schemas in known.items():
            self._checks[namespace, digest] = TypeChecks(schemas)
        self._remembered_bytes += added_bytes

    async def input_misfit(self, key: TypeKey, version: str, payload: Payload | None) -> Misfit | None:
        """Why a run of this version would fail with this input; None if it matches."""
        known = self.known(key, version)
        if known is None:
            known = await self.load(key, version)
        return input_misfit(known, payload)

    async def check_input(self, key: TypeKey, version: str, payload: Payload | None) -> None:
        """Raises InvalidArgument."""
        misfit = await self.input_misfit(key, version, payload)
        if misfit is not None:
            raise input_refusal(key.workflow_type, version, misfit)

    # --- signals ------------------------------------------------------------------------------------------------------

    def signal_check(self, namespace: str, name: str, payload: Payload | None) -> "SignalCheck":
        """Without a payload, as when a signal is dropped, nothing is checked."""
        return SignalCheck(self, namespace, name, payload)

    async def check_signal_of_type(self, key: TypeKey, name: str, payload: Payload) -> None:
        """For a run of unknown version: raises InvalidArgument if the signal matches no version."""
        visits, first = Visits(), None
        try:
            async with asyncio.timeout(_READ_TIMEOUT_S):
                for mark in await self.versions.markers(key):
                    known = await self._checks_of(key.namespace, mark.schemas.in_force(self._clock.now()))
                    misfit = _misfit_of_all(each.signal_misfit(name, payload, visits) for each in known)
                    if misfit is None:
                        return
                    first = first or misfit
        except (KagziError, TimeoutError):
            return
        if first is not None:
            raise _signal_refusal(key.workflow_type, name, first)

    # --- reading ------------------------------------------------------------------------------------------------------

    async def get(self, namespace: str, workflow_type: str, version: str = "") -> SchemaRecord:
        """The latest registered schemas of a version; empty: of the one that new runs get, or the highest if all are
        deprecated. Raises NotFound."""
        checks.name(namespace, "namespace")
        checks.name(workflow_type, "workflow_type")
        checks.optional_name(version, "version")
        key = TypeKey(namespace, workflow_type)
        markers = await self.versions.markers(key)
        if not markers:
            raise not_found("workflow type", workflow_type)
        wanted = version or default_version(markers) or best_first(mark.version for mark in markers)[0]
        mark = _mark_of(markers, wanted)
        if mark is None:
            raise not_found("version", f"{version} of {workflow_type}")
        record = SchemaRecord(workflow_type=workflow_type, version=mark.version)
        digest = mark.schemas.latest
        known = (await self._store.get_schemas(namespace, [digest])).get(digest) if digest else None
        if known is None:
            return record
        return SchemaRecord(
            workflow_type=workflow_type,
            version=mark.version,
            registered_at=mark.schemas.registered_at,
            description=known.description,
            input_schema=known.input_schema,
            output_schema=known.output_schema,
            signal_schemas=known.signal_schemas,
        )


class SignalCheck:
    """Called by the store once it has found the run of a signal; returns a refusal or None. If the schemas have to be
    read first, nothing is changed: call `load_missing`, and signal again."""

    def __init__(self, schemas: Schemas, namespace: str, name: str, payload: Payload | None) -> None:
        self._schemas = schemas
        self._namespace = namespace
        self._name = name
        self._payload = payload
        self._loaded: dict[tuple[str, str], Sequence[TypeChecks]] = {}
        self._wanted: tuple[str, str] | None = None

    def __call__(self, workflow_type: str, version: str) -> Refused | None:
        if self._payload is None:
            return None
        return self._refusal(workflow_type, version, self._payload)

    def _refusal(self, workflow_type: str, version: str, payload: Payload) -> Refused | None:
        of = (workflow_type, version)
        loaded = self._loaded.get(of)
        known = loaded
        if loaded is None:
            known = self._schemas.known(TypeKey(self._namespace, workflow_type), version)
        misfit = None
        if known is not None:
            visits = Visits()
            misfit = _misfit_of_all(each.signal_misfit(self._name, payload, visits) for each in known)
        if known is None or (misfit is not None and loaded is None):  # newer ones may have been registered
            self._wanted = of
            return _NOT_LOADED
        return None if misfit is None else refused(_signal_refusal(workflow_type, self._name, misfit))

    async def load_missing(self) -> bool:
        """Whether schemas were missing; they are loaded now."""
        if self._wanted is None:
            return False
        of, self._wanted = self._wanted, None
        self._loaded[of] = await self._schemas.load(TypeKey(self._namespace, of[0]), of[1])
        return True


def input_misfit(known: Sequence[TypeChecks], payload: Payload | None) -> Misfit | None:
    """Why it matches none of them; None if it matches one."""
    visits = Visits()
    return _misfit_of_all(each.input_misfit(payload, visits) for each in known)


def _size_of(schemas: TypeSchemas) -> int:
    texts = (schemas.description, schemas.input_schema, schemas.output_schema, *schemas.signal_schemas.values())
    return sum(map(len, texts))


def _misfit_of_all(misfits: Iterable[Misfit | None]) -> Misfit | None:
    """The first misfit, if there is one for every schema."""
    first: Misfit | None = None
    for misfit in misfits:
        if misfit is None:
            return None
        first = first or misfit
    return first


def input_refusal(workflow_type: str, version: str, misfit: Misfit) -> InvalidArgument:
    return InvalidArgument(
        f"{misfit}. The input does not fit workflow {workflow_type!r} version {version}; see its schema: "
        f"kagzi workflows schema {quoted(workflow_type)}",
        field=misfit.path,
    )


def _signal_refusal(workflow_type: str, name: str, misfit: Misfit) -> InvalidArgument:
    return InvalidArgument(
        f"{misfit}. The value does not fit the signal {name!r} of workflow {workflow_type!r}; see its schema: "
        f"kagzi workflows schema {quoted(workflow_type)}",
        field=misfit.path,
    )


_NOT_LOADED = refused(InvalidArgument("the schemas of the type are not known yet"))


def _mark_of(markers: Iterable[VersionMark], version: str) -> VersionMark | None:
    return next((mark for mark in markers if mark.version == version), None)
