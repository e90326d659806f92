"""The codec that a command reads payloads with: `--codec app.secrets:codec`."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from ..core.errors import InvalidArgument

if TYPE_CHECKING:
    from ..sdk.transport.payload_codec import Codec, MessageCodec

_HINT = "'--codec' (KAGZI_CODEC)"


def codec_of(text: str | None) -> MessageCodec:
    """Without a codec, encoded values are described instead of decoded. Raises click.BadParameter."""
    from ..sdk.transport.payload_codec import MessageCodec, message_codec

    if not text:
        return MessageCodec(None)
    from .operate.targets import LoadError, load_value, parse_target

    target = parse_target(text)
    if not target.attribute:
        raise click.BadParameter(f"{text!r} names no codec. Write MODULE:NAME or FILE:NAME.", param_hint=_HINT)
    try:
        codec = message_codec(cast("Codec", load_value(target)))  # checks the type
    except LoadError as error:
        raise click.BadParameter(f"{text} cannot be loaded:\n{error}", param_hint=_HINT) from error
    except InvalidArgument as error:
        raise click.BadParameter(error.message, param_hint=_HINT) from error
    return codec or MessageCodec(None)
