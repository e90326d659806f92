"""Flag over environment over file over default; and what makes no sense is refused by name."""

import itertools
import socket
import traceback
from pathlib import Path
from typing import Any

import pytest

from kagzi.core.errors import InvalidArgument
from kagzi.server.config import AUTH_KEYS, SETTING_NAMES, ServerConfig, load_config
from kagzi.server.database import PostgresDatabase, SqliteDatabase, mask, parse_database
from kagzi.server.listen import ListenAddress, bind, parse_listen
from kagzi.server.startup import CannotStart


def load(directory: Path, environment: dict[str, str] | None = None, **flags: Any) -> ServerConfig:
    return load_config(flags, environment=environment or {}, directory=directory)


def test_defaults(tmp_path: Path) -> None:
    config = load(tmp_path)
    assert config == ServerConfig()
    assert (str(config.listen), str(config.http)) == ("127.0.0.1:50051", "127.0.0.1:8420")
    assert (config.settings.lease_ms, config.settings.heartbeat_ms) == (15_000, 5_000)


def test_flag_over_environment_over_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.kagzi]\nlease = "20s"\nheartbeat = "2s"\nlisten = "127.0.0.1:1"\n')
    environment = {"KAGZI_HEARTBEAT": "3s", "KAGZI_LISTEN": "127.0.0.1:2", "KAGZI_ADDRESS": "elsewhere:1"}
    config = load(tmp_path, environment, listen="127.0.0.1:3", http=None)
    assert (config.settings.lease_ms, config.settings.heartbeat_ms, config.listen.port) == (20_000, 3_000, 3)


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        ("db", "sqlite:///x.db", lambda c: c.db),
        ("db_direct", "postgresql://database/kagzi", lambda c: c.db_direct),
        ("db_schema", "kagzi", lambda c: c.db),
        ("db_pool_size", "20", lambda c: c.db),
        ("db_statement_timeout", "30s", lambda c: c.db),
        ("db_lock_timeout", "5s", lambda c: c.db),
        ("listen", "[::1]:7", lambda c: str(c.listen)),
        ("http", "127.0.0.1:9", lambda c: str(c.http)),
        ("websocket", "off", lambda c: c.websocket),
        ("lease", "1m", lambda c: c.settings.lease_ms),
        ("heartbeat", "1s", lambda c: c.settings.heartbeat_ms),
        ("reconnect_grace", "1s", lambda c: c.settings.reconnect_grace_ms),
        ("poll_interval", "7s", lambda c: c.settings.poll_interval_ms),
        ("resident_wait", "7ms", lambda c: c.settings.resident_wait_ms),
        ("cleanup", "7s", lambda c: c.settings.cleanup_ms),
        ("schedule_late", "7s", lambda c: c.settings.schedule_late_ms),
        ("retention", "7d", lambda c: c.settings.retention_ms),
        ("housekeeping", "7s", lambda c: c.settings.housekeeping_ms),
        ("claim_cap", "3", lambda c: c.settings.claim_cap),
        ("payload_bytes", "1000", lambda c: c.settings.payload_bytes),
        ("journal_total_bytes", "1000000", lambda c: c.settings.journal_total_bytes),
        ("unread_total_bytes", "1000000", lambda c: c.settings.unread_total_bytes),
        ("strict_namespaces", "true", lambda c: c.settings.strict_namespaces),
        ("jitter", "false", lambda c: c.settings.jitter),
        ("grace", "3s", lambda c: c.grace_ms),
        ("processes", "2", lambda c: c.processes),
        ("tls_cert", "server.pem", lambda c: c.tls_cert),
        ("tls_key", "server.key", lambda c: c.tls_key),
        ("tls_client_ca", "clients.pem", lambda c: c.tls_client_ca),
        ("reflection", "1", lambda c: c.reflection),
        ("insecure", "1", lambda c: c.insecure),
        ("auth", "keys", lambda c: c.auth),
        ("keys_check", "1s", lambda c: c.settings.keys_check_ms),
        ("http_hosts", "kagzi.example.com, [::2]", lambda c: c.http_hosts),
        ("http_base_path", "/kagzi/", lambda c: c.http_base_path),
        ("http_proxies", "10.0.0.7, fd00::/8", lambda c: c.http_proxies),
        ("otlp", "http://collector:4318", lambda c: c.otlp),
        ("public_url", "https://kagzi.example.com/k/", lambda c: c.public_url),
        ("trace_url", "https://traces.example.com/{trace_id}", lambda c: c.trace_url),
        ("outbox", "postgresql://shop/shop", lambda c: c.outbox),
        ("outbox_namespaces", "shop, Billing", lambda c: c.outbox_namespaces),
        ("trace_max_age", "1d", lambda c: c.settings.trace_max_age_ms),
        ("no_migrate", "yes", lambda c: c.no_migrate),
    ],
)
def test_every_setting_is_real_in_every_place(tmp_path: Path, name: str, text: str, read: Any) -> None:
    around = {"KAGZI_DB": "postgresql://pooler/kagzi"} if name.startswith("db_") else {}
    if name == "outbox_namespaces":
        around = {"KAGZI_OUTBOX": "postgresql://shop/shop"}
    before = read(load(tmp_path, around))
    by_flag = read(load(tmp_path, around, **{name: text}))
    by_environment = read(load(tmp_path, {**around, f"KAGZI_{name.upper()}": text}))
    (tmp_path / "kagzi.toml").write_text(f'{name.replace("_", "-")} = "{text}"\n')
    by_file = read(load(tmp_path, around))
    assert by_flag == by_environment == by_file != before


def test_the_table_above_is_complete() -> None:
    listed = test_every_setting_is_real_in_every_place.pytestmark[0].args[1]  # type: ignore[attr-defined]
    assert [row[0] for row in listed] == list(SETTING_NAMES)


def test_options_of_postgresql_also_go_to_the_url_past_the_pooler(tmp_path: Path) -> None:
    urls = {"db": "postgresql://pooler/kagzi", "db_direct": "postgresql://database/kagzi"}
    config = load(tmp_path, **urls, db_schema="kagzi")
    assert (config.db, config.db_direct) == tuple(f"{url}?schema=kagzi" for url in urls.values())


def test_http_can_be_off(tmp_path: Path) -> None:
    assert load(tmp_path, http="off").http is None
    (tmp_path / "kagzi.toml").write_text("http = false\n")
    assert load(tmp_path).http is None


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"lease": "15"}, ["lease", "no unit", '"15s"']),
        ({"lease": 15}, ["lease", "no unit"]),
        ({"lease": "0s"}, ["lease", "more than zero"]),
        ({"heartbeat": "10s"}, ["heartbeat", "half of lease"]),
        ({"listen": "50051"}, ["listen", "HOST:PORT"]),
        ({"listen": "127.0.0.1:99999"}, ["listen"]),
        ({"listen": ":50051"}, ["listen"]),
        ({"http": "nonsense"}, ["http", "HOST:PORT"]),
        ({"db": "mysql://x"}, ["db", "postgresql://"]),
        ({"db": "sqlite://x.db"}, ["db", "sqlite:///"]),
        ({"db_direct": "postgresql://database/kagzi"}, ["db_direct", "pooler"]),
        ({"db_schema": "kagzi"}, ["db_schema", "for PostgreSQL"]),
        ({"db": "postgresql://h/d", "db_schema": "My"}, ["db_schema='My'", "a-z"]),
        ({"db": "postgresql://h/d", "db_pool_size": "7"}, ["db_pool_size='7'", "from 8 to 200"]),
        ({"db": "postgresql://h/d?lock_timeout=1s", "db_lock_timeout": "2s"}, ["db_lock_timeout", "contradicts"]),
        ({"payload_bytes": "99999999"}, ["payload_bytes", "2097152"]),
        ({"unread_total_bytes": "0"}, ["unread_total_bytes", "1.."]),
        ({"insecure": "perhaps"}, ["insecure"]),
        ({"auth": "password"}, ["auth", "keys or off"]),
        ({"keys_check": "4s"}, ["keys_check", "3333ms", "10 s"]),
        ({"http_hosts": "https://kagzi"}, ["http_hosts", "without port and path"]),
        ({"http_base_path": "kagzi"}, ["http_base_path", "/kagzi"]),
        ({"http_base_path": '/"><script>'}, ["http_base_path", "a-z"]),
        ({"http_base_path": "/runs"}, ["http_base_path", "path of its own"]),
        ({"http_proxies": "nginx"}, ["http_proxies", "'nginx'", "10.0.0.0/8"]),
        ({"otlp": "collector:4318"}, ["otlp='collector:4318'", "http://"]),
        ({"public_url": "kagzi.example.com"}, ["public_url='kagzi.example.com'", "https://kagzi.example.com"]),
        ({"public_url": "https://kagzi.example.com/?a=1"}, ["public_url", "without a query"]),
        ({"trace_url": "https://traces.example.com/"}, ["trace_url", "{trace_id}"]),
        ({"outbox": "sqlite:///shop.db"}, ["outbox", "PostgreSQL"]),
        ({"outbox_namespaces": "shop"}, ["outbox_namespaces", "Give outbox"]),
        ({"outbox": "postgresql://shop/shop", "outbox_namespaces": "shop,,"}, ["outbox_namespaces", "empty name"]),
        ({"otlp": "http://"}, ["otlp='http://'", "http://collector:4318"]),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(tmp_path: Path, flags: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        load(tmp_path, **flags)
    for word in words:
        assert word in str(refusal.value)


def test_an_unknown_key_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "kagzi.toml").write_text('listne = "127.0.0.1:1"\n')
    with pytest.raises(InvalidArgument, match=r"kagzi\.toml: unknown setting 'listne'. Did you mean 'listen'\?"):
        load(tmp_path)
    (tmp_path / "kagzi.toml").write_text("zzz = 1\n")
    with pytest.raises(InvalidArgument, match="Known are: auth, claim_cap"):
        load(tmp_path)


def test_keys_of_other_commands_in_the_same_table_are_left_to_them(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.kagzi]\naddress = "a:1"\nnamespace = "n"\n[tool.other]\nx = 1\n')
    assert load(tmp_path) == ServerConfig()


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    (tmp_path / "kagzi.toml").write_text("= nonsense")
    with pytest.raises(InvalidArgument, match=r"kagzi\.toml"):
        load(tmp_path)


@pytest.mark.parametrize("address", ["0.0.0.0:50051", "[::]:50051", "192.168.1.5:1", "example.com:1"])
def test_a_public_address_needs_an_explicit_option(address: str) -> None:
    public = parse_listen(address, field="listen")
    with pytest.raises(CannotStart, match=r"--listen .*kagzi keys create .*--auth keys.*TLS.*--insecure"):
        ServerConfig(listen=public).refuse_unprotected()
    with pytest.raises(CannotStart, match=r"--http .*--insecure"):
        ServerConfig(http=public).refuse_unprotected()
    ServerConfig(listen=public, http=public, insecure=True).refuse_unprotected()
    keyed = ServerConfig(listen=public, http=public, auth=AUTH_KEYS)
    keyed.refuse_unprotected()
    assert keyed.keys_in_clear == (f"--listen {public}", f"--http {public}")
    assert not ServerConfig(listen=public, auth=AUTH_KEYS, tls_cert="c").keys_in_clear
    assert not ServerConfig(auth=AUTH_KEYS).keys_in_clear


@pytest.mark.parametrize("address", ["127.0.0.1:1", "localhost:1", "[::1]:1", "127.5.5.5:1", "unix:/run/kagzi.sock"])
def test_a_local_address_needs_nothing(address: str) -> None:
    ServerConfig(listen=parse_listen(address, field="listen"), http=None).refuse_unprotected()


def test_database_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_database(":memory:") == SqliteDatabase(None)
    assert parse_database("sqlite:///a/b.db") == SqliteDatabase(tmp_path / "a" / "b.db")
    assert parse_database("sqlite:////a/b%20c.db") == SqliteDatabase(Path("/a/b c.db"))
    for url in ("postgres://u@h/d", "postgresql://user:@/db?host=/dir"):
        assert parse_database(url) == PostgresDatabase(url)


@pytest.mark.parametrize(
    "url", ["postgresql://u:hunter2@h:5/d", "postgresql://u@h/d?password=hunter2&x=1", "postgres://:hunter2@/d"]
)
def test_passwords_are_not_shown(url: str) -> None:
    assert "hunter2" not in mask(url)
    assert "***" in mask(url)
    with pytest.raises(InvalidArgument) as refusal:
        parse_database(url.replace("postgres", "oracle"))
    assert "hunter2" not in str(refusal.value)


SPECIAL = "/?#@[]:%& =\\'\"\uff0f"


@pytest.mark.parametrize("scheme", ["postgresql://", "postgres:", "oracle://", ""])
def test_no_character_of_a_password_makes_it_visible(scheme: str) -> None:
    for first, second in itertools.product(SPECIAL, repeat=2):
        url = f"{scheme}user:topsecret{first}hushhush{second}hideaway@localhost:1/db"
        shown = "".join(traceback.format_exception(refusal)) if (refusal := refusal_of(url)) else mask(url)
        assert not any(piece in shown for piece in ("topsecret", "hushhush", "hideaway")), url


def refusal_of(url: str) -> InvalidArgument | None:
    try:
        parse_database(url)
    except InvalidArgument as refusal:
        return refusal
    return None


def test_a_url_that_cannot_be_read_says_how_to_write_it() -> None:
    words = r"^db_direct .*Percent-encode .*: / as %2F, \? as %3F, # as %23"
    with pytest.raises(InvalidArgument, match=words):
        parse_database("postgresql://user:a/b@host/db", field="db_direct")
    url = "postgresql://user:a%2Fb@host/db"
    assert parse_database(url) == PostgresDatabase(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://",
        "postgresql:///db?host=/run/postgresql&port=5433",
        "postgresql://user@/db?host=%2Frun%2Fpostgresql",
        "postgresql://u:p%40w@[::1]:5432,db2:5433/kagzi?sslmode=verify-full&sslrootcert=/etc/ca.pem",
        "postgresql://server/db?user=name@tenant&password=a@b",
        "postgresql://server/db?pgbouncer=true",
        "postgresql://server/db?options=-c%20search_path%3Dkagzi",
    ],
)
def test_urls_as_libpq_reads_them_are_taken(url: str) -> None:
    assert parse_database(url) == PostgresDatabase(url)


def test_masking_leaves_the_rest_alone() -> None:
    assert mask("postgresql://u@/db?host=/dir&port=1") == "postgresql://u@/db?host=/dir&port=1"
    assert str(ListenAddress("::1", 5)) == "[::1]:5"


def test_small_answers_are_sent_at_once() -> None:
    """asyncio turns off Nagle's algorithm on sockets that say that they are of TCP: else each answer takes 40 ms."""
    bound = bind(ListenAddress("127.0.0.1", 0), field="http")
    assert bound.proto == socket.IPPROTO_TCP
    bound.close()
