"""One thread, one seed and nothing compiled: a test is the same in every run and order."""

import gc
import itertools
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, settings

from notebook_probe.home import HOME
from notebook_probe.probes.step import budget
from notebook_probe.run.begin import provenance

pytest_plugins = ["tests.pace.dealing", "tests.pace.plugin", "tests.processes"]

torch.set_num_threads(1)

# Checks of addresses in JSON schemas, which no test asks for: 38 grammars are compiled at import.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# Thousands of small records are written and removed: on a disk that takes a third of the time.
MEMORY, ROOM = Path("/dev/shm"), 4 << 30
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("TMPDIR", str(MEMORY))
    tempfile.tempdir = None  # asked for again

# Where records are is noted in the user's own folder: here in one of the tests' own, by whatever
# processes they begin, too.
_home = TemporaryDirectory(prefix="notebook-probe-home-", ignore_cleanup_errors=True)
os.environ[HOME] = _home.name

_numbers = itertools.count()
"""Numbers of the folders of tests."""

# A busy machine is slow at times; how long an example takes says nothing about its truth.
settings.register_profile(
    "project", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("project")


SEARCH_AFTER = 400
"""Tests after which everything that is still in memory is taken out of searches for garbage."""
RUNS = Path("runs").absolute()
"""Folder of the records that are given no store, in the folder where the tests are started."""
DONE = pytest.StashKey[Iterator[int]]()


LONGEST_ID = 60
"""Characters of a parameter that are part of a case's name: some parameters are whole programs."""


def pytest_make_parametrize_id(val: object) -> str | None:
    """Return the beginning of a long parameter; pytest numbers those that begin alike."""
    if isinstance(val, bytes):
        val = val.decode("ascii", "backslashreplace")
    if isinstance(val, str | int) and len(name := str(val)) > LONGEST_ID:
        return name[:LONGEST_ID].encode("unicode_escape").decode("ascii") + "..."
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Hardly search for garbage between imports, of which everything stays."""
    before = gc.get_threshold()
    gc.set_threshold(1_000_000)  # not off: dask would leave it off, for good, where it was imported
    try:
        return (yield)
    finally:
        gc.set_threshold(*before)


def pytest_collection_finish() -> None:
    """What has been imported stays: the collector need not go through it again and again."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Fail a test that leaves records where tests are started: the next one would find them."""
    was_there = RUNS.exists()
    yield
    if RUNS.exists() and not was_there:
        pytest.fail(f"{RUNS} was made; record with store=tmp_path / 'run.zarr'", pytrace=False)


@pytest.hookimpl(trylast=True)  # after what the file's tests share is gone
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Now and then, leave out of later searches for garbage what modules and reports keep.

    Towards the end of the session one search took 0.2 s, and tests ask for dozens.
    """
    done = item.session.stash.setdefault(DONE, itertools.count(1))
    if next(done) >= SEARCH_AFTER and (nextitem is None or nextitem.path != item.path):
        item.session.stash[DONE] = itertools.count(1)
        gc.collect()
        gc.freeze()


def pytest_unconfigure() -> None:
    _home.cleanup()


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A new folder. pytest's own fixture lists the folders of all earlier tests each time."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / "cases" / f"{name}{next(_numbers)}"
    folder.mkdir(0o700, parents=True)
    return folder


@pytest.fixture(autouse=True, scope="session")
def no_seed_is_kept_for_a_device_that_is_absent() -> Iterator[None]:
    """`torch.manual_seed` stores each call, with its stack, for a device that is never used."""
    devices = [getattr(torch, name) for name in ("cuda", "xpu", "mtia") if hasattr(torch, name)]
    with pytest.MonkeyPatch.context() as patch:
        for absent in (device for device in devices if not device.is_available()):
            patch.setattr(absent, "manual_seed_all", lambda seed: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def first_steps_are_measured_whole() -> Iterator[None]:
    """Whatever they cost: which steps a budget leaves out of small models depends on the machine.

    Tests of the budget take this back, with `budget_from_the_first_step`.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budget, "WHOLE_S", float("inf"))
        yield


@pytest.fixture
def budget_from_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step is measured whole, as of a model that is large."""
    monkeypatch.setattr(budget, "WHOLE_S", 0.0)


@pytest.fixture(autouse=True, scope="session")
def git_is_asked_once() -> Iterator[None]:
    """Of the project's own state: a process for each of thousands of runs takes minutes."""
    ask, known, here = provenance.git_state, dict[str, dict[str, Any]](), str(Path.cwd())

    def once() -> dict[str, Any]:
        if str(Path.cwd()) != here:
            return ask()
        if here not in known:
            known[here] = ask()
        return known[here]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provenance, "git_state", once)
        yield


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.default_generator.manual_seed(0)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(0)  # until then it keeps each call for later, with its stack


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    """Whether anything was compiled decides how a model is watched, in the whole process."""
    yield
    if "torch._dynamo" in sys.modules:  # which takes seconds to import
        torch._dynamo.reset()
        for kind in ("frames", "stats"):  # else each run looks for wrappers all through memory
            torch._dynamo.utils.counters[kind].clear()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """As in a kernel: a shell that starts the tests in its background has them ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
