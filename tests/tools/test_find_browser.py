"""Which browser the tests get, and what is said when there is none."""

from pathlib import Path

import pytest

from tools import find_browser


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Nothing installed, and nothing we may install."""
    monkeypatch.delenv("NOTEBOOK_PROBE_BROWSER", raising=False)
    monkeypatch.setattr(find_browser, "playwrights_own", lambda: None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(find_browser, "MAC_CHROME", "")
    return monkeypatch


def install_fake(folder: Path, name: str) -> str:
    program = folder / name
    program.touch(mode=0o755)
    return str(program)


def test_a_browser_named_in_the_environment_comes_first(
    bare_machine: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bare_machine.setenv("NOTEBOOK_PROBE_BROWSER", "/opt/my/chrome")
    bare_machine.setattr(find_browser, "playwrights_own", lambda: "/playwright/chrome")

    assert find_browser.main() == 0
    assert capsys.readouterr().out == "/opt/my/chrome\n"


def test_playwrights_own_browser_comes_before_the_systems(
    bare_machine: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    install_fake(tmp_path, "chromium")
    bare_machine.setenv("PATH", str(tmp_path))
    bare_machine.setattr(find_browser, "playwrights_own", lambda: "/playwright/chrome")

    assert find_browser.main() == 0
    assert capsys.readouterr().out == "/playwright/chrome\n"


@pytest.mark.parametrize("name", find_browser.SYSTEM_BROWSERS)
def test_a_browser_of_the_system_is_found(
    bare_machine: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    name: str,
) -> None:
    installed = install_fake(tmp_path, name)
    bare_machine.setenv("PATH", str(tmp_path))

    assert find_browser.main() == 0
    assert capsys.readouterr().out == f"{installed}\n"


def test_without_a_browser_it_fails_and_says_what_to_install(
    bare_machine: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert find_browser.main() == 1

    said = capsys.readouterr()
    assert said.out == ""
    assert "playwright install chromium" in said.err
    assert "NOTEBOOK_PROBE_BROWSER" in said.err


def test_on_debian_as_root_it_installs_one(
    bare_machine: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bare_machine.setenv("PATH", str(tmp_path))
    bare_machine.setattr(find_browser, "may_install", lambda: True)
    bare_machine.setattr(find_browser, "install", lambda: install_fake(tmp_path, "chromium"))

    assert find_browser.main() == 0
    assert capsys.readouterr().out == f"{tmp_path / 'chromium'}\n"
