"""Under ``nbp run`` a trainer knows our word as soon as the program has imported it, not before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.launch.programs import under_warm_nbp
from tests.run.programs import Programs

pytestmark = pytest.mark.slow

LIBRARY = {
    "__init__.py": "class TrainerCallback: pass",
    "integrations.py": "INTEGRATION_TO_CALLBACK = {}",
    "trainer.py": "import torch",
}
PROGRAM = """
import sys
import transformers
from transformers.integrations import INTEGRATION_TO_CALLBACK as known
print(sorted(known), "torch" in sys.modules, "notebook_probe" in sys.modules)
import transformers.trainer
print(sorted(known), transformers.trainer.__loader__.__class__.__name__)
"""


def library(folder: Path, **other: str) -> None:
    """Make a package that has only what the word needs."""
    (folder / "transformers").mkdir()
    for name, text in {**LIBRARY, **other}.items():
        (folder / "transformers" / name).write_text(text)
    (folder / "train.py").write_text(PROGRAM)


def test_the_word_is_known_once_the_trainer_is_imported(tmp_path: Path, programs: Programs) -> None:
    library(tmp_path)
    done = under_warm_nbp(programs, tmp_path, "train.py")
    assert done.out.splitlines() == [
        "[] False False",
        "['notebook_probe'] SourceFileLoader",
    ]
    assert (done.code, done.told) == (
        0,
        ["nothing was watched: the program made no torch optimizer"],
    )


def test_a_library_that_has_changed_is_imported_all_the_same(
    tmp_path: Path, programs: Programs
) -> None:
    library(tmp_path, **{"__init__.py": ""})
    done = under_warm_nbp(programs, tmp_path, "train.py")
    assert done.code == 0
    assert done.out.splitlines()[1].startswith("[] ")
    assert done.told[0].startswith("transformers.trainer does not know notebook_probe: ")
