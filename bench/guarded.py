"""What keys, TLS, metrics and traces cost: W1 plain, and with them, in turn.

    python -m bench.guarded                       5 rounds: plain, and all four
    python -m bench.guarded --only traces         plain, and traces alone; repeatable
    python -m bench.guarded --rounds 9 --duration 10

Server, worker and client are processes of their own, on a new SQLite file each time; the collector of the spans is
another one, whose CPU does not count. Every run is traced by client and worker, and calls by the server. Metrics are
read once a second. Rounds alternate, so that the drift of a machine affects all; what counts is the ratio of medians.
"""

import asyncio
import os
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

import click
import msgspec
from opentelemetry import trace as otel

from bench.programs import traced_flows
from kagzi import Kagzi
from kagzi.cli.bench import flows
from kagzi.cli.bench.cpu import ProcessMeter
from kagzi.cli.bench.engine import KagziEngine
from kagzi.cli.bench.measure import Bench
from kagzi.cli.bench.plan import Measurement, Plan
from kagzi.cli.bench.processes import running
from kagzi.cli.processes import fast_runner
from tests.support.certificates import Authority

PLAIN, ALL = "plain", "all"
PARTS = ("keys", "tls", "metrics", "traces")
_NAMESPACE = "default"


class SetUp(msgspec.Struct, frozen=True):
    """One of those that are compared: files, addresses, and what is switched on."""

    parts: frozenset[str]
    directory: Path
    collector: str

    @property
    def database(self) -> str:
        return f"sqlite:///{self.directory}/bench.db"


@click.command()
@click.option("--rounds", default=5, show_default=True)
@click.option("--only", multiple=True, type=click.Choice(PARTS), help="Instead of all of them. Repeatable.")
@click.option("--duration", "seconds", default=5.0, show_default=True, help="Seconds of a measurement.")
@click.option("--one", hidden=True, help="Measure with these parts here, and print the result.")
@click.option("--collector", hidden=True, default="")
def main(*, rounds: int, only: Sequence[str], seconds: float, one: str | None, collector: str) -> None:
    plan = Plan(workloads=("W1",), seconds=seconds, in_flight=(100,))
    if one is not None:
        with fast_runner() as runner, tempfile.TemporaryDirectory(prefix="kagzi-bench-") as directory:
            parts = frozenset(one.split(",")) - {""}
            click.echo(msgspec.json.encode(runner.run(measure(SetUp(parts, Path(directory), collector), plan))))
        return
    figures: dict[str, list[Measurement]] = defaultdict(list)
    with collecting() as url:
        for number in range(rounds):
            for name, parts in ((PLAIN, ()), (", ".join(only) or ALL, only or PARTS)):
                figures[name].append(_apart(parts, seconds, url))
                click.echo(f"{number}  {_line(name, figures[name][-1:])}")
    click.echo("medians")
    for name, results in figures.items():
        click.echo(f"   {_line(name, results)}")
    plain, guarded = figures.values()
    click.echo(
        f"   steps/s {_ratio(guarded, plain, _rate):.1%}, 1 / CPU {_ratio(plain, guarded, _cpu_us):.1%} of plain"
    )


def _apart(parts: Sequence[str], seconds: float, collector: str) -> Measurement:
    """In a process of its own: it is the client, and sets up its traces once."""
    command = [sys.executable, "-m", "bench.guarded", "--one", ",".join(parts)]
    command += ["--duration", str(seconds), "--collector", collector]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return msgspec.json.decode(printed, type=Measurement)


async def measure(set_up: SetUp, plan: Plan) -> Measurement:
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
        if is_traced:
            provider = traced_flows.provider_to(set_up.collector)
            stack.callback(provider.shutdown)
            otel.set_tracer_provider(provider)
        os.environ.update(environment)
        if "metrics" in set_up.parts:
            url = http if "://" in http else f"http{'s' if is_secure else ''}://{http}"
            reading = asyncio.create_task(_read_metrics(f"{url}/metrics", environment))
            stack.callback(reading.cancel)
        client = await stack.enter_async_context(Kagzi.connect(address, namespace=_NAMESPACE))
        meter = ProcessMeter({"server": [server.pid], "worker": [worker.pid], "client": [os.getpid()]})
        bench = Bench(KagziEngine(client), plan, meter)
        await bench.warm_up()
        (measured,) = [each async for each in bench.measure("W1")]
        return measured


async def _prepare(set_up: SetUp) -> tuple[dict[str, str], list[str]]:
    """What all processes have in their environment, and the options of the server."""
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
    return environment, options


async def _read_metrics(url: str, environment: dict[str, str]) -> None:
    """As Prometheus does, but more often."""
    key = environment.get("KAGZI_API_KEY")
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"} if key else {})
    authority = environment.get("KAGZI_TLS_CA")
    context = ssl.create_default_context(cafile=authority) if authority else None

    def read() -> Any:
        with urllib.request.urlopen(request, context=context) as response:
            return response.read()

    while True:
        await asyncio.to_thread(read)
        await asyncio.sleep(1)


@contextmanager
def collecting() -> Generator[str]:
    """The address of a collector that keeps nothing."""
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


def _ratio(over: Sequence[Measurement], under: Sequence[Measurement], figure: Callable[[Measurement], float]) -> float:
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
