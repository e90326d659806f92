"""Certificates made for a test: authorities, and what they issue, as PEM files."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_PEM = serialization.Encoding.PEM
_PKCS8 = serialization.PrivateFormat.PKCS8
_PLAIN = serialization.NoEncryption()


class Issued(NamedTuple):
    """Paths of a certificate and its key."""

    cert: str
    key: str


class Authority:
    """`path`: its own certificate."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        public = self._key.public_key()
        self._identifier = x509.SubjectKeyIdentifier.from_public_key(public)
        self._name = _common_name(name)
        certificate = (
            _builder(self._name, self._name, public, valid_for=timedelta(days=30))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(self._identifier, critical=False)
            .add_extension(_signs_certificates(), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.path = str(directory / f"{name}.pem")
        Path(self.path).write_bytes(certificate.public_bytes(_PEM))

    def issue(
        self, file: str, *, host: str = "localhost", valid_for: timedelta = timedelta(days=30), password: str = ""
    ) -> Issued:
        """A certificate for `host` and 127.0.0.1, in `file`.pem and `file`.key; another one each time."""
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.DNSName(host)]
        if host == "localhost":
            names.append(x509.IPAddress(ip_address("127.0.0.1")))
        certificate = (
            _builder(_common_name(host), self._name, key.public_key(), valid_for=valid_for)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(self._identifier), False)
            .sign(self._key, hashes.SHA256())
        )
        issued = Issued(str(self._directory / f"{file}.pem"), str(self._directory / f"{file}.key"))
        protection = serialization.BestAvailableEncryption(password.encode()) if password else _PLAIN
        Path(issued.cert).write_bytes(certificate.public_bytes(_PEM))
        Path(issued.key).write_bytes(key.private_bytes(_PEM, _PKCS8, protection))
        return issued


def serial_of(path: str) -> int:
    return x509.load_pem_x509_certificate(Path(path).read_bytes()).serial_number


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, *, valid_for: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=60))
        .not_valid_after(now + valid_for)
    )


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _signs_certificates() -> x509.KeyUsage:
    return x509.KeyUsage(
        key_cert_sign=True,
        crl_sign=True,
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
