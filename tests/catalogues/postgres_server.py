"""A PostgreSQL server of the tests' own, on the loopback, gone with them."""

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


@contextmanager
def postgres_server(folder: Path) -> Iterator[str]:
    """Its URL; the server ends with the block."""
    found = shutil.which("initdb")
    programs = Path(found).parent if found else (PROGRAMS or [Path()])[-1]
    if not (programs / "initdb").exists():
        pytest.fail("no PostgreSQL here: apt-get install postgresql")
    folder.chmod(0o755)
    data = folder / "data"
    data.mkdir()
    other = _other_user()
    if other is not None:  # it refuses to be run by root
        os.chown(data, other.pw_uid, other.pw_gid)
        for above in folder.parents:
            above.chmod(above.stat().st_mode | 0o001)
    user = other.pw_name if other is not None else pwd.getpwuid(os.getuid()).pw_name

    def run(*command: str) -> None:
        with (folder / "log").open("ab") as log:
            subprocess.run(
                [str(programs / command[0]), *command[1:]],
                check=True,
                stdout=log,
                stderr=log,
                cwd="/",
                user=None if other is None else other.pw_uid,
                group=None if other is None else other.pw_gid,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            )

    port = _free_port()
    run("initdb", "-D", str(data), "-A", "trust", "-U", user, "-E", "UTF8", "--no-sync")
    options = (
        f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={data} -c fsync=off"
    )
    run("pg_ctl", "-D", str(data), "-o", options, "-l", str(data / "server.log"), "-w", "start")
    try:
        yield f"postgresql://{user}@127.0.0.1:{port}/postgres"
    finally:
        run("pg_ctl", "-D", str(data), "-m", "immediate", "stop")


def _other_user() -> pwd.struct_passwd | None:
    if os.getuid() != 0:
        return None
    known = {one.pw_name: one for one in pwd.getpwall()}
    return known.get("postgres") or known["nobody"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
