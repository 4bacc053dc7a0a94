"""What notebook_probe claims about speed, as ratios measured side by side in one process.

Run ``python -m benchmarks`` for all, or ``python -m benchmarks NAME --help``.
"""

import os

# Read once, when numpy and torch are loaded: other threads would blur whose time is measured.
os.environ.setdefault("OMP_NUM_THREADS", "1")
