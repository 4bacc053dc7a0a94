"""Which tests a change can affect, by imports and by the names in their texts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import affected

FILES = {
    "pyproject.toml": """
[[tool.importlinter.contracts]]
ignore_imports = ["notebook_probe.run.door -> notebook_probe.panel"]
""",
    "notebook_probe/__init__.py": """
from notebook_probe.run import watch
from notebook_probe.table import catalogue
""",
    "notebook_probe/run/__init__.py": "from notebook_probe.run.door import explore as watch\n",
    "notebook_probe/run/door.py": """
def explore():
    from notebook_probe.panel import Panel
""",
    "notebook_probe/record.py": "",
    "notebook_probe/panel/__init__.py": "from notebook_probe import record\n",
    "notebook_probe/panel/panel.js": "",
    "notebook_probe/table.py": "def later():\n    import notebook_probe.record\n",
    "notebook_probe/typed.py": """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from notebook_probe.record import Record
""",
    "tests/__init__.py": "",
    "tests/conftest.py": "",
    "tests/models.py": "import notebook_probe.typed\n",
    "tests/test_everywhere.py": "",
    "tests/run/__init__.py": "",
    "tests/run/conftest.py": "from tests.models import model\n",
    "tests/run/test_watch.py": "import notebook_probe as nbp\nnbp.watch()\n",
    "tests/run/test_explore.py": "import notebook_probe as nbp\nnbp.watch().explore()\n",
    "tests/table/__init__.py": "",
    "tests/table/test_process.py": "PROGRAM = 'import notebook_probe as nbp; nbp.catalogue()'\n",
    "tests/table/test_pages.py": "PAGE = 'docs' + '/page.md'\n",
    "docs/page.md": "",
    "Makefile": "",
}
EVERY_CACHE = (
    affected.modules,
    affected.text_of,
    affected.imported,
    affected.public,
    affected.named,
    affected.doors,
    affected.entry_points,
    affected.reached,
)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A small repository of the same shape."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(affected, "ROOT", tmp_path)
    for cached in EVERY_CACHE:
        cached.cache_clear()
    yield tmp_path
    for cached in EVERY_CACHE:
        cached.cache_clear()


def names(*changed: str) -> set[str]:
    """The affected tests, without the one that always runs."""
    return {Path(path).name for path in affected.affected(changed)} - {"test_everywhere.py"}


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("notebook_probe/run/door.py", {"test_watch.py", "test_explore.py"}),
        ("notebook_probe/panel/__init__.py", {"test_explore.py"}),
        ("notebook_probe/panel/panel.js", {"test_explore.py"}),
        ("notebook_probe/table.py", {"test_process.py"}),
        ("notebook_probe/record.py", {"test_process.py", "test_explore.py"}),
        ("notebook_probe/typed.py", {"test_watch.py", "test_explore.py"}),
        ("tests/models.py", {"test_watch.py", "test_explore.py"}),
        ("tests/run/test_watch.py", {"test_watch.py"}),
        ("docs/page.md", {"test_pages.py"}),
        ("Makefile", set()),
        (
            "tests/conftest.py",
            {"test_watch.py", "test_explore.py", "test_process.py", "test_pages.py"},
        ),
    ],
)
def test_a_change_affects_the_tests_that_reach_it(changed: str, expected: set[str]) -> None:
    assert names(changed) == expected


@pytest.mark.usefixtures("repository")
def test_tests_at_the_root_run_after_any_change_and_nothing_runs_after_none() -> None:
    assert affected.affected(["Makefile"]) == ["tests/test_everywhere.py"]
    assert affected.affected([]) == []


@pytest.mark.usefixtures("repository")
def test_a_change_of_the_environment_affects_every_test() -> None:
    assert affected.affected(["constraints.txt"]) == ["tests", "notebook_probe"]


LOADED = """
import sys
import pytest

code = pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", sys.argv[1]])
print(code, *(name for name in sys.modules if name.startswith("notebook_probe.")))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "test",
    ["tests.compare.test_alignment", "tests.run.test_aliases", "tests.catalogues.test_catalogue"],
)
def test_whatever_a_test_has_loaded_in_the_end_it_is_said_to_reach(test: str) -> None:
    path = str(affected.modules()[test])
    command = [sys.executable, "-c", LOADED, path]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=affected.ROOT)
    code, *loaded = done.stdout.splitlines()[-1].split()
    assert code == "ExitCode.OK" or code == "0"
    assert len(loaded) > 10
    assert set(loaded) <= affected.reached(test) | loaded_with_the_package()


def loaded_with_the_package() -> set[str]:
    """What `import notebook_probe` loads whatever is asked of it."""
    waiting, found = ["notebook_probe"], set[str]()
    while waiting:
        for target, function in affected.imported(waiting.pop()):
            for name in affected.with_packages(target):
                if not function and name not in found:
                    found.add(name)
                    waiting.append(name)
    return found
