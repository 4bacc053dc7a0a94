"""Comparison of a run with one to four good ones: what differs first, where, and by how much."""

from notebook_probe.compare.reference.differences import (
    ReferenceDifference,
    ReferenceDifferences,
)
from notebook_probe.compare.reference.opening import References, absolute, opened_references
from notebook_probe.compare.reference.search import ReferenceSearch

__all__ = [
    "ReferenceDifference",
    "ReferenceDifferences",
    "ReferenceSearch",
    "References",
    "absolute",
    "opened_references",
]
