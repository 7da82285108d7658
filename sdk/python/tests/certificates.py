"""Certificates for tests, made with the openssl program."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

# Of a curve: made in no time.
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True)
class Authority:
    """An authority that nobody trusts unless told to."""

    directory: Path

    @property
    def file(self) -> Path:
        return self.directory / "authority.pem"

    def server(self, names: str) -> ssl.SSLContext:
        """What a server of those names shows, as ``DNS:a.example,IP:127.0.0.1``."""
        stem = self.directory / names.replace(":", "-").replace(",", "-")
        ends = ("key", "request", "certificate", "extension")
        key, request, certificate, extension = (stem.with_name(f"{stem.name}.{e}") for e in ends)
        if not certificate.exists():
            extension.write_text(f"subjectAltName={names}\n")
            _make(*NEW_KEY, "-subj", "/CN=server", key=key, out=request)
            sign = ["x509", "-req", "-in", str(request), "-CA", str(self.file), "-days", "2"]
            sign += ["-CAkey", str(self.directory / "authority.key"), "-CAcreateserial"]
            _run(*sign, "-extfile", str(extension), "-out", str(certificate))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return context


def make_authority(directory: Path) -> Authority:
    authority = Authority(directory)
    options = ["-x509", *NEW_KEY, "-days", "2", "-subj", "/CN=authority"]
    _make(*options, key=directory / "authority.key", out=authority.file)
    return authority


def _make(*options: str, key: Path, out: Path) -> None:
    _run("req", *options, "-keyout", str(key), "-out", str(out))


def _run(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
