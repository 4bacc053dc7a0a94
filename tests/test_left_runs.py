"""A test that leaves records in the folder where tests are started fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import conftest


def test_records_in_the_working_folder_fail_the_test_that_wrote_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / "runs"
    for makes, fails in ((False, False), (True, True), (True, False)):  # once, by its maker
        with monkeypatch.context() as patch:  # this test is watched, too
            patch.setattr(conftest, "RUNS", runs)
            hook = conftest.pytest_runtest_call()
            next(hook)
            if makes:
                runs.mkdir(exist_ok=True)
            with pytest.raises(pytest.fail.Exception if fails else StopIteration):
                next(hook)
