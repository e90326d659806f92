"""Addresses: what people write, and the errors that name the remedy."""

import pytest

from kagzi.core.errors import InvalidArgument
from kagzi.sdk.transport.address import parse_address
from kagzi.sdk.transport.credentials import Tls, call_metadata, tls_of


@pytest.mark.parametrize(
    ("text", "targets", "secure"),
    [
        ("localhost:50051", ("localhost:50051",), False),
        ("example.com", ("example.com:50051",), False),
        ("http://example.com:7000/", ("example.com:7000",), False),
        ("https://example.com", ("example.com:443",), True),
        ("https://a:1, https://b:2", ("a:1", "b:2"), True),
        ("a:1,b:2,a:1", ("a:1", "b:2"), False),
        ("[::1]:50051", ("[::1]:50051",), False),
        ("unix:/run/kagzi.sock", ("unix:/run/kagzi.sock",), False),
    ],
)
def test_a_server(text: str, targets: tuple[str, ...], secure: bool) -> None:
    address = parse_address(text, {})
    assert (address.targets, address.secure, address.embedded) == (targets, secure, "")


@pytest.mark.parametrize("text", ["sqlite:///rel.db", "sqlite:////abs/file.db", ":memory:"])
def test_an_embedded_one(text: str) -> None:
    address = parse_address(text, {})
    assert (address.targets, address.embedded) == ((), text)


def test_the_environment_comes_second_and_localhost_last() -> None:
    assert parse_address("a:1", {"KAGZI_ADDRESS": "b:2"}).targets == ("a:1",)
    assert parse_address(None, {"KAGZI_ADDRESS": "b:2"}).targets == ("b:2",)
    assert parse_address(None, {}).targets == ("localhost:50051",)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("", "Write"),
        ("a:b:c", "host:port"),
        ("host:99999", "1..65535"),
        ("ftp://host", "unknown scheme 'ftp'"),
        ("sqlite://rel.db", "sqlite:///relative.db"),
        ("sqlite:///", "does not name a file"),
        ("postgresql://user:secret@db/x", "kagzi server --db"),
        ("https://a:1,b:2", "mixes hosts"),
        ("key@host:1", "KAGZI_API_KEY"),
    ],
)
def test_a_wrong_one_names_the_remedy(text: str, remedy: str) -> None:
    with pytest.raises(InvalidArgument, match=remedy) as caught:
        parse_address(text, {})
    assert caught.value.field == "address"


def test_a_password_is_not_repeated_in_the_error() -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_address("https://user:secret@host:1", {})
    assert "secret" not in str(caught.value)


def test_a_key_never_travels_in_clear_off_this_machine() -> None:
    away, here, tls = (parse_address(text, {}) for text in ("example.com:1", "127.0.0.1:1", "https://example.com"))
    with pytest.raises(InvalidArgument, match="unencrypted"):
        call_metadata(away, tls_of(away, None), "kgz_1_x")
    for address in (here, tls):
        assert call_metadata(address, tls_of(address, None), "kgz_1_x") == (("authorization", "Bearer kgz_1_x"),)
    assert call_metadata(away, Tls(), "kgz_1_x")


def test_tls_must_not_contradict_the_address() -> None:
    with pytest.raises(InvalidArgument, match="tls=False"):
        tls_of(parse_address("https://a", {}), False)
    with pytest.raises(InvalidArgument, match="embedded"):
        tls_of(parse_address(":memory:", {}), True)
