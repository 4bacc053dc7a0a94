"""Which checkpoints there are, which stay, and what of one is loaded."""

import os
import signal
import threading
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import notebook_probe as nbp
from notebook_probe.errors import CheckpointError, HookError
from notebook_probe.record.store.location import Location
from notebook_probe.train import Checkpoint, Checkpoints, Loop
from notebook_probe.train.checkpoints.index import CheckpointIndex
from notebook_probe.train.checkpoints.keeping import Keep
from notebook_probe.train.checkpoints.memory import Memory
from notebook_probe.train.checkpoints.plain import copied
from notebook_probe.train.metrics.metrics import Metrics
from tests.train.checkpoints.kinds import same_state
from tests.train.conftest import a_loop, batches

pytestmark = pytest.mark.filterwarnings("error")


def steps(loop: Loop) -> list[int]:
    return [one.step for one in loop.checkpoints]


def evaluated(loop: Loop, values: dict[int, float]) -> None:
    """Have an evaluation after some steps give these losses."""

    def evaluate(loop: Loop, metrics: Any) -> None:
        if loop.n_updates in values:
            loop.trainer.eval = lambda data: Metrics(loss=values[loop.n_updates])  # type: ignore[method-assign]
            loop.eval(batches(1))

    loop.on_step(evaluate)


def test_they_are_of_the_states_that_are_due_and_know_what_was_reported_of_them(
    tmp_path: Path,
) -> None:
    loop = a_loop()
    losses: list[float] = []
    loop.on_step(lambda loop, metrics: losses.append(float(metrics["loss"])))
    evaluated(loop, {4: 0.5})
    loop.add(Checkpoints(tmp_path, every=2))
    loop.run_epochs(batches(5), 1)
    assert steps(loop) == [2, 4]
    first, second = loop.checkpoints
    assert Path(first.path) == tmp_path / "step_00000002.pt"
    assert first.metrics["loss"] == losses[1]
    assert "eval_loss" not in first.metrics
    assert second.metrics["eval_loss"] == 0.5


class Unknown:
    """Batches of which nobody knows how many there are."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __iter__(self) -> Any:
        return iter(self._data)


@pytest.mark.parametrize(
    ("every", "expected"),
    [
        ("times(3)", [2, 4, 6]),
        ("geometric(1, 2)", [1, 3]),
        ("seconds(0)", [2, 3, 4, 5, 6]),
        (nbp.include_last(nbp.Every(4)), [4, 6]),
    ],
)
@pytest.mark.parametrize("is_known", [True, False])
def test_every_schedule_means_states(
    tmp_path: Path, every: Any, expected: list[int], is_known: bool
) -> None:
    loop, data = a_loop(), batches(6)
    loop.add(Checkpoints(tmp_path, every=every))
    loop.run_epochs(data if is_known else Unknown(data), 1)
    if is_known or every != "times(3)":  # of an end that nobody knows: at the end
        assert steps(loop) == expected
    else:
        assert steps(loop)[-1] == 6


def test_the_last_and_the_best_stay(tmp_path: Path) -> None:
    loop = a_loop()
    evaluated(loop, {1: 3.0, 2: 0.1, 3: float("nan"), 5: 1.0, 6: 2.0, 7: 4.0})
    loop.add(Checkpoints(tmp_path, every=1, keep_last=2, keep_best=("eval_loss", "min", 2)))
    loop.run_epochs(batches(7), 1)
    assert steps(loop) == [2, 5, 6, 7]
    assert {path.name for path in tmp_path.iterdir()} == {
        *(f"step_0000000{k}.pt" for k in (2, 5, 6, 7)),
        "checkpoints.json",
    }


def test_the_best_alone_stay_with_the_newest(tmp_path: Path) -> None:
    loop = a_loop()
    evaluated(loop, dict(enumerate([0.0, 3.0, 5.0, 4.0, 1.0])))
    loop.add(Checkpoints(tmp_path, every=1, keep_best=("eval_loss", "max", 1)))
    loop.run_epochs(batches(4), 1)
    assert steps(loop) == [2, 4]


def test_a_metric_that_is_never_there_is_told(tmp_path: Path) -> None:
    loop = a_loop()
    loop.add(Checkpoints(tmp_path, every=1, keep_best=("val_loss", "min", 1)))
    with pytest.warns(UserWarning, match="no value of 'val_loss' at the steps that were saved"):
        loop.run_epochs(batches(2), 1)


def test_what_was_not_saved_by_rule_is_never_removed(tmp_path: Path) -> None:
    (tmp_path / "step_00000002.pt").write_text("mine")
    (tmp_path / "notes.txt").write_text("mine")
    loop = a_loop()
    loop.save_checkpoint(tmp_path)
    loop.add(Checkpoints(tmp_path, every=1, keep_last=1))
    loop.run_epochs(batches(4), 1)
    loop.save_checkpoint(tmp_path / "other")
    assert steps(loop) == [0, 4, 4]
    assert {path.name for path in tmp_path.iterdir()} == {
        "step_00000000.pt", "step_00000004.pt", "checkpoints.json", "notes.txt", "other",
        "step_00000002.pt",
    }  # fmt: skip
    assert (tmp_path / "step_00000002.pt").read_text() == "mine"


@given(
    values=st.lists(st.floats(-5, 5) | st.just(float("nan")), min_size=1, max_size=8),
    last=st.none() | st.integers(1, 4),
    n=st.integers(1, 4),
    which=st.sampled_from(["min", "max"]),
)
def test_what_stays_is_what_brute_force_says(
    values: list[float], last: int | None, n: int, which: Any
) -> None:
    saved = [Checkpoint(k, f"{k}.pt", {"a": value}) for k, value in enumerate(values)]
    stays = {one.step for one in saved} - {
        one.step for one in Keep(last, ("a", which, n)).gone(saved)
    }
    better = (lambda a, b: a < b) if which == "min" else (lambda a, b: a > b)
    for one in saved:
        value = one.metrics["a"]
        before = sum(
            better(other.metrics["a"], value)
            or (other.metrics["a"] == value and other.step < one.step)
            for other in saved
        )
        is_best = value == value and before < n
        assert (one.step in stays) == (is_best or one.step >= len(saved) - (last or 1))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"keep_last": 0}, "keep_last=0; allowed: a whole number from 1, or None"),
        ({"keep_last": True}, "keep_last=True"),
        ({"keep_best": "eval_loss"}, r"keep_best='eval_loss'; allowed: \(name, \"min\" or \"max\""),
        ({"keep_best": ("a", "least", 1)}, "keep_best="),
        ({"keep_best": ("a", "min", 0)}, "keep_best="),
        ({"every": "now and then"}, "does not parse"),
    ],
)
def test_rules_that_cannot_be_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Checkpoints("kept", **options)


# -------------------------------------------------------------------- how a run of the loop ends


def stop(loop: Loop) -> None:
    loop.stop()


def interrupt(loop: Loop) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def fail(loop: Loop) -> None:
    raise OSError("something else")


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("end", [None, stop, interrupt, fail])
def test_the_last_state_is_there_however_it_ends(
    tmp_path: Path, end: Callable[[Loop], None] | None
) -> None:
    data = batches(7)
    torch.manual_seed(0)
    loop = a_loop()
    loop.add(Checkpoints(tmp_path, every=5, at_close=True))
    if end is not None:
        loop.on_step(lambda loop, m: end(loop) if loop.loop_step == 2 else None)
    with pytest.raises(HookError, match="something else") if end is fail else nullcontext():
        loop.run_epochs(data, 1)
    assert steps(loop) == ([5, 7] if end is None else [3])
    resumed = a_loop()
    resumed.load_checkpoint(tmp_path)
    resumed.run_epochs(data, 1)
    torch.manual_seed(0)
    whole = a_loop()
    whole.run_epochs(data, 1)
    assert same_state(resumed.trainer.state_dict(), whole.trainer.state_dict())


# -------------------------------------------------------------------- in the background


def test_training_goes_on_while_a_copy_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_write, save, written = threading.Event(), torch.save, []

    def slow(state: Any, file: Any) -> None:
        assert may_write.wait(30)
        written.append(state["trainer"]["model"]["0.weight"].clone())
        save(state, file)

    monkeypatch.setattr(torch, "save", slow)
    loop = a_loop()
    at_2: list[Any] = []

    def look(loop: Loop, metrics: Any) -> None:
        if loop.n_updates == 2:
            at_2.append(loop.trainer.model.get_parameter("0.weight").detach().clone())
        if loop.n_updates == 4:
            assert not written  # three steps after it was saved
            may_write.set()

    loop.on_step(look)
    loop.add(Checkpoints(tmp_path, every=2))
    loop.run_epochs(batches(4), 1)
    assert torch.equal(written[0], at_2[0])
    assert steps(loop) == [2, 4]


class Written(TorchDispatchMode):
    """Counts the bytes that operations write."""

    def __init__(self) -> None:
        super().__init__()
        self.n_bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and not func.is_view:
            self.n_bytes += out.nbytes
        return out


def test_training_waits_for_one_copy_of_its_tensors(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 5000), nn.Linear(5000, 2))
    loop = a_loop(model=model)
    loop.run_steps(batches(1), 1)
    n_bytes = 3 * sum(value.nbytes for value in model.parameters())  # AdamW has two of each
    with Written() as written:
        loop.save_checkpoint(tmp_path, background=True)
    assert n_bytes <= written.n_bytes <= n_bytes + 40_000  # generators, counters
    loop.kept.wait()


def test_the_next_copy_lies_where_the_last_one_lay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, places, held = torch.save, [], []

    def look(state: Any, file: Any) -> None:
        weights = state["trainer"]["model"]
        places.append({name: value.data_ptr() for name, value in weights.items()})
        held.append(weakref.ref(weights["0.weight"]))
        save(state, file)

    monkeypatch.setattr(torch, "save", look)
    loop = a_loop()
    loop.add(Checkpoints(tmp_path, every=1))
    expected: list[Any] = []
    loop.on_step(lambda loop, metrics: expected.append(copied(loop.trainer.state_dict(), Memory())))
    loop.run_steps(batches(4), 4)
    first, *others = places
    assert others == [first] * 3
    assert all(one() is None for one in held), "none is kept once the loop has ended"
    for step, state in enumerate(expected, 1):
        path = tmp_path / f"step_{step:08d}.pt"
        assert same_state(torch.load(path, weights_only=True)["trainer"], state)


def test_memory_is_of_one_shape_and_layout() -> None:
    memory = Memory()
    wide = torch.arange(6.0).reshape(2, 3)
    first = [memory.copy(wide), memory.copy(wide)]
    assert first[0].data_ptr() != first[1].data_ptr(), "both are needed"
    memory.take_back()
    others = [wide.t(), wide.reshape(3, 2), wide.double(), wide[:, :2], wide + 1]
    copies = [memory.copy(other) for other in others]
    assert [any(copy is one for one in first) for copy in copies] == [False] * 4 + [True]
    for copy, other in zip(copies, others, strict=True):
        assert torch.equal(copy, other)
        assert copy.stride() == other.clone().stride()


def test_tied_weights_are_copied_once_and_stay_tied_in_the_file(tmp_path: Path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
            self.b.weight = self.a.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.as_tensor(self.b(self.a(x)))

    loop = a_loop(model=Tied())
    loop.save_checkpoint(tmp_path)
    state = torch.load(tmp_path / "step_00000000.pt", weights_only=True)["trainer"]["model"]
    assert state["a.weight"].data_ptr() == state["b.weight"].data_ptr()


# -------------------------------------------------------------------- where they lie


def test_objects_of_a_store_hold_them_as_files_do(tmp_path: Path) -> None:
    url = f"memory://{tmp_path.name}"
    loop, data = a_loop(), batches(6)
    loop.add(Checkpoints(url, every=2, keep_last=2))
    loop.run_epochs(data, 1)
    assert [one.path for one in loop.checkpoints] == [
        f"{url}/step_00000004.pt",
        f"{url}/step_00000006.pt",
    ]
    resumed = a_loop()
    assert resumed.load_checkpoint(url, 4).step == 4
    resumed.run_epochs(data, 1)
    assert same_state(resumed.trainer.state_dict(), loop.trainer.state_dict())


def test_a_zarr_store_holds_them_too() -> None:
    from zarr.storage import MemoryStore

    place: Location = MemoryStore()
    loop = a_loop()
    loop.save_checkpoint(place)
    assert a_loop().load_checkpoint(place).step == 0


def test_a_place_that_holds_no_files_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("icechunk")
    with pytest.raises(CheckpointError, match="cannot hold checkpoints; allowed: a folder, an obj"):
        a_loop().save_checkpoint(f"icechunk://{tmp_path}/repo")


# -------------------------------------------------------------------- lines


def test_a_training_that_goes_on_from_an_earlier_state_keeps_both_lines(tmp_path: Path) -> None:
    loop, data = a_loop(), batches(8)
    loop.add(Checkpoints(tmp_path, every=2))
    loop.run_epochs(data, 1)
    loop.load_checkpoint(tmp_path, 4)
    loop.on_step(lambda loop, m: loop.stop() if loop.n_updates == 6 else None)
    loop.run_epochs(data, 1)
    assert [(one.step, one.line, one.name) for one in loop.checkpoints] == [
        (2, 1, "step_00000002.pt"),
        (4, 1, "step_00000004.pt"),
        (6, 1, "step_00000006.pt"),
        (8, 1, "step_00000008.pt"),
        (6, 2, "step_00000006-2.pt"),
    ]
    assert a_loop().load_checkpoint(tmp_path).name == "step_00000006-2.pt"  # saved last


@given(st.data())
def test_the_ancestors_of_a_state_are_those_it_went_through(data: st.DataObject) -> None:
    index, states = CheckpointIndex(), [[(0, 0)]]  # of each line: its states as (line, step)
    for line in range(1, data.draw(st.integers(1, 4)) + 1):
        parent = data.draw(st.integers(0, line - 1))
        step = data.draw(st.integers(0, states[parent][-1][1])) if parent else 0
        index = index.begun(parent, step)
        own = [one for one in states[parent] if one[1] <= step] if parent else []
        for k in range(1, data.draw(st.integers(1, 4)) + 1):
            own = [*own, (line, step + k)]
            index = index.added(Checkpoint(step + k, f"/{line}-{step + k}", line=line))
        states.append(own)
        for one in range(1, line + 1):
            found = [(entry.line, entry.step) for entry in index.of_line(one)]
            assert found == states[one]
