"""Addresses: what people write, and the errors that name the remedy."""

from pathlib import Path

import pytest

from kagzi.core.errors import InvalidArgument
from kagzi.sdk.transport.address import parse_address
from kagzi.sdk.transport.credentials import Tls, call_metadata, channel_credentials, ssl_context, tls_of
from kagzi.sdk.transport.unreachable import unreachable
from tests.support.certificates import Authority


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


@pytest.mark.parametrize(
    ("text", "encrypted"),
    [("far:1", True), ("https://far", True), ("grpc://far:1", True), ("http://far:1", False), ("unix:/x", False)],
)
def test_files_in_the_environment_ask_for_tls_unless_the_address_says_otherwise(text: str, encrypted: bool) -> None:
    environment = {"KAGZI_TLS_CA": "ca.pem", "KAGZI_TLS_CERT": "me.pem", "KAGZI_TLS_KEY": "me.key"}
    tls = tls_of(parse_address(text, {}), None, environment)
    assert tls == (Tls("ca.pem", "me.pem", "me.key") if encrypted else None)
    assert tls_of(parse_address(text, {}), None, {}) == (Tls() if text.startswith("https") else None)


def test_files_in_the_environment_are_for_servers_and_below_arguments() -> None:
    environment = {"KAGZI_TLS_CA": "ca.pem"}
    assert tls_of(parse_address(":memory:", {}), None, environment) is None
    assert tls_of(parse_address("far:1", {}), False, environment) is None
    assert tls_of(parse_address("far:1", {}), True, environment) == Tls("ca.pem")
    assert tls_of(parse_address("far:1", {}), Tls("mine.pem"), environment) == Tls("mine.pem")


@pytest.mark.parametrize("environment", [{"KAGZI_TLS_CERT": "me.pem"}, {"KAGZI_TLS_KEY": "me.key"}])
def test_a_certificate_without_its_key_is_refused(environment: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument, match="KAGZI_TLS_CERT and KAGZI_TLS_KEY"):
        tls_of(parse_address("https://far", {}), None, environment)
    with pytest.raises(InvalidArgument, match="without the"):
        tls_of(parse_address("https://far", {}), Tls(certificate="me.pem"))


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    one, other, locked = authority.issue("one"), authority.issue("other"), authority.issue("locked", password="x")
    (tmp_path / "empty.pem").write_text("")
    for tls, words in (
        (Tls(ca=f"{tmp_path}/gone.pem"), r"ca='.*gone\.pem' cannot be read"),
        (Tls(ca=f"{tmp_path}/empty.pem"), r"ca='.*empty\.pem' has no certificate"),
        (Tls(None, one.cert, other.key), r"certificate='.*one\.pem' and key='.*other\.key' do not belong together"),
        (Tls(None, locked.cert, locked.key), "not encrypted"),
        (Tls(None, f"{tmp_path}/gone.pem", one.key), r"certificate='.*gone\.pem' cannot be read"),
    ):
        for use in (channel_credentials, ssl_context):
            with pytest.raises(InvalidArgument, match=words):
                use(tls)


def test_a_refused_client_certificate_is_named_as_a_cause() -> None:
    closed = "failed to connect to all addresses; last error: UNAVAILABLE: ipv4:127.0.0.1:1: Socket closed"
    assert "If it requires client certificates" in unreachable("it", closed, new_to_tls=True).remedy
    assert "client certificates" not in unreachable("it", closed).remedy


def test_tls_must_not_contradict_the_address() -> None:
    with pytest.raises(InvalidArgument, match="tls=False"):
        tls_of(parse_address("https://a", {}), False)
    with pytest.raises(InvalidArgument, match="embedded"):
        tls_of(parse_address(":memory:", {}), True)
