"""Calls that do not belong in workflow code, by full name, with the consequence and what to write instead."""

import ast
from collections.abc import Callable
from typing import NamedTuple

from . import rules
from .rules import Rule


class Advice(NamedTuple):
    rule: Rule
    happens: str
    instead: str


_INTO_A_STEP = 'Put it into a step: await ctx.step("name").run(function)'
_TIME = Advice(rules.CLOCK, "returns another time on every replay", "Use ctx.now()")
_CHANCE = Advice(rules.RANDOM, "returns another value on every replay", "Use ctx.random()")
_UUID = Advice(rules.RANDOM, "returns another value on every replay", "Use ctx.uuid()")
_HASH = Advice(rules.RANDOM, "returns another value in every process", "Use zlib.crc32() or hashlib")
_SLEEP = Advice(rules.BLOCKING, "blocks every run of this worker", 'Use await ctx.sleep("name", "5s")')
_BLOCKS = Advice(
    rules.BLOCKING, "blocks every run of this worker, and runs again on every replay", "Put it into a step"
)
_CALLS_OUT = Advice(rules.NETWORK, "is sent again on every replay, and is not recorded", _INTO_A_STEP)
_THREAD = Advice(rules.THREAD, "runs again on every replay, and keeps the run in its worker", _INTO_A_STEP)
_TIMER = Advice(
    rules.TIMER,
    "starts again on every replay, and keeps the run in its worker",
    'Use await ctx.sleep("name", "5s")',
)
_TIMEOUT = Advice(
    rules.TIMER,
    "ends at another point on every replay, and keeps the run in its worker",
    'Use the timeout= of the step or of ctx.wait_for, or ctx.race(..., ctx.sleep("deadline", "5m"))',
)

_HTTP = "get post put patch delete head options request stream"

# A module, and its functions. `Client.*`: any call on a Client, but not creating one.
_TABLE: tuple[tuple[Advice, str, str], ...] = (
    (_TIME, "time", "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time process_time_ns"),
    (_TIME, "time", "localtime gmtime ctime asctime strftime clock_gettime clock_gettime_ns"),
    (_TIME, "datetime", "datetime.now datetime.utcnow datetime.today date.today datetime.datetime.now"),
    (_TIME, "asyncio", "get_event_loop.time get_running_loop.time"),
    (_TIME, "pendulum", "now today tomorrow yesterday"),
    (_TIME, "arrow", "now utcnow"),
    (_TIME, "pandas", "Timestamp.now Timestamp.today Timestamp.utcnow"),
    (_TIME, "django.utils.timezone", "now localtime localdate"),
    (_TIME, "whenever", "Instant.now ZonedDateTime.now"),
    (_CHANCE, "random", "random randint randrange randbytes uniform choice choices shuffle sample seed getrandbits"),
    (_CHANCE, "random", "gauss normalvariate lognormvariate expovariate betavariate gammavariate triangular"),
    (_CHANCE, "random", "paretovariate vonmisesvariate weibullvariate binomialvariate Random SystemRandom"),
    (_CHANCE, "secrets", "token_bytes token_hex token_urlsafe choice randbelow randbits SystemRandom"),
    (_CHANCE, "os", "urandom getrandom"),
    (_CHANCE, "numpy.random", "rand randn randint random choice shuffle permutation normal uniform exponential seed"),
    (_CHANCE, "numpy.random", "poisson binomial default_rng RandomState"),
    (_UUID, "uuid", "uuid1 uuid4 uuid6 uuid7 uuid8"),
    (_HASH, "builtins", "hash"),
    (_SLEEP, "time", "sleep"),
    (_BLOCKS, "builtins", "open input"),
    (_BLOCKS, "io", "open"),
    (_BLOCKS, "codecs", "open"),
    (_BLOCKS, "aiofiles", "open"),
    (_BLOCKS, "subprocess", "run call check_call check_output Popen getoutput getstatusoutput"),
    (_BLOCKS, "asyncio", "create_subprocess_exec create_subprocess_shell"),
    (_BLOCKS, "os", "system popen listdir scandir walk remove unlink rename replace mkdir makedirs rmdir removedirs"),
    (_BLOCKS, "os", "stat open read write truncate chmod utime symlink link path.exists path.isfile path.isdir"),
    (_BLOCKS, "os", "path.getsize path.getmtime spawnv fork execv"),
    (_BLOCKS, "glob", "glob iglob"),
    (_BLOCKS, "shutil", "copy copy2 copyfile copytree move rmtree make_archive unpack_archive disk_usage which"),
    (_BLOCKS, "tempfile", "NamedTemporaryFile TemporaryFile TemporaryDirectory SpooledTemporaryFile mkstemp mkdtemp"),
    (_BLOCKS, "pathlib", "Path.read_text Path.read_bytes Path.write_text Path.write_bytes Path.open Path.exists"),
    (_BLOCKS, "pathlib", "Path.is_file Path.is_dir Path.iterdir Path.glob Path.rglob Path.mkdir Path.unlink"),
    (_BLOCKS, "pathlib", "Path.rename Path.replace Path.rmdir Path.stat Path.touch"),
    (_BLOCKS, "sqlite3", "connect connect.*"),
    (_BLOCKS, "pandas", "read_csv read_json read_excel read_parquet read_sql read_sql_query read_sql_table"),
    (_CALLS_OUT, "requests", f"{_HTTP} Session.* session.*"),
    (_CALLS_OUT, "httpx", f"{_HTTP} Client.* AsyncClient.*"),
    (_CALLS_OUT, "aiohttp", "request ClientSession.*"),
    (_CALLS_OUT, "urllib.request", "urlopen urlretrieve build_opener.*"),
    (_CALLS_OUT, "urllib3", "request PoolManager.*"),
    (_CALLS_OUT, "http.client", "HTTPConnection.* HTTPSConnection.*"),
    (_CALLS_OUT, "socket", "create_connection create_server getaddrinfo gethostbyname socket.*"),
    (_CALLS_OUT, "asyncio", "open_connection start_server open_unix_connection start_unix_server"),
    (_CALLS_OUT, "smtplib", "SMTP SMTP.* SMTP_SSL SMTP_SSL.*"),
    (_CALLS_OUT, "aiosmtplib", "send SMTP.*"),
    (_CALLS_OUT, "ftplib", "FTP.* FTP_TLS.*"),
    (_CALLS_OUT, "imaplib", "IMAP4.* IMAP4_SSL.*"),
    (_CALLS_OUT, "websockets", "connect connect.*"),
    (_CALLS_OUT, "boto3", "client.* resource.*"),
    (_CALLS_OUT, "asyncpg", "connect connect.* create_pool create_pool.* Connection.* Pool.*"),
    (_CALLS_OUT, "psycopg", "connect connect.* AsyncConnection.* Connection.*"),
    (_CALLS_OUT, "psycopg2", "connect connect.*"),
    (_CALLS_OUT, "pymysql", "connect connect.*"),
    (_CALLS_OUT, "aiosqlite", "connect connect.* Connection.*"),
    (_CALLS_OUT, "pymongo", "MongoClient.* AsyncMongoClient.*"),
    (_CALLS_OUT, "redis", "Redis.* StrictRedis.* from_url.* asyncio.Redis.* asyncio.from_url.*"),
    (_CALLS_OUT, "openai", "chat.* responses.* embeddings.* OpenAI.* AsyncOpenAI.*"),
    (_CALLS_OUT, "anthropic", "Anthropic.* AsyncAnthropic.*"),
    (_CALLS_OUT, "sqlalchemy.orm", "Session.*"),
    (_CALLS_OUT, "sqlalchemy.ext.asyncio", "AsyncSession.* AsyncConnection.* create_async_engine.*"),
    (_CALLS_OUT, "sqlalchemy", "create_engine.* Connection.*"),
    (_THREAD, "threading", "Thread Thread.start Thread.join Timer Lock.acquire Event.wait"),
    (_THREAD, "_thread", "start_new_thread"),
    (_THREAD, "concurrent.futures", "ThreadPoolExecutor.* ProcessPoolExecutor.* wait as_completed"),
    (_THREAD, "multiprocessing", "Process Process.start Pool Pool.* pool.ThreadPool pool.ThreadPool.*"),
    (_THREAD, "asyncio", "to_thread run run_coroutine_threadsafe Runner.* get_event_loop.run_in_executor"),
    (_THREAD, "asyncio", "get_running_loop.run_in_executor get_running_loop.call_soon_threadsafe new_event_loop.*"),
    (_THREAD, "anyio", "to_thread.run_sync to_process.run_sync run from_thread.run"),
    (_THREAD, "asgiref.sync", "sync_to_async async_to_sync"),
    (_TIMER, "asyncio", "sleep get_event_loop.call_later get_event_loop.call_at"),
    (_TIMER, "asyncio", "get_running_loop.call_later get_running_loop.call_at"),
    (_TIMER, "anyio", "sleep sleep_until"),
    (_TIMER, "trio", "sleep"),
    (_TIMEOUT, "asyncio", "timeout timeout_at wait_for wait as_completed"),
    (_TIMEOUT, "anyio", "fail_after move_on_after"),
)


_HARMLESS = (".close", ".aclose")


def _all() -> tuple[dict[str, Advice], dict[str, Advice]]:
    exact: dict[str, Advice] = {}
    below: dict[str, Advice] = {}
    for advice, module, functions in _TABLE:
        for name in functions.split():
            if name.endswith("*"):
                below[f"{module}.{name}".removesuffix(".*")] = advice
            else:
                exact[f"{module}.{name}"] = advice
    return exact, below


_EXACT, _BELOW = _all()


def advice_for(path: str, call: ast.Call) -> Advice | None:
    """`path`: the full name of the called function, without parentheses."""
    advice = _EXACT.get(path)
    if advice is None and not path.endswith(_HARMLESS):
        owner = path
        while advice is None and "." in owner:
            owner = owner.rpartition(".")[0]
            advice = _BELOW.get(owner)
    if advice is None:
        return None
    condition = _CONDITIONS.get(path)
    return advice if condition is None or condition(call) else None


# --- calls that depend on their arguments -----------------------------------------------------------------------------


def _without(count: int) -> Callable[[ast.Call], bool]:
    """With a time or a seed as an argument, the call is deterministic."""
    return lambda call: len(call.args) + len(call.keywords) < count


def _is_number(node: ast.expr | None, number: float | None) -> bool:
    return isinstance(node, ast.Constant) and node.value == number and not isinstance(node.value, bool)


def _argument(call: ast.Call, position: int | None, name: str) -> ast.expr | None:
    if position is not None and len(call.args) > position:
        return call.args[position]
    return next((each.value for each in call.keywords if each.arg == name), None)


def _pauses(call: ast.Call) -> bool:
    """sleep(0) only lets other tasks run."""
    return not _is_number(_argument(call, 0, "delay"), 0)


def _times_out(position: int | None, name: str) -> Callable[[ast.Call], bool]:
    def check(call: ast.Call) -> bool:
        timeout = _argument(call, position, name)
        return timeout is not None and not _is_number(timeout, None)

    return check


_CONDITIONS: dict[str, Callable[[ast.Call], bool]] = {
    "time.localtime": _without(1),
    "time.gmtime": _without(1),
    "time.ctime": _without(1),
    "time.asctime": _without(1),
    "time.strftime": _without(2),
    "random.Random": _without(1),
    "uuid.uuid8": _without(1),
    "numpy.random.default_rng": _without(1),
    "numpy.random.RandomState": _without(1),
    "asyncio.sleep": _pauses,
    "anyio.sleep": _pauses,
    "trio.sleep": _pauses,
    "asyncio.timeout": _times_out(0, "delay"),
    "asyncio.timeout_at": _times_out(0, "when"),
    "asyncio.wait_for": _times_out(1, "timeout"),
    "asyncio.wait": _times_out(None, "timeout"),
    "asyncio.as_completed": _times_out(None, "timeout"),
}
