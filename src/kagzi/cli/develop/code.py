"""The code that a command compares with recorded runs: `app.py`, `app.flows`, `app:worker`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..codecs import codec_of
from ..exits import Exit, Stop
from ..options import Server

if TYPE_CHECKING:
    from ...sdk.transport.payload_codec import Codec
    from ...sdk.worker.worker import Worker
    from ...sdk.workflow.workflow import Workflow


class Code(NamedTuple):
    """Workflows as `kagzi worker` would serve them. `server`: where and how that worker would connect."""

    target: str
    worker: Worker
    server: Server

    @property
    def workflows(self) -> tuple[Workflow[Any, Any], ...]:
        return self.worker.registered

    @property
    def codec(self) -> Codec | None:
        """The codec of `--codec`, or else that of the Worker object."""
        return codec_of(self.server.codec).codec or self.worker.options.codec

    @property
    def build_id(self) -> str:
        """The build id of a worker with this code; empty if there is no source to compute it from."""
        from ...sdk.worker.build_id import default_build_id

        set_by_hand = self.worker.options.build_id
        return set_by_hand if set_by_hand is not None else default_build_id(workflow.fn for workflow in self.workflows)


def load_code(text: str, server: Server) -> Code:
    """Imports it like `kagzi worker`. Raises UsageError, and Stop(USAGE) with the traceback of code that cannot be
    imported."""
    from ..operate.targets import LoadError, load, parse_target

    try:
        loaded = load(parse_target(text))
    except LoadError as error:
        raise Stop(Exit.USAGE, f"{text} cannot be loaded:\n{error}") from error
    worker = loaded.worker_at(server.address, server.namespace, None)
    options = worker.options
    return Code(text, worker, server._replace(address=options.address, namespace=options.namespace))


def short_path(file: str) -> str:
    """The path relative to the working directory, if it is inside."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file
