"""`nbp.list_presets()`: the table of what can be attached under one name."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest
from IPython.core.formatters import DisplayFormatter
from torch import nn

import notebook_probe as nbp
from notebook_probe.model.map import ModelMap
from notebook_probe.quantities.define.costs import measured_costs
from notebook_probe.run.attach.presets import presets
from tests.run.conftest import Watch


def nowhere(model_map: ModelMap) -> list[str]:
    return []


ODD = nbp.Preset("<odd>", "For <b>nobody</b>.", (nbp.PresetRow(("lr",), nowhere, nbp.Every(7)),))


def test_the_table_has_every_preset_with_its_measured_cost() -> None:
    head, *rows, legend = repr(nbp.list_presets()).splitlines()
    assert [row.split()[0] for row in rows] == list(presets)
    workloads = list(measured_costs().presets["default"])
    assert head.split()[0] == "name"
    assert all(workload in head for workload in workloads)
    costs = [str(measured_costs().presets["default"][each]) for each in workloads]
    assert all(cost in rows[0] for cost in costs)
    assert legend.startswith("per cent of a training step without it")


def test_one_preset_says_what_it_measures_where_when_and_at_what_cost() -> None:
    shown = str(nbp.list_presets()["optimizer"])
    assert shown.startswith("optimizer: What the optimizer does to the weights")
    assert "every(1), every layer: weight_norm, grad_norm, update_norm" in shown
    assert "every(1), the model itself: lr, weight_decay" in shown
    told = [" ".join(line.split()) for line in shown.splitlines()]
    assert any(line.startswith("cost MLP ") for line in told)


def test_its_docstring_says_the_same() -> None:
    for preset in nbp.list_presets():
        assert inspect.getdoc(preset) == inspect.cleandoc(str(preset))


def test_a_preset_of_very_many_quantities_lists_some_and_counts_the_others() -> None:
    assert " and " in str(nbp.list_presets()["everything"])
    assert len(str(nbp.list_presets()["everything"])) < 3000


def test_names_and_words_of_the_user_s_are_no_markup() -> None:
    html = ODD._repr_html_()
    assert "<b>&lt;odd&gt;</b>: For &lt;b&gt;nobody&lt;/b&gt;." in html
    assert "every(7), nowhere: <code>lr</code>" in html


def test_a_preset_and_the_table_are_shown_as_html_in_a_notebook() -> None:
    display = DisplayFormatter()
    for shown in (nbp.list_presets(), nbp.list_presets()["default"]):
        told, _ = display.format(shown)
        assert told["text/html"] == shown._repr_html_()


def test_a_wrong_name_has_its_near_matches() -> None:
    with pytest.raises(nbp.UnknownNameError, match="no preset 'spectre'; close: 'spectra'"):
        nbp.list_presets()["spectre"]
    with pytest.raises(nbp.UnknownNameError, match="no preset 'spectre'; close: 'spectra'"):
        nbp.watch(nn.Linear(2, 2), probes="spectre")


@pytest.mark.slow
def test_the_first_access_is_the_function() -> None:
    script = "import notebook_probe as nbp; assert nbp.list_presets()['default'].rows"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_the_name_of_a_quantity_says_how_to_measure_it(watch: Watch) -> None:
    with pytest.raises(nbp.UnknownNameError, match="'RankMe' is a quantity and no preset") as told:
        nbp.watch(nn.Linear(2, 2), probes=["default", "RankMe"])
    assert "probes={'*': ['RankMe']}" in str(told.value)
    run = watch(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), probes={"*": ["RankMe"]})
    assert {probe.quantity for probe in run.probes()} == {"effective_rank"}


def test_ipython_is_told_the_names_to_complete() -> None:
    assert "spectra" in nbp.list_presets()._ipython_key_completions_()
    assert nbp.list_quantities("rankme")._ipython_key_completions_() == ["effective_rank"]
