"""A workflow all of whose words are somebody else's. `kagzi worker tests/web/hostile_flows.py` serves it."""

import logging

from kagzi import Context, NonRetryable, Signal, workflow

log = logging.getLogger(__name__)
proceed = Signal("go", object)
WITHOUT_SEPARATORS = str.maketrans("", "", "/#[]")
"""Of the parts of a step's id: a name has none of them."""


async def _repeat(text: str) -> dict[str, str]:
    return {text: text}


async def _fail(texts: list[str]) -> None:
    for text in texts:
        log.warning("%s", text)
    raise NonRetryable("\n".join(texts), code=texts[0])


@workflow
async def hostile(ctx: Context, texts: list[str]) -> None:
    """Steps that are called so, a status, a signal, and an error, of as many lines as there are texts."""
    for text in texts:
        await ctx.step(f"do {text.translate(WITHOUT_SEPARATORS)}").run(_repeat, text)
    ctx.set_status(" ".join(texts[:3]))
    await ctx.wait_for(proceed)
    await ctx.step("fail").run(_fail, texts)
