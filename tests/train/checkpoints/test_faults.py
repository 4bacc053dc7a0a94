"""Checkpoints that cannot be written or read, and trainings that are killed."""

import gc
import pickle
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn

import pytest
import torch

import notebook_probe as nbp
from notebook_probe.errors import CheckpointError, HookError
from notebook_probe.train import Checkpoints, Loop
from notebook_probe.train.checkpoints.places import CheckpointFolder
from tests.train.checkpoints.crash import Life
from tests.train.checkpoints.kinds import loop_of, same_state
from tests.train.conftest import a_loop, batches


@pytest.mark.slow
@pytest.mark.parametrize(
    "n_lives", [2, pytest.param(30, marks=[pytest.mark.crash, pytest.mark.timeout(900)])]
)
def test_a_save_that_is_killed_leaves_the_last_good_one(tmp_path: Path, n_lives: int) -> None:
    folder, moments = tmp_path / "kept", random.Random(5)
    for _ in range(n_lives):
        life = Life(folder)
        reached = -1 if not folder.exists() else loaded(folder)[0].loop_step
        life.wait_for(reached + 1 + moments.randrange(20))
        told = life.kill()
        loop, data = loaded(folder)
        assert loop.loop_step >= told
        assert len(loop.checkpoints) in (3, 4)  # the killed one had not removed the oldest, perhaps
    whole, data = loop_of("mlp", scheduler=None)
    whole.on_step(lambda whole, m: whole.stop() if whole.n_updates == loop.loop_step else None)
    whole.run_epochs(data, 10**6)
    assert same_state(loop.trainer.state_dict(), whole.trainer.state_dict())


def loaded(folder: Path) -> tuple[Loop, Any]:
    loop, data = loop_of("mlp", seed=1, scheduler=None)
    loop.load_checkpoint(folder)
    return loop, data


@contextmanager
def full_disk(n_bytes: int) -> Iterator[None]:
    """No file grows beyond that; the system says so as it does of a full disk."""
    resource = pytest.importorskip("resource")
    gc.collect()  # runs that earlier tests have dropped end now, while they can write
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_ends_the_training_with_one_error_and_leaves_the_last_good_one(
    tmp_path: Path,
) -> None:
    loop = a_loop()
    loop.add(Checkpoints(tmp_path, every=2))
    loop.run_steps(batches(2), 2)
    with (
        full_disk(5000),
        pytest.raises(
            HookError,
            match=r"step 4 was not written to .*File too large; earlier ones are unchanged",
        ),
    ):
        loop.run_epochs(batches(9), 1)
    assert loop.loop_step == 6  # the next save has raised it
    assert [one.step for one in loop.checkpoints] == [2]
    assert not (tmp_path / ".partial").exists()
    again = a_loop()
    again.load_checkpoint(tmp_path)
    assert again.loop_step == 2
    loop.save_checkpoint(tmp_path)  # there is room again
    assert [one.step for one in loop.checkpoints] == [2, 6]


class Interrupting:
    """A file that is interrupted while its second part is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._n = 0

    def write(self, part: bytes) -> int:
        self._n += 1
        if self._n == 2:
            signal.raise_signal(signal.SIGINT)
        return self._file.write(part)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_a_file_is_written_is_one_and_leaves_the_last_good_file(
    tmp_path: Path,
) -> None:
    """Within `torch.save` it became a RuntimeError, or ended the process."""
    place = CheckpointFolder(tmp_path)
    state = {f"{k}": torch.full((50,), float(k)) for k in range(4)}
    place.write("good.pt", lambda file: torch.save(state, file))
    with pytest.raises(KeyboardInterrupt):
        place.write("good.pt", lambda file: torch.save({}, Interrupting(file)))
    assert place.names() == {"good.pt"}
    with place.open("good.pt") as file:
        assert same_state(torch.load(file, weights_only=True), state)


def interrupted_without_gradients(*given: object, **named: object) -> NoReturn:
    """Raise an interrupt that leaves gradients off, as one within ``no_grad()`` may."""
    torch.set_grad_enabled(False)
    raise KeyboardInterrupt


GUARDED = {
    "load": (lambda loop, place: loop.load_checkpoint(place), "load_state_dict"),
    "save": (lambda loop, place: loop.save_checkpoint(place), "state_dict"),
    "rewind": (lambda loop, place: loop.rewind(2), "load_state_dict"),
    "run": (lambda loop, place: loop.run_steps(batches(4), 1), "forward"),
}


@pytest.mark.parametrize("door", GUARDED)
def test_an_interrupt_that_leaves_the_gradient_mode_off_is_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    loop, (act, method) = a_loop(), GUARDED[door]
    loop.run_steps(batches(4), 2)
    loop.save_checkpoint(tmp_path)
    monkeypatch.setattr(loop.trainer.model, method, interrupted_without_gradients)
    with pytest.raises(KeyboardInterrupt):
        act(loop, tmp_path)
    assert torch.is_grad_enabled()


def test_a_place_that_cannot_be_written_is_refused_before_a_step(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    loop = a_loop()
    loop.add(Checkpoints(tmp_path / "file" / "kept"))
    with pytest.raises(HookError, match="file/kept cannot be written: NotADirectoryError"):
        loop.run_steps(batches(1), 1)
    assert loop.loop_step == 0


class Payload:
    def __reduce__(self) -> Any:
        return exec, ("raise SystemExit('the code was run')",)


@pytest.mark.parametrize("place", ["whole", "inside"])
def test_the_code_of_a_foreign_file_is_not_run(tmp_path: Path, place: str) -> None:
    loop, file = a_loop(), tmp_path / "step_00000000.pt"
    loop.save_checkpoint(tmp_path)
    if place == "whole":
        file.write_bytes(pickle.dumps(Payload()))
    else:
        state = torch.load(file, weights_only=True)
        torch.save({**state, "objects": {"ema": Payload()}}, file)
    with pytest.raises(CheckpointError, match=r"step_00000000.pt cannot be read as a checkpoint"):
        loop.load_checkpoint(tmp_path)


def test_an_unreadable_file_is_named_without_advice_to_run_its_code(tmp_path: Path) -> None:
    loop = a_loop()
    loop.save_checkpoint(tmp_path)
    (tmp_path / "step_00000000.pt").write_bytes(b"no zip file")
    with pytest.raises(CheckpointError, match="Weights only load failed") as caught:
        loop.load_checkpoint(tmp_path)
    assert "weights_only" not in str(caught.value)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_named(tmp_path: Path, share: float) -> None:
    loop, file = a_loop(), tmp_path / "step_00000000.pt"
    loop.save_checkpoint(tmp_path)
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    before = loop.trainer.state_dict()
    with pytest.raises(CheckpointError, match=r"step_00000000.pt cannot be read as a checkpoint"):
        loop.load_checkpoint(tmp_path)
    assert same_state(loop.trainer.state_dict(), before)


def test_what_is_no_checkpoint_of_a_loop_is_told_so(tmp_path: Path) -> None:
    loop = a_loop()
    torch.save(loop.trainer.model.state_dict(), tmp_path / "weights.pt")
    with pytest.raises(CheckpointError, match=r"weights.pt is no checkpoint of a loop; weights al"):
        loop.load_checkpoint(tmp_path / "weights.pt")
    with pytest.raises(CheckpointError, match=r"no checkpoint in .*; there are: none"):
        loop.load_checkpoint(tmp_path)
    loop.save_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match=r"no checkpoint of step 7 in .*; there are: 0"):
        loop.load_checkpoint(tmp_path, 7)


@pytest.mark.parametrize("content", ["{", "[]", '{"checkpoints": [{"file": "../a"}], "lines": []}'])
def test_a_list_that_is_none_is_named(tmp_path: Path, content: str) -> None:
    loop = a_loop()
    loop.save_checkpoint(tmp_path)
    (tmp_path / "checkpoints.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"checkpoints.json is no list of checkpoints"):
        loop.load_checkpoint(tmp_path)


def test_what_only_code_could_read_back_is_refused_as_it_is_saved(tmp_path: Path) -> None:
    class Odd:
        def state_dict(self) -> Any:
            return {"rule": [1, {"f": Path("x")}]}

        def load_state_dict(self, state: Any) -> None: ...

    loop = a_loop()
    loop.register_state("odd", Odd())
    with pytest.raises(CheckpointError, match=r"objects.odd.rule\[1\].f is PosixPath"):
        loop.save_checkpoint(tmp_path)
    assert not any(tmp_path.iterdir())


def test_a_state_whose_loss_is_no_number_is_not_saved(tmp_path: Path) -> None:
    data = batches(5)
    data[3][1].fill_(7)
    loop = a_loop(loss_fn=lambda p, y: p.sum() * (float("nan") if int(y[0]) == 7 else 1.0))
    loop.add(Checkpoints(tmp_path, every=1, keep_last=1, at_close=True))
    with pytest.raises(nbp.NanLossError):
        loop.run_epochs(data, 1)
    assert [one.step for one in loop.checkpoints] == [3]
