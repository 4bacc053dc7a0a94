"""Every quantity on every kind of layer, as recorded, against float64 from an unwatched twin."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from notebook_probe.quantities import quantities
from tests.quantities.layers import histories, recorded
from tests.quantities.oracles_of_calls import OF_CALLS, Oracle
from tests.quantities.oracles_of_parameters import OF_PARAMETERS

pytestmark = pytest.mark.xdist_group("oracles")  # one process makes what they share

ORACLES: dict[str, Oracle] = {**OF_CALLS, **OF_PARAMETERS}

HERE = Path(__file__).parent
WITHOUT = ("test_aliases", "test_laws", "test_oracles")
ELSEWHERE = (
    *(path for path in HERE.glob("*.py") if not path.stem.startswith((*WITHOUT, "test_table"))),
    *HERE.glob("catalogue/*.py"),
    HERE.parent / "probes" / "replay" / "test_probe_batch.py",
)
"""Where the oracles of those are that need more than a layer's own tensors."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What was recorded, by layer and quantity."""
    return recorded(ORACLES, Path(tmp_path_factory.mktemp("layers")) / "run.zarr")


@pytest.mark.parametrize("name", ORACLES)
def test_what_is_recorded_is_what_the_definition_says(name: str, found: Any) -> None:
    for layer, history in histories().items():
        want, value = ORACLES[name](history), found[layer].get(name)
        if want is None:
            assert value is None or np.isnan(value).all(), (layer, value)
            continue
        assert value is not None, layer
        np.testing.assert_allclose(value, want, rtol=2e-4, atol=1e-9, err_msg=f"{name} of {layer}")


def test_every_quantity_has_an_oracle() -> None:
    named = set(re.findall(r"\w+", "".join(path.read_text() for path in ELSEWHERE)))
    ours = [q for q in quantities.values() if q.function.__module__.startswith("notebook_probe.")]
    missing = [q.name for q in ours if q.name not in named | ORACLES.keys()]
    assert not missing, f"{missing}: no oracle; add one to a file beside this one"
