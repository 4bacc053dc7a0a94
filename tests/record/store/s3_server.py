"""An S3 server of the tests' own, on the loopback, with one bucket."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.request import Request, urlopen

import pytest

from tools.group_env import folder_of, python_of

__all__ = ["BUCKET", "s3_server"]

BUCKET = "bucket"
PATIENCE_S = 60.0


@contextmanager
def s3_server() -> Iterator[str]:
    """Its endpoint; the server ends with the block."""
    python = python_of("s3")
    if not python.exists():
        pytest.fail(f"no {folder_of('s3').name}: run `python -m tools.group_env s3` first")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(python), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **quiet) as server:  # type: ignore[call-overload]
        try:
            endpoint = f"http://127.0.0.1:{port}"
            _make_bucket(f"{endpoint}/{BUCKET}", time.monotonic() + PATIENCE_S)
            yield endpoint
        finally:
            server.kill()


def _make_bucket(url: str, until: float) -> None:
    """As soon as the server answers."""
    while True:
        with suppress(ConnectionError, OSError):
            urlopen(Request(url, method="PUT"), timeout=PATIENCE_S).close()
            return
        assert time.monotonic() < until, "the S3 server does not answer"
        time.sleep(0.05)
