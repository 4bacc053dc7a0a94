"""Pages of docs/ that need another library run as they are printed, and record what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
import wandb

from tests.docs.running import READERS_OWN, blocks_of

pytestmark = pytest.mark.libraries

TWO_RUNS = """
for name, lr in (("first", 0.1), ("second", 0.3)):
    run = nbp.watch(model, optimizer, store=f"runs/{name}.zarr", config={"lr": lr})
    train()
    run.close()
"""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(page: str, before: str = "", n_blocks: int | None = None) -> dict[str, Any]:
    """Run a page, or its first blocks; the names that it has made."""
    names: dict[str, Any] = {}
    exec("\n".join([before, *blocks_of(page)[:n_blocks]]), names)
    return names


@pytest.mark.filterwarnings("ignore:'pin_memory' argument:UserWarning")
def test_the_page_on_hf_trainer() -> None:
    names = run("how_to/hf_trainer.md")
    of = names["record"].series
    assert of("transformer.h.0.mlp.c_fc", "grad_norm").step.values.tolist() == list(range(20))
    assert of("transformer.h.1.attn", "attn_entropy").step.values.tolist() == [0, 10]
    assert of("", "loss").step.values.tolist() == [4, 9, 14, 19]
    names["trainer"].train()
    assert names["run"].series("", "loss").step.values.tolist() == [4, 9, 14, 19]
    names["record"].refresh()
    assert of("", "loss").size == 4, "what is watched again goes into the new record alone"


@pytest.mark.filterwarnings("ignore::lightning.pytorch.utilities.warnings.PossibleUserWarning")
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # Lightning asks torch so
def test_the_page_on_lightning() -> None:
    record = run("how_to/lightning.md", n_blocks=2)["record"]
    assert record.series("network.0", "grad_norm").step.values.tolist() == list(range(20))
    assert record.series("", "train_loss").size == 20
    assert record.series("", "accuracy").step.values.tolist() == [10, 20]


def test_the_page_for_those_who_come_from_tensorboard() -> None:
    names = run("coming_from/tensorboard.md", READERS_OWN)
    assert names["run"].series("head", "grad_norm").size == 20
    assert names["mirror"].left_out == 0


def test_the_page_for_those_who_come_from_wandb() -> None:
    names = run("coming_from/wandb.md", READERS_OWN)
    wandb.teardown()
    assert names["run"].series("head", "grad_norm").size == 20
    assert names["mirror"].left_out == 0


def test_the_page_on_duckdb() -> None:
    names = run("how_to/read_elsewhere.md", READERS_OWN + TWO_RUNS)
    found = dict(names["largest"].project("module::varchar, largest").fetchall())
    assert found.keys() == {"body.0", "body.2", "head"}
    assert found["head"] == float(names["record"].series("head", "grad_norm").max())
    [(n,)] = duckdb.sql("select count(*) from 'first.parquet'").fetchall()
    assert n == len(names["measured"])
