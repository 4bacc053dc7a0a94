"""What the training loop has not told yet, so that a quantity of it has no value."""

from __future__ import annotations

from collections.abc import Collection

from notebook_probe.quantities.define.quantity import Quantity
from notebook_probe.quantities.reduce.features import given_by

__all__ = ["untold"]


def untold(quantity: Quantity, handed: Collection[str], logged: Collection[str]) -> str:
    """One sentence on what is missing; empty when nothing of the loop's own is.

    Parameters
    ----------
    quantity : Quantity
        Without a value so far.
    handed, logged : collection of str
        Names under which anything was handed over, and logged.
    """
    for need in quantity.needs:
        family, _, key = need.partition(".")
        if family == "batch" and key not in handed:
            so_far = f"; so far it has {', '.join(sorted(handed))}" if handed else ""
            return f"the loop has not handed over {key}: {given_by(need)}{so_far}"
        if family == "logged" and key in logged:
            return f"{key} was not logged often enough yet"
        if family == "logged":
            return f"nothing is logged that it needs: {given_by(need)}"
        if need == "scaler":
            return "no gradient scaler has called an optimizer's step yet"
        if need == "wait_seconds":
            return "no batch has come through run.batches(loader) yet"
    if quantity.moment == "batch":
        needs = ", ".join(need.partition(".")[2] for need in quantity.needs if "batch." in need)
        return f"{needs} have not been there together in a due step yet"
    return "no due step has ended yet" if quantity.is_of_step else ""
