"""What is saved of a watched model is, byte for byte, what is saved of one that nobody watches."""

from __future__ import annotations

import copy
import io
import pickle
import re
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.reduction import ForkingPickler
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer
from torch.optim.swa_utils import AveragedModel

from tests.models import ConvNet, Tagger, floats, loss_of, made, sgd, train_step
from tests.run.conftest import Watch

images = floats(4, 1, 6, 6)


def saved(whole: object) -> bytes:
    file = io.BytesIO()
    torch.save(whole, file)
    return file.getvalue()


def copied(whole: object) -> bytes:
    return saved(copy.deepcopy(whole))


def shallow(whole: object) -> bytes:
    return saved(copy.copy(whole))


def pickled(whole: object) -> bytes:
    return b"".join(_pickled(whole, pickle.Pickler, k) for k in range(pickle.HIGHEST_PROTOCOL + 1))


def pickled_in_python(whole: object) -> bytes:
    return _pickled(whole, pickle._Pickler, pickle.DEFAULT_PROTOCOL)


def _pickled(whole: object, kind: Any, protocol: int) -> bytes:
    """All but the tensors, which torch then calls by where they lie in memory."""
    file = io.BytesIO()
    pickler = type("Pickler", (kind,), {"persistent_id": _tensor_as_text})(file, protocol)
    pickler.dump(whole)
    return file.getvalue()


def _tensor_as_text(self: object, whole: object) -> str | None:
    return repr(whole) if isinstance(whole, Tensor) else None


def sent(whole: object) -> bytes:
    """To another process."""
    return bytes(ForkingPickler.dumps(whole))


def averaged(whole: object) -> bytes:
    assert isinstance(whole, nn.Module)
    return saved(AveragedModel(whole))


def in_parts(whole: object) -> bytes:
    assert isinstance(whole, nn.Module)
    return b"".join(saved(part) for part in whole.children())


def of_state(whole: object) -> bytes:
    assert isinstance(whole, nn.Module | Optimizer)
    return saved(whole.state_dict())


SAVED = [saved, copied, shallow, pickled, pickled_in_python, averaged, in_parts, of_state]
MOMENTS = ["before", "forward", "backward", "step", "closed"]


@contextmanager
def trained_until(moment: str, model: nn.Module) -> Iterator[Optimizer]:
    optimizer = Adam(model.parameters())
    if moment != "before":
        train_step(model, optimizer, images(0))
        loss = loss_of(model(images(1)))
        if moment != "forward":
            loss.backward()
            if moment != "backward":
                optimizer.step()
    yield optimizer


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_watched_model_is_saved_as_if_nobody_watched(moment: str, watch: Watch) -> None:
    """Also while hooks of a forward wait for its backward, with every kind of hook on."""
    plain, model = made(ConvNet), made(ConvNet)
    run = watch(model)
    other = watch(model, probes={"*": ["input_norm"]})
    run.attach("*", ["input_norm", "output_norm", "output_grad_norm"])
    with trained_until(moment, plain), trained_until(moment, model):
        if moment == "closed":
            run.close()
            other.close()
        different = [save.__name__ for save in SAVED if save(model) != save(plain)]
        assert different == []


@pytest.mark.slow
def test_an_optimizer_of_a_watched_model_is_saved_as_if_nobody_watched(watch: Watch) -> None:
    plain, model = made(ConvNet), made(ConvNet)
    watch(model).attach("*", "grad_norm")
    with trained_until("step", plain) as unwatched, trained_until("step", model) as optimizer:
        for save in (saved, copied, pickled, of_state):
            assert save(optimizer) == save(unwatched)


def test_a_model_sent_to_another_process_has_no_hook_of_ours(watch: Watch) -> None:
    """What is shared with it has a name of its own each time: tell what is named instead."""
    model = made(ConvNet)
    watch(model)
    train_step(model, sgd(model), images(0))
    message = sent(model)
    assert b"notebook_probe" not in message
    hooks = [one._forward_hooks for one in pickle.loads(message).modules()]
    assert not any(hooks)


def test_a_saved_model_loads_where_only_its_own_classes_are_allowed(watch: Watch) -> None:
    model = made(Tagger)
    watch(model)
    file = io.BytesIO(saved(model))
    own: list[Any] = [Tagger, nn.Embedding, nn.LSTM, nn.Linear, set]
    with torch.serialization.safe_globals(own):
        loaded = torch.load(file, weights_only=True)
    assert all(map(torch.equal, loaded.parameters(), model.parameters()))


class Listed(nn.Module):
    """Copies its hooks one by one into what is pickled."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x)

    def __getstate__(self) -> dict[str, Any]:
        kinds = ("_forward_hooks", "_forward_pre_hooks")
        return {**vars(self), **{kind: OrderedDict(vars(self)[kind]) for kind in kinds}}


def test_a_model_that_pickles_its_hooks_itself_loads_without_us(watch: Watch) -> None:
    model = made(Listed)
    run = watch(model, probes={"": ["output_norm"]})
    train_step(model, sgd(model), floats(5, 4)(0))
    message = pickle.dumps(model)
    assert b"notebook_probe" not in message
    loaded = pickle.loads(message)
    assert loaded._forward_hooks
    train_step(loaded, sgd(loaded), floats(5, 4)(1))
    assert run.data.sizes["step"] == 1


def test_hooks_of_others_are_saved_with_the_model_and_stay_their_own(watch: Watch) -> None:
    """Put on before and after ours; their handles still take them off."""
    plain, model = made(ConvNet), made(ConvNet)
    before = [one.conv1.register_forward_hook(_doubled) for one in (plain, model)]
    run = watch(model)
    after = model.conv1.register_forward_pre_hook(_same)
    kept = pickle.loads(pickle.dumps(model)).conv1
    assert [*kept._forward_hooks.values()] == [_doubled]
    assert [*kept._forward_pre_hooks.values()] == [_same]
    after.remove()
    for handle in before:
        handle.remove()
    assert saved(model) == saved(plain)
    run.close()
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs")
    assert not any(vars(vars(one)[kind]) for one in model.modules() for kind in hooks)


def _doubled(module: nn.Module, args: Any, output: Tensor) -> Tensor:
    return 2 * output


def _same(module: nn.Module, args: Any) -> None:
    return None


def traced(model: nn.Module) -> dict[str, bytes]:
    """The graph; without the numbers that torch gives to each new type."""
    trace, file = torch.jit.trace(model, images(3)), io.BytesIO()
    torch.jit.save(trace, file)
    assert b"notebook_probe" not in file.getvalue()
    return {"graph": re.sub(r"___torch_mangle_\d+\.", "", str(trace.inlined_graph)).encode()}


def exported(model: nn.Module) -> dict[str, bytes]:
    file = io.BytesIO()
    torch.export.save(torch.export.export(model, (images(3),)), file)
    with zipfile.ZipFile(file) as archive:
        every = (name for name in archive.namelist() if not name.endswith("serialization_id"))
        return {name: archive.read(name) for name in every}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("export", [traced, exported], ids=lambda f: f.__name__)
def test_an_export_of_a_watched_model_holds_nothing_of_ours(
    export: Callable[[nn.Module], dict[str, bytes]], watch: Watch
) -> None:
    plain, model = made(ConvNet), made(ConvNet)
    watch(model).attach("*", ["input_norm", "output_grad_norm"])
    with trained_until("step", plain), trained_until("step", model):
        for one in (plain, model):
            one.eval()
        assert export(model) == export(plain)


class Canvas(nn.Module):
    """Changes a picture: what is learned is its input."""

    def __init__(self) -> None:
        super().__init__()
        self.same, self.linear = nn.Identity(), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.same(x))


def test_a_tensor_that_is_learned_is_saved_without_a_warning_of_hooks(watch: Watch) -> None:
    model, picture = made(Canvas), floats(5, 4)(0).requires_grad_()
    watch(model).attach("same", "output_grad_norm")
    loss_of(model(picture)).backward()
    assert picture._backward_hooks
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        saved(picture)
