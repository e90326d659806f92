"""Sets up access control of a server, and warns about what is not protected."""

import asyncio
import logging
from contextlib import AsyncExitStack

from ...core.access import EVERY_NAMESPACE
from ...core.errors import KagziError
from ...core.providers import Clock
from ...engine import Engine, PageAsk
from ..config import ServerConfig
from .access import Access

logger = logging.getLogger("kagzi.server")


async def open_access(stack: AsyncExitStack, engine: Engine, config: ServerConfig, clock: Clock) -> Access:
    """Polls keys until the stack is closed."""
    access = Access(engine.keys, clock, asks=config.asks_for_keys, check_ms=config.settings.keys_check_ms)
    for address in config.open_to_others:
        logger.warning(
            "INSECURE: %s can be reached from other machines, and everyone there may read and change everything, "
            "because --insecure was given. To require keys: --auth keys",
            address,
        )
    for address in config.keys_in_clear:
        logger.warning(
            "%s has no TLS: keys are sent unencrypted unless a proxy encrypts them. To use TLS: --tls-cert, --tls-key",
            address,
        )
    if access.asks:
        engine.keys.on_change = access.poll_soon
        polling = asyncio.get_running_loop().create_task(access.run(), name="kagzi keys")
        stack.push_async_callback(access.stop, polling)
        await _warn_without_keys(engine, config)
    return access


async def _warn_without_keys(engine: Engine, config: ServerConfig) -> None:
    try:
        page = await engine.keys.list(EVERY_NAMESPACE, PageAsk(size=1))
    except KagziError:  # the database just became unreachable: others report that
        return
    if not page.rows:
        logger.warning("there is no API key yet, so all calls are refused. Create one: %s", config.first_key_command)
