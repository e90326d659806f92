"""Who may call what: every method there is, with every key that is not good for it, is refused alike and changes
nothing. Keys end on every server, also for what is open.

A method without a scope fails the suite, and keeps the server from starting.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, NamedTuple

import grpc
import msgspec
import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from kagzi.core.access import EVERY_NAMESPACE, Scope
from kagzi.core.keys.audit import Action
from kagzi.server.access import access
from kagzi.server.access.scopes import NEEDS, Need, check_methods
from kagzi.server.app import Server
from kagzi.server.config import AUTH_KEYS
from kagzi.server.grpc.registration import SERVICES, check_served, path_of
from kagzi.server.health import health_descriptor
from kagzi.server.startup import CannotStart
from kagzi.v1 import admin_pb2, key_pb2, namespace_pb2, worker_pb2, workflow_pb2
from kagzi.v1.common_pb2 import PageRequest
from tests.server.apart_cases import CASES
from tests.server.apart_world import (
    METHODS,
    OURS,
    THEIRS,
    Caller,
    Names,
    admin,
    furnish,
    keys,
    picture,
    workers,
    workflows,
)
from tests.server.conftest import StartServer
from tests.server.keys import a_key, first_key, revoke
from tests.server.test_namespaces_apart import STILL
from tests.support.polling import until

UNAUTHENTICATED, DENIED = grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED
UNKNOWN_KEY = f"kgz_{'0' * 16}_{'0' * 64}"
QUICK = msgspec.structs.replace(STILL, keys_check_ms=50)
PUBLIC = {path for path in METHODS if NEEDS[path].public}
ANY_KEY = {path for path in METHODS if NEEDS[path].scope is None and path not in PUBLIC}


class World(NamedTuple):
    operator: Caller
    names: Names


@pytest.fixture
async def world(start_server: StartServer, database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(access, "_NOTED_S", math.inf)  # when a key was used is nobody's change
    key = await first_key(database_url)
    server = await start_server(database_url, settings=STILL, auth=AUTH_KEYS)
    async with grpc.aio.insecure_channel(server.grpc_address) as channel:
        operator = Caller(channel, key)
        yield World(operator, await furnish(operator))


def requests_of(path: str, names: Names) -> Sequence[Message]:
    """Requests that would do something to what is ours, if they were let in."""
    requests = list(CASES[path][0].ask(names)) if path in CASES else [GetMessageClass(METHODS[path].input_type)()]
    first: Any = requests[0]
    if "hello" in first.DESCRIPTOR.fields_by_name:
        first.hello.register.namespace_id = OURS
    elif "namespace_id" in first.DESCRIPTOR.fields_by_name:
        first.namespace_id = OURS
    if "schedule" in first.DESCRIPTOR.fields_by_name:
        first.schedule.ClearField("namespace_id")
    return requests[:1]


def scopes_without(need: Need) -> list[str]:
    """All the scopes that do not include the one that is needed."""
    included = {
        Scope.READ: {Scope.WORKER},
        Scope.CLIENT: {Scope.READ, Scope.WORKER},
        Scope.WORKER: {Scope.READ, Scope.CLIENT},
        Scope.ADMIN: {Scope.READ, Scope.CLIENT, Scope.WORKER},
    }
    assert need.scope is not None
    return sorted(included[need.scope])


async def test_every_method_refuses_every_key_that_is_not_good_for_it(world: World, database_url: str) -> None:
    operator, names = world
    admins = [Scope.ADMIN]
    revoked_id, revoked = await a_key(operator, OURS, admins)
    await revoke(operator, revoked_id)
    _, expired = await a_key(operator, OURS, admins, timedelta(milliseconds=500))
    key_id, good = await a_key(operator, OURS, admins)
    bad_keys = {
        "no key": "",
        "unknown": UNKNOWN_KEY,
        "another secret": f"kgz_{key_id}_{'0' * 64}",
        "no such form": "kgz_1_2",
        "revoked": revoked,
        "expired": expired,
    }
    by_scopes = {
        scopes: (await a_key(operator, OURS, scopes))[1]
        for scopes in {tuple(scopes_without(NEEDS[path])) for path in set(METHODS) - PUBLIC - ANY_KEY}
    }
    _, foreign = await a_key(operator, THEIRS, admins)

    async def is_expired() -> bool:
        answer = operator.with_key(expired).ask(admin("GetServerInfo"), admin_pb2.GetServerInfoRequest())
        return (await answer)[0] is UNAUTHENTICATED

    await until(is_expired)
    before = await picture(database_url)
    wrong: list[str] = []
    for path in METHODS:
        need = NEEDS[path]
        requests = requests_of(path, names)
        expected = dict.fromkeys(bad_keys.items(), UNAUTHENTICATED)
        if need.scope is not None:
            expected["wrong scope", by_scopes[tuple(scopes_without(need))]] = DENIED
            expected["wrong namespace", foreign] = DENIED
            if need.everywhere:
                expected["namespace only", good] = DENIED
        texts: dict[str, str] = {}
        for (name, key), code in expected.items():
            answer = await operator.with_key(key).ask(path, *requests)
            texts[name] = answer[1]
            if (answer[0] in {UNAUTHENTICATED, DENIED}) if path in PUBLIC else (answer[0] is not code or answer[2]):
                wrong.append(f"{path} with {name}: {answer}")
        if texts["unknown"] != texts["another secret"]:
            wrong.append(f"{path} tells that a key exists: {texts}")
    assert not wrong, "\n".join(wrong)
    assert await picture(database_url) == before
    for path in ANY_KEY:
        code, text, _ = await operator.with_key(foreign).ask(path, *requests_of(path, names))
        assert code is grpc.StatusCode.OK, text


def test_every_method_has_a_scope_and_every_scope_a_method() -> None:
    served = {path_of(method) for service in SERVICES for method in service.methods}
    check_methods(served)
    with pytest.raises(CannotStart, match=r"no scope is declared for /kagzi\.v1\.New/Method"):
        check_methods({*served, "/kagzi.v1.New/Method"})
    with pytest.raises(CannotStart, match="which is not served"):
        check_methods(served, {**NEEDS, "/kagzi.v1.Old/Method": Need(Scope.READ)})
    with pytest.raises(CannotStart, match=r"nothing serves /kagzi\.v1\.WorkflowService/StartWorkflow"):
        check_served({})
    assert {admin("HealthCheck")} == PUBLIC
    assert {admin("GetServerInfo")} == ANY_KEY
    assert {path for path, need in NEEDS.items() if need.public} == PUBLIC | {
        f"/grpc.health.v1.Health/{method}" for method in ("Check", "Watch", "List")
    }


def test_a_method_that_a_library_adds_to_its_service_does_not_keep_the_server_from_starting() -> None:
    services = {each.full_name: SimpleNamespace(**{m.name: None for m in each.methods}) for each in SERVICES}
    services["grpc.health.v1.Health"] = SimpleNamespace(Check=None)  # and neither Watch nor what comes later
    check_served(services, (*SERVICES, health_descriptor()))


async def test_a_refusal_names_what_is_needed_and_what_the_key_has(world: World) -> None:
    key_id, key = await a_key(world.operator, OURS, [Scope.READ, Scope.WORKER])
    request = workflow_pb2.StartWorkflowRequest(namespace_id=OURS, workflow_type="t")
    _, text, _ = await world.operator.with_key(key).ask(workflows("StartWorkflow"), request)
    assert text == (
        f"this needs the scope client for namespace {OURS}; the key {key_id} (of a test) has read, worker for "
        f"namespace {OURS}. Use another key."
    )
    _, text, _ = await world.operator.with_key("").ask(workflows("StartWorkflow"), request)
    assert "KAGZI_API_KEY" in text
    _, text, _ = await world.operator.with_key(key).ask(
        keys("ListKeys"), key_pb2.ListKeysRequest(namespace_id=EVERY_NAMESPACE)
    )
    assert "the scope admin for every namespace" in text


async def test_keys_of_others_look_like_keys_that_do_not_exist(world: World) -> None:
    operator, _ = world
    ours, _ = await a_key(operator, OURS, [Scope.READ])
    _, key = await a_key(operator, THEIRS, [Scope.ADMIN])
    theirs = operator.with_key(key)
    for path, request in (
        (keys("RotateKey"), key_pb2.RotateKeyRequest),
        (keys("RevokeKey"), key_pb2.RevokeKeyRequest),
    ):
        nothing = await theirs.ask(path, request(namespace_id=THEIRS, key_id="0" * 16))
        foreign = await theirs.ask(path, request(namespace_id=THEIRS, key_id=ours))
        assert nothing[0] is foreign[0] is grpc.StatusCode.NOT_FOUND
        assert nothing[1].replace("0" * 16, ours) == foreign[1]
    listed = await theirs.one(keys("ListKeys"), key_pb2.ListKeysRequest(namespace_id=THEIRS))
    assert {one.namespace_id for one in listed.keys} == {THEIRS}
    audit = await theirs.one(keys("ListAudit"), key_pb2.ListAuditRequest(namespace_id=THEIRS))
    assert {entry.namespace_id for entry in audit.entries} == {THEIRS}
    everywhere = await operator.one(keys("ListKeys"), key_pb2.ListKeysRequest(namespace_id=EVERY_NAMESPACE))
    assert {one.namespace_id for one in everywhere.keys} == {OURS, THEIRS, EVERY_NAMESPACE}


# --- repeats ----------------------------------------------------------------------------------------------------------


async def test_creating_and_rotating_can_be_repeated(world: World) -> None:
    operator, _ = world
    info = admin_pb2.GetServerInfoRequest()
    request = key_pb2.CreateKeyRequest(namespace_id=OURS, name="ci", scopes=["client"], request_id="once")
    first, second = [await operator.one(keys("CreateKey"), request) for _ in range(2)]
    assert first.key == second.key
    assert first.secret != second.secret
    rotate = key_pb2.RotateKeyRequest(namespace_id=OURS, key_id=first.key.key_id, request_id="turn")
    third, fourth = [await operator.one(keys("RotateKey"), rotate) for _ in range(2)]
    answers = [
        (await operator.with_key(made.secret).ask(admin("GetServerInfo"), info))[0]
        for made in (first, second, third, fourth)
    ]
    assert answers == [UNAUTHENTICATED, UNAUTHENTICATED, grpc.StatusCode.OK, grpc.StatusCode.OK]
    text = (await operator.with_key(first.secret).ask(admin("GetServerInfo"), info))[1]
    assert "rotated" in text
    listed = await operator.one(keys("ListKeys"), key_pb2.ListKeysRequest(namespace_id=OURS))
    assert [one.name for one in listed.keys] == ["ci"]
    assert all(made.secret not in str(listed) for made in (first, second, third, fourth))


# --- the audit --------------------------------------------------------------------------------------------------------


async def test_what_needs_admin_is_audited_with_the_key_that_did_it(world: World) -> None:
    """Every method that changes something and needs `admin`, and operations on many runs."""
    operator, names = world
    kind = admin_pb2.WorkflowType(workflow_type="our-type", max_running=3)
    of_type = {"namespace_id": OURS, "workflow_type": "our-type"}
    version: dict[str, Any] = {**of_type, "version": "our-version"}
    key_id, _ = await a_key(operator, OURS, [Scope.READ])
    calls: list[tuple[str, Message, Action]] = [
        (keys("RotateKey"), key_pb2.RotateKeyRequest(namespace_id=OURS, key_id=key_id), Action.KEY_ROTATE),
        (keys("RevokeKey"), key_pb2.RevokeKeyRequest(namespace_id=OURS, key_id=key_id), Action.KEY_REVOKE),
        (
            admin("UpdateWorkflowType"),
            admin_pb2.UpdateWorkflowTypeRequest(namespace_id=OURS, type=kind, fields=["max_running"]),
            Action.TYPE_LIMITS,
        ),
        (admin("PauseWorkflowType"), admin_pb2.PauseWorkflowTypeRequest(**of_type), Action.TYPE_PAUSE),
        (admin("ResumeWorkflowType"), admin_pb2.ResumeWorkflowTypeRequest(**of_type), Action.TYPE_RESUME),
        (admin("SetDefaultVersion"), admin_pb2.SetDefaultVersionRequest(**version), Action.VERSION_DEFAULT),
        (admin("SetDefaultVersion"), admin_pb2.SetDefaultVersionRequest(**of_type), Action.VERSION_NO_DEFAULT),
        (admin("DeprecateVersion"), admin_pb2.DeprecateVersionRequest(**version), Action.VERSION_DEPRECATE),
        (admin("DeprecateVersion"), admin_pb2.DeprecateVersionRequest(**version, undo=True), Action.VERSION_RESTORE),
        (
            admin("DrainWorker"),
            admin_pb2.DrainWorkerRequest(namespace_id=OURS, worker_id=names.worker_id),
            Action.WORKER_DRAIN,
        ),
        (
            namespaces("UpdateNamespace"),
            namespace_pb2.UpdateNamespaceRequest(
                namespace=namespace_pb2.Namespace(namespace_id=OURS, enabled=False), fields=["enabled"]
            ),
            Action.NAMESPACE_UPDATE,
        ),
        (
            namespaces("CreateNamespace"),
            namespace_pb2.CreateNamespaceRequest(namespace_id="new"),
            Action.NAMESPACE_CREATE,
        ),
        (
            namespaces("DeleteNamespace"),
            namespace_pb2.DeleteNamespaceRequest(namespace_id="new", confirm="new"),
            Action.NAMESPACE_DELETE,
        ),
    ]
    reading = {keys("ListKeys"), keys("ListAudit")}
    of_admins = {path for path, need in NEEDS.items() if need.scope is Scope.ADMIN}
    assert {path for path, _, _ in calls} | reading | {keys("CreateKey")} == of_admins
    for path, request, _ in calls:
        await operator.one(path, request)
    request = key_pb2.ListAuditRequest(namespace_id=EVERY_NAMESPACE, page=PageRequest(page_size=len(calls)))
    listed = await operator.one(keys("ListAudit"), request)
    assert [entry.action for entry in listed.entries] == [action for _, _, action in reversed(calls)]
    assert {entry.key_name for entry in listed.entries} == {"operator"}
    assert {len(entry.key_id) for entry in listed.entries} == {16}
    [limited] = [entry for entry in listed.entries if entry.action == Action.TYPE_LIMITS]
    assert (limited.subject, dict(limited.details)) == ("our-type", {"max_running": "3"})
    begun = await operator.one(
        keys("ListAudit"), key_pb2.ListAuditRequest(namespace_id=OURS, page=PageRequest(page_size=1_000))
    )
    assert begun.entries[-1].action == Action.BULK_START, "of the bulk operation that the world began with"


def namespaces(name: str) -> str:
    return f"/kagzi.v1.NamespaceService/{name}"


# --- what is open -----------------------------------------------------------------------------------------------------


async def test_what_is_open_ends_with_its_key_on_every_server(start_server: StartServer, database_url: str) -> None:
    """A session, a watch and a long poll; on PostgreSQL on another server than the one that is told."""
    first = await first_key(database_url)
    servers: list[Server] = [await start_server(database_url, settings=QUICK, auth=AUTH_KEYS)]
    if database_url.startswith("postgresql"):
        servers.append(await start_server(database_url, settings=QUICK, auth=AUTH_KEYS))
    async with (
        grpc.aio.insecure_channel(servers[0].grpc_address) as here,
        grpc.aio.insecure_channel(servers[-1].grpc_address) as there,
    ):
        operator = Caller(here, first)
        start = workflow_pb2.StartWorkflowRequest(namespace_id=OURS, workflow_type="t")
        run_id = (await operator.one(workflows("StartWorkflow"), start)).run_id
        key_id, key = await a_key(operator, OURS, [Scope.CLIENT, Scope.WORKER])
        holder = Caller(there, key)
        hello = worker_pb2.SessionRequest(
            hello=worker_pb2.SessionHello(
                register=worker_pb2.RegisterRequest(namespace_id=OURS, workflow_types=["other"])
            )
        )
        opened = {
            workers("Session"): hello,
            workflows("Watch"): workflow_pb2.WatchRequest(namespace_id=OURS, run_id=run_id),
            workflows("WaitStream"): workflow_pb2.WaitStreamRequest(namespace_id=OURS, run_ids=[run_id]),
        }
        calls = [asyncio.create_task(_open(holder, path, request)) for path, request in opened.items()]
        calls.append(
            asyncio.create_task(
                _refused(
                    holder,
                    workflows("Wait"),
                    workflow_pb2.WaitRequest(namespace_id=OURS, run_id=run_id),
                )
            )
        )
        done, _ = await asyncio.wait(calls, timeout=0.3)
        assert not done
        await revoke(operator, key_id)
        assert await asyncio.gather(*calls) == [UNAUTHENTICATED] * 4

        get = workflow_pb2.GetWorkflowRequest(namespace_id=OURS, run_id=run_id)

        async def refused() -> bool:
            return (await holder.ask(workflows("GetWorkflow"), get))[0] is UNAUTHENTICATED

        await until(refused)


async def _open(caller: Caller, path: str, request: Message) -> grpc.StatusCode:
    """How a stream ends that its caller does not end."""
    method: Any = caller.channel.stream_stream(path)
    call = method(metadata=caller.metadata, timeout=60)
    await call.write(request.SerializeToString())
    try:
        while await call.read() is not grpc.aio.EOF:
            pass
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def _refused(caller: Caller, path: str, request: Message) -> grpc.StatusCode:
    return (await caller.ask(path, request))[0]


async def test_an_expired_key_ends_what_is_open(start_server: StartServer, database_url: str) -> None:
    first = await first_key(database_url)
    server = await start_server(database_url, settings=QUICK, auth=AUTH_KEYS)
    async with grpc.aio.insecure_channel(server.grpc_address) as channel:
        operator = Caller(channel, first)
        start = workflow_pb2.StartWorkflowRequest(namespace_id=OURS, workflow_type="t")
        run_id = (await operator.one(workflows("StartWorkflow"), start)).run_id
        _, key = await a_key(operator, OURS, [Scope.READ], timedelta(seconds=1))
        watch = workflow_pb2.WatchRequest(namespace_id=OURS, run_id=run_id)
        assert await _open(Caller(channel, key), workflows("Watch"), watch) is UNAUTHENTICATED


async def test_reflection_asks_for_a_key_too(start_server: StartServer, database_url: str) -> None:
    key = await first_key(database_url)
    server = await start_server(database_url, auth=AUTH_KEYS, reflection=True)
    path = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
    async with grpc.aio.insecure_channel(server.grpc_address) as channel:
        method: Any = channel.unary_stream(path)
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await method(b"").read()
        assert refusal.value.code() is UNAUTHENTICATED
        await method(b"", metadata=Caller(channel, key).metadata).read()


async def test_no_namespace_is_called_every_namespace(world: World) -> None:
    start = workflow_pb2.StartWorkflowRequest(namespace_id=EVERY_NAMESPACE, workflow_type="t")
    code, text, _ = await world.operator.ask(workflows("StartWorkflow"), start)
    assert (code, "every namespace" in text) == (grpc.StatusCode.INVALID_ARGUMENT, True)
    made = namespace_pb2.CreateNamespaceRequest(namespace_id=EVERY_NAMESPACE)
    assert (await world.operator.ask(namespaces("CreateNamespace"), made))[0] is grpc.StatusCode.INVALID_ARGUMENT
