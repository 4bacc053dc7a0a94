"""``python -m benchmarks.gpu``: as ``python -m benchmarks gpu``, without what the others import."""

from __future__ import annotations

import argparse

from benchmarks import gpu

parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=gpu.__doc__)
gpu.add_arguments(parser)
gpu.run(parser.parse_args())
