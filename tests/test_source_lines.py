"""The user's line, as a function that torch calls finds it."""

from __future__ import annotations

import inspect
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.source_lines import UNKNOWN_LINE, origin_of, user_line


def here() -> int:
    return sys._getframe(1).f_lineno


def test_the_line_is_that_of_the_nearest_user_s_function() -> None:
    assert (user_line(), here()) == (f"test_source_lines.py:{here()}", here())


def test_frames_of_torch_and_of_this_package_are_passed() -> None:
    lines: list[str] = []
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    net[1].register_forward_hook(lambda *_: lines.append(user_line()))
    net(torch.ones(1, 2))
    hook = inspect.getsourcelines(test_frames_of_torch_and_of_this_package_are_passed)[1] + 3
    assert lines == [f"test_source_lines.py:{hook}"]
    code = compile("line = find()", str(Path(nbp.__file__).with_name("made_up.py")), "exec")
    found: dict[str, object] = {"find": user_line}
    exec(code, found)
    assert found["line"] == f"test_source_lines.py:{here() - 1}"


def test_without_a_user_s_function_the_line_is_unknown() -> None:
    with ThreadPoolExecutor(1) as pool:  # above which a thread has Python's own frames only
        assert pool.submit(user_line).result() == UNKNOWN_LINE


def test_a_folder_with_the_name_of_a_package_is_the_user_s() -> None:
    installed = Path(torch.__file__).parents[1]
    origins = {
        Path(torch.__file__).with_name("storage.py"): "torch",
        Path(nbp.__file__).with_name("axis.py"): "ours",
        installed / "timm" / "resnet.py": "library",
        installed / "torchvision" / "ops.py": "library",
        Path(threading.__file__): "python",
        Path("<frozen importlib._bootstrap>"): "python",
        Path("/home/me/torch/train.py"): "user",
        Path("/home/me/notebook_probe/notebooks/train.py"): "user",
        Path("/tmp/ipykernel_7/1234.py"): "user",
    }
    assert {path: origin_of(str(path)) for path in origins} == origins
