"""The worker process of `kagzi dev`: a separate process, so that a restart loads new code.

`python -m kagzi.cli.dev.worker TARGET NAMESPACE`, started by its supervisor. It loads the target, reports what it
found, reads the server's address, and serves like `kagzi worker`. It drains on SIGTERM, when the supervisor requests a
reload, and when `kagzi dev` is gone for any reason.
"""

import asyncio
import sys
from typing import Any

import click

from ...core.errors import KagziError
from ...sdk.transport.connection import checked_namespace
from ...sdk.worker.registry import WorkerOptions
from ...sdk.worker.worker import Worker
from ..logs import show_inherited_logs
from ..operate.targets import LoadError, MissingTarget, load, parse_target
from ..processes import collect_rarely
from ..supervise.serving import serve_supervised
from ..supervise.supervision import Supervision
from .child import RELOAD_GRACE
from .samples import sample_argument


def main(arguments: list[str]) -> int:
    target, namespace = arguments
    supervision = Supervision.from_environment()
    if supervision is None:
        raise SystemExit("this is a part of `kagzi dev`, which starts it")
    try:
        loaded = load(parse_target(target))
        worker = loaded.worker_at(None, namespace or None, None)
    except MissingTarget as error:
        supervision.report("missing", message=error.message)
        return 1
    except (click.UsageError, KagziError) as error:
        supervision.report("broken", message=error.message)
        return 1
    except LoadError as error:
        supervision.report("broken", message=str(error))
        return 1
    supervision.report(
        "loaded",
        workflows=[_describe(workflow) for workflow in loaded.workflows],
        namespace=checked_namespace(worker.options.namespace),
        shutdown_grace_s=worker.options.shutdown_grace_s,
        replaced=_replaced(worker.options),
    )
    address = supervision.read_line()
    if not address:
        return 0
    show_inherited_logs()
    collect_rarely()
    return asyncio.run(_serve(worker.at(address, credentials=False), supervision))


async def _serve(worker: Worker, supervision: Supervision) -> int:
    # RELOAD, or GONE: then the server is gone too, and there is nothing to wait for.
    supervision.on_next_line(lambda line: worker.stop(RELOAD_GRACE))
    try:
        await serve_supervised(worker, on_ready=lambda: supervision.report("ready"))
    except KagziError as error:
        supervision.report("broken", message=str(error))
        return 1
    return 0


def _replaced(options: WorkerOptions) -> list[str]:
    """The options of the Worker object that `kagzi dev` overrides with those of its own server."""
    return [name for name in ("address", "tls", "api_key") if getattr(options, name) is not None]


def _describe(workflow: Any) -> dict[str, str]:
    return {"name": workflow.name, "input": sample_argument(workflow.input_type) if workflow.has_input else ""}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
