"""A cell that defines a quantity is run again, and edited, as notebooks are."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.errors import DuplicateNameError
from notebook_probe.quantities import as_quantity, quantities
from tests.models import floats, made, mlp, sgd, train
from tests.run.conftest import Watch

FUNCTION = '''
@nbp.quantity(aliases=("{alias}",))
def {name}(output):
    """{doc}"""
    return {factor} * output.mean()
'''

WINDOW = '''
@nbp.window_quantity(name="{name}")
class Another:
    """{doc}"""
    def reset(self):
        self.n = 0
    def update(self, output_sumsq):
        self.n += 1
    def compute(self):
        return self.n
'''


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is defined here is gone afterwards."""
    monkeypatch.setattr(quantities, "_members", dict(quantities._members))
    monkeypatch.setattr(quantities, "_aliases", dict(quantities._aliases))


def run_cell(text: str, **parts: object) -> None:
    """As a notebook runs it: in the namespace of ``__main__``."""
    parts = {"name": "cell_mean", "alias": "cell_alias", "doc": "Mean.", "factor": 1} | parts
    code = compile(text.format(**parts), "a cell", "exec")
    exec(code, {"nbp": nbp, "__name__": "__main__"})


def test_an_edited_cell_replaces_what_it_defined(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    for factor in (1, 3):
        run_cell(FUNCTION, doc=f"Mean, times {factor}.", factor=factor)
        run.attach("0", "cell_mean")
        train(model, sgd(model, lr=0.0), floats(5, 4), range(1))
    first, second = run.series("0", "cell_mean").values
    assert second == pytest.approx(3 * first, rel=1e-6)
    assert [row.summary for row in nbp.list_quantities("mean, times")] == ["Mean, times 3."]
    assert nbp.list_quantities()["cell_mean"].source == ""
    assert "source       not given" in str(nbp.list_quantities()["cell_mean"])


def test_a_function_may_become_a_class_and_a_class_a_function() -> None:
    run_cell(FUNCTION)
    run_cell(WINDOW)
    assert as_quantity("cell_mean").is_window
    assert "cell_alias" not in quantities, "the last definition has none"
    run_cell(FUNCTION)
    assert not as_quantity("cell_mean").is_window


def test_an_alias_moves_with_the_name_of_an_edited_cell() -> None:
    run_cell(FUNCTION)
    run_cell(FUNCTION, name="cell_renamed")
    assert as_quantity("cell_alias").name == "cell_renamed"
    run_cell(FUNCTION, name="cell_alias", alias="cell_other")
    assert as_quantity("cell_alias").name == "cell_alias"


def test_what_the_package_has_is_not_replaced_by_a_cell() -> None:
    with pytest.raises(DuplicateNameError, match="'weight_norm' is already registered"):
        run_cell(FUNCTION, name="weight_norm")
    with pytest.raises(DuplicateNameError, match="'RankMe' of 'cell_mean' is taken"):
        run_cell(FUNCTION, alias="RankMe")
    with pytest.raises(DuplicateNameError, match="'RankMe' would hide the alias of 'effective_ra"):
        run_cell(FUNCTION, name="RankMe")


def test_a_cell_that_fails_leaves_the_last_good_definition() -> None:
    run_cell(FUNCTION, doc="Good.")
    with pytest.raises(nbp.QuantityError, match="no feature 'outptu'"):
        run_cell(FUNCTION.replace("(output)", "(outptu)"))
    assert as_quantity("cell_mean").summary == "Good."
    assert float(as_quantity("cell_mean")(torch.ones(2))) == 1.0


def test_a_vector_cannot_take_the_place_of_a_number_in_a_record(watch: Watch) -> None:
    run = watch(nn.Linear(4, 2), probes=None)
    run_cell(FUNCTION)
    run.attach("", "cell_mean")
    axis = 'axis=nbp.Axis("k", {{"k": (0.0, 1.0)}}, group="pair"), aliases'
    run_cell(FUNCTION.replace("aliases", axis))
    with pytest.raises(nbp.QuantityError, match="'cell_mean' is a number in this record"):
        run.attach("", "cell_mean")
