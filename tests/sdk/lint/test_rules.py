"""Every rule on code that breaks it and on code that looks alike and does not, to the line."""

from pathlib import Path

import pytest

from kagzi.sdk.lint.linting import lint
from kagzi.sdk.lint.rules import RULES, SUPPRESSION, UNSERIALISABLE
from tests.sdk.lint.marked import HEAD, check, in_workflow

CLOCK = """
import time
import time as t
from datetime import date, datetime, datetime as dt, timezone
import datetime as d
import asyncio

time.time()  # <- clock
t.monotonic()  # <- clock
dt.now(timezone.utc)  # <- clock
began = datetime.utcnow()  # <- clock
day = date.today().isoformat()  # <- clock
[d.datetime.now() for _ in range(3)]  # <- clock
asyncio.get_running_loop().time()  # <- clock
loop = asyncio.get_event_loop()
late = loop.time() > 3  # <- clock
if data and time.perf_counter() > 5:  # <- clock
    pass
time.localtime()  # <- clock
"""
CLOCK_RIGHT = """
import time
from datetime import datetime, timedelta

now = ctx.now()
datetime.fromtimestamp(5, now.tzinfo)
datetime(2026, 1, 1) + timedelta(days=3)
now.time()
now.date()
time.localtime(5)
time.strftime("%Y", time.gmtime(5))

class Stopwatch:
    def now(self) -> int:
        return 3

Stopwatch().now()
await ctx.step("clock").run(time.time)
await ctx.step("clock").run(lambda: datetime.now())

def body() -> float:
    return time.time()

await ctx.step("body").run(body)
"""
RANDOM = """
import os
import random
import secrets
import uuid
from random import choice as pick
from uuid import uuid4

random.random()  # <- random
pick([1, 2])  # <- random
random.Random().random()  # <- random
key = str(uuid4())  # <- random
uuid.uuid1()  # <- random
secrets.token_hex(3)  # <- random
os.urandom(3)  # <- random
shard = hash(data) % 7  # <- random
order = sorted([3, 2], key=lambda x: random.random())  # <- random
"""
RANDOM_RIGHT = """
import random
import uuid
import hashlib

ctx.random()
ctx.uuid()
uuid.uuid5(uuid.NAMESPACE_URL, data)
uuid.UUID(data)
rng = random.Random(ctx.run_id)
rng.shuffle([1, 2])
hashlib.sha256(data.encode()).hexdigest()
"""
BLOCKING = """
import os
import pathlib
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path
from time import sleep

time.sleep(1)  # <- blocking
sleep(1)  # <- blocking
open(data)  # <- blocking
with open(data) as file:  # <- blocking
    file.read()
Path(data).read_text()  # <- blocking
(Path("a") / data).write_text("x")  # <- blocking
path = pathlib.Path(data)
path.exists()  # <- blocking
subprocess.run(["ls"])  # <- blocking
os.listdir(data)  # <- blocking
os.path.exists(data)  # <- blocking
shutil.rmtree(data)  # <- blocking
rows = sqlite3.connect("x.db").execute("select 1")  # <- blocking
"""
BLOCKING_RIGHT = """
import os
from pathlib import Path, PurePath

Path(data).name
Path(data).with_suffix(".txt")
str(PurePath(data) / "x")
os.path.join(data, "x")
await ctx.step("read").run(Path(data).read_text)
await ctx.step("list").run(os.listdir, data)
await ctx.step("open").run(lambda: open(data).read())
await ctx.map("stat", [data], os.stat)
"""
NETWORK = """
import httpx
import requests
import urllib.request
from urllib.request import urlopen as fetch
import boto3
import asyncpg

requests.get(data)  # <- network
fetch(data)  # <- network
await httpx.AsyncClient().get(data)  # <- network
async with httpx.AsyncClient() as client:
    answer = await client.post(data)  # <- network
session = requests.Session()
session.get(data)  # <- network
boto3.client("s3").put_object(Key=data)  # <- network
connection = await asyncpg.connect(data)  # <- network
await connection.fetch("select 1")  # <- network
await CLIENT.get(data)  # <- network
"""
NETWORK_RIGHT = """
import httpx
import requests
from urllib.parse import urljoin

httpx.URL(data).join("x")
httpx.Timeout(3)
urljoin(data, "x")
requests.codes.ok
try:
    await ctx.step("get").run(requests.get, data)
except httpx.HTTPError:
    pass
async with httpx.AsyncClient() as client:
    await ctx.step("get").run(client.get, data)
"""
THREAD = """
import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

worker = threading.Thread(target=print)  # <- thread
worker.start()  # <- thread
await asyncio.to_thread(print, 3)  # <- thread
loop = asyncio.get_running_loop()
await loop.run_in_executor(None, print)  # <- thread
with ThreadPoolExecutor() as pool:
    pool.submit(print)  # <- thread
"""
TASKS = """
import asyncio

async def part(name: str) -> str:
    return await ctx.step(name).run(print)

task = asyncio.create_task(part("a"))
one, two = await asyncio.gather(part("b"), ctx.step("c").run(print))
async with asyncio.TaskGroup() as group:
    group.create_task(part("d"))
    group.create_task(ctx.sleep("e", "1s"))
queue: asyncio.Queue[int] = asyncio.Queue()
queue.put_nowait(1)
await queue.get()
await asyncio.wait([task], return_when=asyncio.FIRST_COMPLETED)
async with asyncio.Lock():
    pass
for each in asyncio.as_completed([task]):
    await each
await asyncio.shield(task)
"""
TIMER = """
import asyncio
from asyncio import sleep

await asyncio.sleep(3)  # <- timer
await sleep(delay=3)  # <- timer
await asyncio.sleep(0)
async with asyncio.timeout(3):  # <- timer
    await ctx.step("a").run(print)
async with asyncio.timeout(None):
    await ctx.step("a").run(print)
await asyncio.wait_for(ctx.step("b").run(print), 3)  # <- timer
await asyncio.wait_for(ctx.step("b").run(print), timeout=None)
task = asyncio.create_task(ctx.sleep("c", "1s"))
await asyncio.wait([task], timeout=3)  # <- timer
asyncio.get_running_loop().call_later(3, print)  # <- timer
await ctx.sleep("d", "3s")
"""
UNORDERED = """
names = {"a", "b", data}
for name in names:  # <- unordered
    await ctx.step(name).run(print)
for name in sorted(names):
    await ctx.step(name).run(print)
for name in names:
    print(name)
for number, name in enumerate(names - {"a"}):  # <- unordered
    if name:
        await pay(number)
listed = list(set(data))
await ctx.map("pay", listed, print)  # <- unordered
await ctx.map("pay", listed, print, key=lambda name: name)
listed.sort()
await ctx.map("pay", listed, print)
await ctx.parallel(ctx.step(name).run(print) for name in frozenset(data))  # <- unordered
await ctx.parallel(ctx.step("pay", key=name).run(print) for name in frozenset(data))
await ctx.parallel([audit(ctx, name) for name in {n.lower() for n in names}])  # <- unordered
by_name = {name: 1 for name in names}
for name, count in by_name.items():  # <- unordered
    await ctx.sleep(name, "1s")
for name in dict.fromkeys(names):  # <- unordered
    await ctx.sleep(name, "1s")
await ctx.step("-".join(names)).run(print)  # <- unordered
await ctx.step(f"all {names}").run(print)  # <- unordered
first = names.pop()  # <- unordered
"""
UNORDERED_RIGHT = """
for number in {1, 2, 3}:
    await ctx.step(str(number)).run(print)
for name, count in {"a": 1, "b": 2}.items():
    await ctx.step(name).run(print)
for name in dict.fromkeys(["a", "b"]):
    await ctx.step(name).run(print)
seen: set[str] = set()
for name in ["a", "b"]:
    if name not in seen:
        seen.add(name)
        await ctx.step(name).run(print)
await ctx.step("count").run(print, len(seen), seen)
if {"a"} & seen:
    await ctx.step("a").run(print)
total = sum(len(name) for name in seen)
await ctx.step(f"total-{total}").run(print)
numbers: set[int] = set()
for number in numbers:
    await ctx.step("n").run(print)
"""
NOT_AWAITED = """
ctx.step("a").run(print)  # <- not-awaited
ctx.step("a").retry(Retry.none()).timeout("1m").run(print, 3)  # <- not-awaited
ctx.sleep("b", "1s")  # <- not-awaited
ctx.child(other)  # <- not-awaited
pay(3)  # <- not-awaited
audit(ctx, data)  # <- not-awaited
paid = pay(3)  # <- not-awaited
if ctx.wait_for(go):  # <- not-awaited
    pass
total = pay(3) + 1  # <- not-awaited
text = f"{pay(3)}"  # <- not-awaited
amount = pay(3).amount  # <- not-awaited
print(pay(4))  # <- not-awaited
ctx.step("c")  # <- not-awaited
await ctx.step("d")  # <- not-awaited
await ctx.step("e").run(
    print,
    pay(5),  # <- not-awaited
)
made(ctx)  # <- not-awaited
handle = await ctx.start_child(other)
handle.result()  # <- not-awaited
for each in ctx.map("f", [1], print):  # <- not-awaited
    pass
return ctx.step("last").run(print)  # <- not-awaited
"""
NOT_AWAITED_RIGHT = """
import asyncio

paid = pay(3)
await paid
calls = [pay(n) for n in range(3)]
await ctx.parallel(calls)
one, two = pay(1), pay(2)
await ctx.parallel(one, two)
await asyncio.gather(pay(3), audit(ctx, data))
later = asyncio.create_task(pay(3))
won = await ctx.race(paid=pay(3), late=ctx.sleep("late", "1s"))
ctx.set_status("x")
ctx.log.info("x")
ctx.changed("x")
async for number in numbers():
    print(number)
await made(ctx)
step_call = ctx.step("x")
await step_call.run(print)
async with ctx.cleanup():
    await pay(3)
handle = await ctx.start_child(other)
await handle.result()
if await ctx.wait_for(go):
    return await pay(3)
"""
HELPERS = """
from collections.abc import AsyncIterator, Coroutine

go = Signal("go", bool)

@step
async def pay(amount: int) -> int:
    return amount

async def audit(ctx: Context, name: str) -> None:
    await ctx.step("audit").run(print)

def made(ctx: Context) -> Coroutine[None, None, None]:
    return ctx.step("made").run(print)

async def numbers() -> AsyncIterator[int]:
    yield 3

@workflow
async def other(ctx: Context) -> None: ...
"""
GLOBAL_STATE = """
global counter
counter += 1  # <- global-state
counter = 3  # <- global-state
SEEN.append(data)  # <- global-state
CACHE[data] = 1  # <- global-state
CACHE.setdefault(data, []).append(3)  # <- global-state
del CACHE[data]  # <- global-state
TOTALS[data] += 1  # <- global-state
settings.debug = True  # <- global-state
Config.level = 3  # <- global-state
state.count = 3  # <- global-state
"""
GLOBALS = """
from collections import defaultdict
import settings

counter = 0
SEEN: list[str] = []
CACHE = {}
TOTALS = defaultdict(int)
logger = settings.logger()

class Config:
    level = 1

state = Config()
"""
GLOBAL_STATE_RIGHT = """
seen = list(SEEN)
seen.append(data)
CACHE.get(data)
cache = dict(CACHE)
cache[data] = 1
counter = 3
counter += 1
logger.info(data)
config = Config()
config.level = 3
SEEN = []
SEEN.append(1)

def body() -> None:
    CACHE[data] = 1

await ctx.step("body").run(body)
"""
CANCELLATION = """
import asyncio
import contextlib

try:
    await ctx.sleep("a", "1s")
except BaseException:  # <- cancellation
    print("failed")
try:
    await ctx.sleep("a", "1s")
except:  # <- cancellation
    pass
try:
    await ctx.sleep("a", "1s")
except asyncio.CancelledError:  # <- cancellation
    ctx.log.info("cancelled")
try:
    await ctx.sleep("a", "1s")
except (ValueError, asyncio.CancelledError) as error:  # <- cancellation
    print(error)
with contextlib.suppress(asyncio.CancelledError):  # <- cancellation
    await ctx.sleep("a", "1s")
try:
    await ctx.sleep("a", "1s")
finally:
    return 3  # <- cancellation
"""
CANCELLATION_RIGHT = """
import asyncio
import contextlib

try:
    await ctx.sleep("a", "1s")
except asyncio.CancelledError:
    async with ctx.cleanup():
        await ctx.step("undo").run(print)
    raise
try:
    await ctx.sleep("a", "1s")
except BaseException as error:
    raise RuntimeError("x") from error
try:
    await ctx.sleep("a", "1s")
except Exception:
    pass
task = asyncio.create_task(ctx.sleep("b", "1s"))
task.cancel()
try:
    await task
except asyncio.CancelledError:
    pass
with contextlib.suppress(asyncio.CancelledError):
    await task
try:
    await ctx.sleep("a", "1s")
except asyncio.CancelledError:
    return "completed in spite of it"
finally:
    print("x")
"""

CASES = {
    "clock": in_workflow(CLOCK),
    "clock, right": in_workflow(CLOCK_RIGHT),
    "random": in_workflow(RANDOM),
    "random, right": in_workflow(RANDOM_RIGHT),
    "blocking": in_workflow(BLOCKING),
    "blocking, right": in_workflow(BLOCKING_RIGHT),
    "network": in_workflow(NETWORK, "import httpx\nCLIENT = httpx.AsyncClient()\n"),
    "network, right": in_workflow(NETWORK_RIGHT),
    "thread": in_workflow(THREAD),
    "thread, right": in_workflow(TASKS),
    "timer": in_workflow(TIMER),
    "unordered": in_workflow(UNORDERED, HELPERS),
    "unordered, right": in_workflow(UNORDERED_RIGHT, HELPERS),
    "not-awaited": in_workflow(NOT_AWAITED, HELPERS),
    "not-awaited, right": in_workflow(NOT_AWAITED_RIGHT, HELPERS),
    "global-state": in_workflow(GLOBAL_STATE, GLOBALS),
    "global-state, right": in_workflow(GLOBAL_STATE_RIGHT, GLOBALS),
    "cancellation": in_workflow(CANCELLATION),
    "cancellation, right": in_workflow(CANCELLATION_RIGHT),
}


@pytest.mark.parametrize("case", CASES)
def test_a_rule_finds_what_it_is_about_and_nothing_else(case: str, tmp_path: Path) -> None:
    check(CASES[case], tmp_path)


def test_every_rule_has_its_cases() -> None:
    elsewhere = {UNSERIALISABLE.name, SUPPRESSION.name}  # in files of their own
    assert {case.partition(",")[0] for case in CASES} == set(RULES) - elsewhere


def test_a_set_as_input_is_unordered(tmp_path: Path) -> None:
    program = """
@workflow
async def texts(ctx: Context, names: set[str]) -> None:
    for name in names:  # <- unordered
        await ctx.step("x").run(print)

@workflow
async def numbers(ctx: Context, names: "set[int]") -> None:
    for name in names:
        await ctx.step("x").run(print)
"""
    check(program, tmp_path)


def test_a_finding_says_where_what_happens_and_what_to_write(tmp_path: Path) -> None:
    file = tmp_path / "flow.py"
    file.write_text(HEAD + in_workflow("import time\nx = [1,\n    time.time()]"))
    (finding,) = lint([file], None).findings
    assert (finding.file, finding.line, finding.column) == (str(file), 7, 9)
    assert (finding.rule, finding.workflow) == ("clock", "flow")
    assert finding.message == "time.time() in a workflow returns another time on every replay."
    assert finding.instead == "Use ctx.now()."
