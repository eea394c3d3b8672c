"""The daemon's certificate for the listener that tailers on other machines use: self-signed, pinned by its readers."""

import os
import ssl
import subprocess

from mosaic.model import durable
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import StateRoot
from mosaic.wire.names import NODES_HOST

LARGEST = 64 << 10
DAYS = 36_500  # it is replaced with the root, not with time: a pinned certificate has no one else to vouch for it


def load_certificate(root: StateRoot) -> tuple[bytes, bytes]:
    """The private key and the certificate, as PEM; made at the first call and then kept."""
    try:
        pair = durable.read_bytes(root.nodes_key, LARGEST), durable.read_bytes(root.nodes_certificate, LARGEST)
        # gRPC does not say why it refuses a pair: it reports an address that cannot be bound.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(root.nodes_certificate, root.nodes_key, password="")
        return pair
    except FileNotFoundError:
        return _make(root)
    except OSError as error:  # an ssl.SSLError too
        why = "it is damaged" if isinstance(error, ssl.SSLError) else error.strerror
        raise MosaicError(
            f"{root.nodes_certificate} or its key cannot be used ({why}). Delete both; the next start makes new ones. "
            "Runs on other machines that are live then lose their connection."
        ) from None


def _make(root: StateRoot) -> tuple[bytes, bytes]:
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", str(DAYS), "-subj", f"/CN={NODES_HOST}", "-addext", f"subjectAltName=DNS:{NODES_HOST}"]
    # Both to stdout: the key is never in a file that others could open before its mode is set.
    command += ["-keyout", "/dev/stdout", "-out", "/dev/stdout"]
    try:
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/nonexistent"}
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, env=env)
    except FileNotFoundError:
        raise MosaicError("Runs on other machines need the program openssl, for a certificate. Install it.") from None
    except subprocess.TimeoutExpired:
        raise MosaicError("openssl made no certificate within 60 s. Try again.") from None
    key, certificate = _parts(done.stdout)
    if done.returncode or not key or not certificate:
        raise MosaicError(f"openssl made no certificate: {done.stderr.decode(errors='replace').strip()[-300:]}")
    durable.write_bytes(root.nodes_key, key, mode=0o600)
    durable.write_bytes(root.nodes_certificate, certificate, mode=0o600)
    return key, certificate


def _parts(text: bytes) -> tuple[bytes, bytes]:
    """The private key and the certificate in the output of openssl, in whatever order."""
    blocks = [b"-----BEGIN " + block.strip() + b"\n" for block in text.split(b"-----BEGIN ")[1:]]
    keys = [block for block in blocks if b"PRIVATE KEY" in block.partition(b"\n")[0]]
    certificates = [block for block in blocks if b"BEGIN CERTIFICATE" in block.partition(b"\n")[0]]
    return (keys or [b""])[0], (certificates or [b""])[0]
