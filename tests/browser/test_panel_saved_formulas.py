"""Formulas without a kernel: read and computed as the kernel does, of what a file has whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, expect

import notebook_probe as nbp
from notebook_probe.record.formulas import FormulaError, formula_stream
from tests.browser.lab import PATIENCE_S
from tests.browser.panel_page import PanelPage
from tests.browser.panel_parts import PanelParts
from tests.record.formulas.test_formulas import streams

VALUES = """async ([formula, recorded, series]) => {
  const read = async (module, quantity) => series[`${module} ${quantity}`];
  try { return await parts.formulaValues(formula, recorded, read); }
  catch (error) { return { problem: error.message }; }
}"""
FORMULAS = [
    "= 1 - accuracy",
    "=loss/accuracy",
    "= -loss ^ 2 * 3",
    "= 2 ^ -accuracy",
    "= 2 ^ 3 ^ 2 * accuracy",
    "= (loss - 1) - (2 - accuracy)",
    "= 8 / 2 / accuracy",
    "= log(accuracy) + exp(accuracy)",
    "= sqrt(abs(-accuracy)) + log10(accuracy)",
    "= 1e-3*accuracy + .5",
    '= "accuracy"@"(root)"',
    "= running_min(loss)",
    "= running_max(-loss)",
    "= mean(norm)",
    '= max(norm@"blocks.*") - min(norm)',
    "= sum(norm) / norm@blocks.1",
    "= loss * norm@blocks.0",
    "= 1 ^ loss",
]
WRONG = [
    "= ",
    "= 1 -",
    "= loss loss",
    "= (loss",
    "= loss)",
    "= loss $ 2",
    "= sine(loss)",
    "= mean(loss + 1)",
    "= acc",
    "= norm",
    "= norm@blocks.7",
    '= norm@"blocks.*"',
    "= loss@",
    "= 3 * 4",
    "= " + "(" * 60 + "loss" + ")" * 60,
]


def given() -> tuple[dict[str, list[str]], dict[str, Any]]:
    """Return the recorded series and their values, as a file has them."""
    recorded: dict[str, list[str]] = {}
    series: dict[str, Any] = {}
    for stream in streams().values():
        for variable in stream.variables:
            recorded[variable.name] = [*stream.modules]
            values = stream.values(variable.name)
            for k, module in enumerate(stream.modules):
                column = {"steps": stream.steps().tolist(), "values": values[:, k].tolist()}
                series[f"{module} {variable.name}"] = column
    return recorded, series


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_has_the_values_that_the_kernel_gives(parts: PanelParts, formula: str) -> None:
    stream = formula_stream(streams(), formula)
    found = parts.evaluate(VALUES, [formula, *given()])
    assert found["steps"] == stream.steps().tolist()
    values = np.asarray(found["values"]).astype(np.float32)
    np.testing.assert_array_equal(values, stream.values(formula)[:, 0])


@pytest.mark.parametrize("formula", WRONG, ids=[str(k) for k in range(len(WRONG))])
def test_what_the_kernel_cannot_read_has_a_reason_here_too(parts: PanelParts, formula: str) -> None:
    with pytest.raises(FormulaError):
        formula_stream(streams(), formula)
    assert parts.evaluate(VALUES, [formula, *given()])["problem"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of a short run, and one of a run that is longer than a file can have whole."""
    folder = tmp_path_factory.mktemp("formulas")
    for name, n in (("short", 40), ("long", 3000)):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Linear(1, 1))
        optimizer = torch.optim.SGD(model.parameters(), 1e-4)
        probes = {"*": ["weight_norm"]}
        run = nbp.watch(model, optimizer, store=folder / f"{name}.zarr", probes=probes, budget=None)
        for step in range(n):
            model(torch.ones(1, 2)).sum().backward()
            run.log(loss=1 / (step + 1), accuracy=0.1 + 0.8 * step / n)
            optimizer.step()
        run.close()
        nbp.open_run(folder / f"{name}.zarr").to_html(folder / f"{name}.html")
    return folder


def typed(panel: PanelPage, formula: str) -> None:
    panel.action("add").click()
    panel.page.get_by_role("searchbox", name="Find a module or quantity").fill(formula)
    panel.page.locator(".nbp-head .nbp-item:visible").first.click()
    panel.page.keyboard.press("Escape")


@pytest.mark.slow
def test_a_formula_typed_in_a_file_is_drawn_or_says_why_not(browser: Browser, file: Path) -> None:
    context = browser.new_context(offline=True)
    context.set_default_timeout(PATIENCE_S * 1000)
    page = context.new_page()
    panel = PanelPage(page)
    page.goto((file / "short.html").as_uri())
    typed(panel, "= 1 - accuracy")
    expect(panel.lines).to_have_attribute("data-series", json.dumps(
        ["loss", "accuracy", "= 1 - accuracy"], separators=(",", ":")
    ))  # fmt: skip
    expect(panel.lines).to_have_attribute("data-points", "[40,40,40]")
    panel.wait_frame()
    panel.picture("saved-formula")
    typed(panel, "= 1 - acc")
    problems = page.locator(".nbp-formula-problems")
    expect(problems).to_contain_text("no series 'acc' is recorded")
    page.goto((file / "long.html").as_uri())
    typed(panel, "= 1 - accuracy")
    expect(problems).to_contain_text("of 3000 values of accuracy are saved here; a formula that is")
    typed(panel, "= 2 * weight_norm@1")
    expect(problems).to_contain_text("only means of weight_norm@1 over steps are saved here")
    assert panel.errors == []
    context.close()
