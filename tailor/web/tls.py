"""The certificate and its key, checked before the server starts."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from tailor.errors import InputError


@dataclass(frozen=True)
class TlsFiles:
    """PEM files: the certificate, with the chain that leads to it, and its private key."""

    certificate: Path
    key: Path


def tls_files(certificate: Path | None, key: Path | None) -> TlsFiles | None:
    """None where neither is given. Raises InputError where one is missing or can't be used."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise InputError("--tls-certificate and --tls-key belong together: give both, or neither")
    for option, path in (("--tls-certificate", certificate), ("--tls-key", key)):
        if not path.is_file():
            raise InputError(f"{option} {path}: there is no such file")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, password=_refuse_to_ask)
    except (ssl.SSLError, OSError) as error:
        raise InputError(
            f"{certificate} and {key} can't be used for TLS: {error}. Both must be PEM files, and "
            "the key must be the certificate's"
        ) from error
    return TlsFiles(certificate, key)


def _refuse_to_ask() -> str:
    raise InputError(
        "the key of --tls-key is locked by a passphrase: a server can't ask for it. Give a key "
        "without one, readable by you alone"
    )
