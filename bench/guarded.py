"""Measures what keys, TLS, metrics and traces cost: W1 plain and with them, in turn.

    python -m bench.guarded                       15 rounds: plain, and all four
    python -m bench.guarded --only traces         plain, and traces alone; repeatable
    python -m bench.guarded --each                plain, each of the four alone, and all four
    python -m bench.guarded --rounds 30 --duration 2
    python -m bench.guarded --rounds 99 --calm 9  until each has been measured nine times on a calm machine

Server, worker and client are separate processes, on a new SQLite file each. The collector of the spans and the reader
of the metrics, once a second, are others, whose CPU does not count. Client and worker trace every run, and the server
traces calls. All processes are started before the first measurement and take short turns, so that other load on the
machine affects all alike. The result is the median of the ratios to the plain measurement of the same round. If there
are some measurements of every set-up during which nobody slowed the machine down (bench/machine_speed.py), their
medians and the ratios of these are printed, too.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from statistics import median

import click
import msgspec
from opentelemetry import trace as otel

from bench.machine_speed import CALM, MachineSpeed
from bench.programs import metrics_reader, traced_flows
from kagzi import Kagzi
from kagzi.cli.bench import flows
from kagzi.cli.bench.cpu import ProcessMeter, per_thousand
from kagzi.cli.bench.engine import KagziEngine
from kagzi.cli.bench.measure import Bench
from kagzi.cli.bench.plan import Measurement, Plan
from kagzi.cli.bench.processes import running
from kagzi.cli.processes import fast_runner
from tests.support.certificates import Authority

PLAIN, ALL = "plain", "all"
PARTS = ("keys", "tls", "metrics", "traces")
_NAMESPACE = "default"
_READY = "ready"
_SENT_MS = 250  # the longest interval between two exports of spans
_LEAST_CALM = 3
_SETTLED_S = 0.5  # after which the last spans have been exported, so that their cost is counted


class SetUp(msgspec.Struct, frozen=True):
    """One of the compared set-ups: files, addresses, and the enabled parts."""

    parts: frozenset[str]
    directory: Path
    collector: str

    @property
    def database(self) -> str:
        return f"sqlite:///{self.directory}/bench.db"


@click.command()
@click.option("--rounds", default=15, show_default=True)
@click.option("--calm", type=int, help="End when there are so many measurements of each on a calm machine.")
@click.option("--only", multiple=True, type=click.Choice(PARTS), help="Instead of all of them. Repeatable.")
@click.option("--each", is_flag=True, help="Each of them alone, too.")
@click.option("--duration", "seconds", default=1.0, show_default=True, help="Seconds of a measurement.")
@click.option("--warm-up", "warm_up_seconds", default=2.0, show_default=True, help="Seconds before the first one.")
@click.option("--in-flight", default=100, show_default=True, help="Runs at a time.")
@click.option("--one", hidden=True, help="Measure with these parts here, for each line of the input.")
@click.option("--collector", default="", help="Send spans to this address instead of to a process of its own.")
def main(  # noqa: PLR0917  options
    rounds: int,
    calm: int | None,
    only: Sequence[str],
    each: bool,
    seconds: float,
    warm_up_seconds: float,
    in_flight: int,
    one: str | None,
    collector: str,
) -> None:
    if one is not None:
        plan = Plan(workloads=("W1",), seconds=seconds, warm_up_seconds=warm_up_seconds, in_flight=(in_flight,))
        with fast_runner() as runner, tempfile.TemporaryDirectory(prefix="kagzi-bench-") as directory:
            runner.run(serve(SetUp(frozenset(one.split(",")) - {""}, Path(directory), collector), plan))
        return
    compared: dict[str, Sequence[str]] = {PLAIN: ()}
    if each:
        compared |= {part: (part,) for part in only or PARTS}
    compared[", ".join(only) or ALL] = only or PARTS
    figures: dict[str, list[Measurement]] = {name: [] for name in compared}
    calm_figures: dict[str, list[Measurement]] = {name: [] for name in compared}
    least = 0
    options = ("--duration", seconds, "--warm-up", warm_up_seconds, "--in-flight", in_flight)
    with ExitStack() as stack:
        url = collector or stack.enter_context(collecting())
        clients = {name: stack.enter_context(client_with(parts, url, *options)) for name, parts in compared.items()}
        speed = stack.enter_context(MachineSpeed())
        speed.calibrate()
        for number in range(rounds):
            for name, measure in clients.items():
                mark = speed.mark()
                measured = measure()
                slowdown = speed.slowdown_since(mark)
                click.echo(f"{number:<2} {_line(name, [measured])}  slowed down {slowdown:.2f}")
                figures[name].append(measured)
                if slowdown <= CALM:
                    calm_figures[name].append(measured)
            least = min(map(len, calm_figures.values()))
            if calm is not None and least >= calm:
                break
    _report("medians", figures, _median_ratio)
    if least >= _LEAST_CALM:
        _report(f"on a calm machine, at least {least} of each", calm_figures, _ratio_of_medians)


_Figure = Callable[[Measurement], float]
_Ratio = Callable[[Sequence[Measurement], Sequence[Measurement], _Figure], float]


def _report(title: str, figures: Mapping[str, Sequence[Measurement]], ratio: _Ratio) -> None:
    click.echo(title)
    for name, results in figures.items():
        click.echo(f"   {_line(name, results)}")
    for name, guarded in figures.items():
        if name != PLAIN:
            rate, cpu = ratio(guarded, figures[PLAIN], _rate), ratio(figures[PLAIN], guarded, _cpu_us)
            click.echo(f"   {name:<8} steps/s {rate:.1%}, 1 / CPU {cpu:.1%} of plain")


@contextmanager
def client_with(
    parts: Sequence[str], collector: str, *options: object, environment: Mapping[str, str] | None = None
) -> Generator[Callable[[], Measurement]]:
    """Yields a function that measures once. It uses a separate process, which is the client and sets up traces once."""
    command = [sys.executable, "-m", "bench.guarded", "--one", ",".join(parts), "--collector", collector]
    command += map(str, options)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        requests, answers = process.stdin, process.stdout

        def measure() -> Measurement:
            print(flush=True, file=requests)
            return msgspec.json.decode(answers.readline(), type=Measurement)

        if answers.readline().strip() != _READY:
            raise click.ClickException(f"{' '.join(command)} did not become ready; see above.")
        yield measure


async def serve(set_up: SetUp, plan: Plan) -> None:
    """Measure once for each line of the input and print the result, until the input ends."""
    async with AsyncExitStack() as stack:
        environment, options = await _prepare(set_up)
        ports = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
        server_environment = {**environment, "KAGZI_DB": set_up.database}
        server = await stack.enter_async_context(running("server", *ports, *options, environment=server_environment))
        address = await server.printed(r"^kagzi server ready .*?grpc=(\S+)")
        http = await server.printed(r"^kagzi server ready .*?http=(\S+)")
        is_traced, is_secure = "traces" in set_up.parts, "tls" in set_up.parts
        address = address if "://" in address or not is_secure else f"https://{address}"
        module = traced_flows if is_traced else flows
        worker = await stack.enter_async_context(
            running(
                *("worker", module.__name__, "--address", address, "--max-concurrent", str(plan.slots)),
                environment={**environment, traced_flows.COLLECTOR: set_up.collector if is_traced else ""},
            )
        )
        await worker.printed(r"(worker \S+ serves)")
        os.environ.update(environment)
        if is_traced:
            provider = traced_flows.provider_to(set_up.collector)
            stack.callback(provider.shutdown)
            otel.set_tracer_provider(provider)
        url = http if "://" in http else f"http{'s' if is_secure else ''}://{http}"
        client = await stack.enter_async_context(Kagzi.connect(address, namespace=_NAMESPACE))
        meter = ProcessMeter({"server": [server.pid], "worker": [worker.pid], "client": [os.getpid()]})
        bench = Bench(KagziEngine(client), plan, meter)
        await bench.warm_up()
        reader = None
        if "metrics" in set_up.parts:
            reader = await stack.enter_async_context(_metrics_reader(f"{url}/metrics"))
        print(_READY, flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            async with _metrics_read(reader):
                print(msgspec.json.encode(await _measure(bench, meter)).decode(), flush=True)


async def _measure(bench: Bench, meter: ProcessMeter) -> Measurement:
    used = meter.cpu()
    (measured,) = [each async for each in bench.measure("W1")]
    await asyncio.sleep(_SETTLED_S)
    cpu = per_thousand(meter.cpu_since(used), measured.operations)
    return msgspec.structs.replace(measured, cpu_seconds_per_1000=cpu)


async def _prepare(set_up: SetUp) -> tuple[dict[str, str], list[str]]:
    """The environment of all processes, and the options of the server."""
    environment, options = dict[str, str](), list[str]()
    if "tls" in set_up.parts:
        authority = Authority(set_up.directory)
        issued = authority.issue("server")
        environment["KAGZI_TLS_CA"] = authority.path
        options += ["--tls-cert", issued.cert, "--tls-key", issued.key]
    if "keys" in set_up.parts:
        scopes = [part for scope in ("client", "worker", "admin") for part in ("--scope", scope)]
        command = ["-m", "kagzi", "keys", "create", "bench", *scopes, "--everywhere", "--db", set_up.database]
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        environment["KAGZI_API_KEY"] = (await process.communicate())[0].decode().strip()
        options += ["--auth", "keys"]
    if "traces" in set_up.parts:
        options += ["--otlp", set_up.collector]
        environment["OTEL_BSP_SCHEDULE_DELAY"] = str(_SENT_MS)
    return environment, options


@asynccontextmanager
async def _metrics_reader(url: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    command = (sys.executable, "-m", metrics_reader.__name__, url)
    process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@asynccontextmanager
async def _metrics_read(reader: asyncio.subprocess.Process | None) -> AsyncGenerator[None]:
    """Read the metrics meanwhile, like Prometheus but more often."""
    reading = None if reader is None else asyncio.create_task(_read_metrics(reader))
    yield
    if reading is not None:
        if reading.done():
            reading.result()
        reading.cancel()
        await asyncio.wait([reading])


async def _read_metrics(reader: asyncio.subprocess.Process) -> None:
    assert reader.stdin is not None
    assert reader.stdout is not None
    while True:
        reader.stdin.write(b"\n")
        if not await reader.stdout.readline():
            raise click.ClickException("the metrics cannot be read; see above.")
        await asyncio.sleep(1)


@contextmanager
def collecting() -> Generator[str]:
    """The address of a collector that discards everything."""
    command = [sys.executable, "-m", "tests.support.otlp_sink"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            with suppress(ProcessLookupError):
                process.kill()


def _rate(result: Measurement) -> float:
    return result.value


def _cpu_us(result: Measurement) -> float:
    return sum(result.cpu_seconds_per_1000.values()) * 1_000


def _median_ratio(over: Sequence[Measurement], under: Sequence[Measurement], figure: _Figure) -> float:
    """The median ratio of measurements that were made one after the other."""
    return median(figure(one) / figure(other) for one, other in zip(over, under, strict=True))


def _ratio_of_medians(over: Sequence[Measurement], under: Sequence[Measurement], figure: _Figure) -> float:
    return median(map(figure, over)) / median(map(figure, under))


def _line(name: str, results: Sequence[Measurement]) -> str:
    rate, cpu_us = median(map(_rate, results)), median(map(_cpu_us, results))
    roles = {
        role: median(each.cpu_seconds_per_1000[role] for each in results) for role in ("server", "worker", "client")
    }
    of_it = " ".join(f"{role} {seconds * 1_000:.1f}" for role, seconds in roles.items())
    return f"{name:<8} {rate:8,.0f} steps/s  {cpu_us:6.1f} us of CPU a step: {of_it}"


if __name__ == "__main__":
    main()
