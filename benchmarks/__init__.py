"""What notebook_probe claims about speed, as ratios measured side by side in one process.

Run ``python -m benchmarks`` for all, or ``python -m benchmarks NAME``.
"""
