"""Encrypts payloads: `Worker(codec=AesGcm(...))`, `Kagzi.connect(codec=AesGcm(...))`. Needs the extra `crypto`."""

import os
from collections.abc import Mapping
from typing import cast

from .core.errors import InvalidArgument

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
except ImportError as error:
    raise ImportError("kagzi.crypto needs the extra crypto. Run: pip install 'kagzi[crypto]'") from error

AES_GCM = "aes-gcm"
_ENCODING = "encoding"
_KEY = "encoding-key"
_KIND = "encoding-kind"
_NONCE_BYTES = 12
_KEY_BYTES = (16, 24, 32)
_NAME_CHARS = 64


class AesGcm:
    """A codec that encrypts with AES-GCM.

    Args:
        keys: Secret keys of 32 bytes (16 and 24 also work), each under a name that you choose. The name is stored
            unencrypted with the encrypted data.
        current: The name of the key to encrypt with. Default: the only key.
        strict: Refuse payloads that are not encrypted, and those that were encrypted as something else: an output does
            not stand in for an input. All clients and workers must have it, and nothing older may be stored.

    To rotate keys, first give the new key to all clients and workers in addition to the old one. Then make it the
    `current` one everywhere. Keep the old key for as long as data that was encrypted with it is stored.

    Raises InvalidArgument for keys that cannot be used.
    """

    def __init__(self, keys: Mapping[str, bytes], *, current: str | None = None, strict: bool = False) -> None:
        self._ciphers = {_checked_name(name): AESGCM(_checked_key(name, key)) for name, key in keys.items()}
        if current is None and len(self._ciphers) == 1:
            (current,) = self._ciphers
        if current is None or current not in self._ciphers:
            raise InvalidArgument(
                f"current={current!r} is not the name of one of the keys. There are: {self._names()}.", field="current"
            )
        self._current = current
        self.strict = strict

    def __repr__(self) -> str:
        return f"<AesGcm with key {self._current!r}, of {self._names()}>"

    @staticmethod
    def new_key() -> bytes:
        """A random key of 32 bytes."""
        return AESGCM.generate_key(bit_length=256)

    def encode(self, data: bytes) -> tuple[bytes, Mapping[str, str]]:
        """`data` encrypted with the current key."""
        return self._encrypt(data, {_ENCODING: AES_GCM, _KEY: self._current})

    def encode_as(self, kind: str, data: bytes) -> tuple[bytes, Mapping[str, str]]:
        """`data` encrypted with the current key and bound to its `kind`: an input, an output and so on."""
        return self._encrypt(data, {_ENCODING: AES_GCM, _KEY: self._current, _KIND: kind})

    def _encrypt(self, data: bytes, metadata: Mapping[str, str]) -> tuple[bytes, Mapping[str, str]]:
        nonce = os.urandom(_NONCE_BYTES)  # noqa: TID251  a nonce is never repeated, not even in tests
        return nonce + self._ciphers[self._current].encrypt(nonce, data, _associated(metadata)), metadata

    def decode_as(self, kinds: frozenset[str], data: bytes, metadata: Mapping[str, str]) -> bytes:
        """Decrypt `data` that was encrypted, with this `metadata`, as one of the `kinds`, or as any if there are none.
        Raises ValueError."""
        if metadata.get(_ENCODING) != AES_GCM:
            raise ValueError(
                "it is not encrypted, and the codec here is strict. Somebody without the key has written it"
            )
        kind = metadata.get(_KIND)
        if kind is None or (kinds and kind not in kinds):
            raise ValueError(
                f"it was encrypted as {kind or 'anything'}, and it stands where only {' or '.join(sorted(kinds))} may: "
                "it was moved, or encrypted without strict=True"
            )
        return self.decode(data, metadata)

    def decode(self, data: bytes, metadata: Mapping[str, str]) -> bytes:
        """Decrypt `data` with the key that `metadata` names. Raises ValueError, which names the key."""
        encoding, name = metadata.get(_ENCODING), metadata.get(_KEY, "")
        if encoding != AES_GCM:
            raise ValueError(f"it is encoded as {encoding!r}, and this codec knows {AES_GCM!r} only")
        cipher = self._ciphers.get(name)
        if cipher is None:
            raise ValueError(
                f"it is encrypted with the key {name!r}, and the codec here has {self._names()}. "
                "Add that key: AesGcm(keys={...})"
            )
        try:
            return cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], _associated(metadata))
        except (InvalidTag, ValueError):
            raise ValueError(
                f"the key {name!r} does not decrypt it: the key here is another one of that name, or what is stored "
                f"was changed. Give the key {name!r} that it was encrypted with"
            ) from None

    def _names(self) -> str:
        return ", ".join(map(repr, sorted(self._ciphers))) or "none"


def _associated(metadata: Mapping[str, str]) -> bytes:
    """The associated data to authenticate. It has no run or step: forks, children and parents share the bytes."""
    kind = f" {metadata[_KIND]}" if _KIND in metadata else ""
    return f"kagzi {AES_GCM} {metadata[_KEY]}{kind}".encode()


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= _NAME_CHARS or not name.isprintable():
        raise InvalidArgument(f"the name {name!r} of a key must be a text of 1 to {_NAME_CHARS}.", field="keys")
    return name


def _checked_key(name: str, key: object) -> bytes:
    if not isinstance(key, (bytes, bytearray, memoryview)):
        raise InvalidArgument(f"the key {name!r} is a {type(key).__name__}. Give bytes.", field="keys")
    secret = bytes(cast("bytes", key))
    if len(secret) not in _KEY_BYTES:
        raise InvalidArgument(
            f"the key {name!r} has {len(secret)} bytes; AES takes 16, 24 or 32. Make one: AesGcm.new_key().",
            field="keys",
        )
    return secret
