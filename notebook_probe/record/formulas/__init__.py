"""Formulas of recorded series, such as ``= 1 - accuracy``: parsed strictly, never run as code."""

from notebook_probe.record.formulas.parsing import FormulaError, is_formula, parsed
from notebook_probe.record.formulas.streams import (
    FormulaStreams,
    formula_stream,
    with_formulas,
)

__all__ = [
    "FormulaError",
    "FormulaStreams",
    "formula_stream",
    "is_formula",
    "parsed",
    "with_formulas",
]
