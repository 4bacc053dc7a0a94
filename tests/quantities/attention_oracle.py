"""Attention by its formulas, in float64 numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor

Array: TypeAlias = npt.NDArray[np.float64]


def wide(tensor: Tensor) -> Array:
    return tensor.detach().double().numpy().copy()


@dataclass
class Scores:
    """Scores (batch, head, query, key) and which of them count."""

    scores: Array
    seen: npt.NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        query: Array,
        key: Array,
        allowed: npt.NDArray[np.bool_] | bool = True,
        added: Array | float = 0.0,
        scale: float | None = None,
    ) -> Scores:
        """Of queries and keys (batch, head, row, channel)."""
        scale = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
        key = np.repeat(key, query.shape[1] // key.shape[1], axis=1)
        scores = np.einsum("bhid,bhjd->bhij", query, key) * scale + added
        return cls(scores, np.broadcast_to(allowed, scores.shape) & np.isfinite(scores))

    @property
    def rows(self) -> list[list[tuple[Array, Array]]]:
        """Per head, of each query that sees some key: its scores, and its shares of all keys."""
        found = []
        for head in range(self.scores.shape[1]):
            rows = []
            for item in range(self.scores.shape[0]):
                both = zip(self.scores[item, head], self.seen[item, head], strict=True)
                for scores, seen in both:
                    if seen.any():
                        shares = np.where(seen, np.exp(scores - scores[seen].max()), 0)
                        rows.append((scores[seen], shares / shares.sum()))
            found.append(rows)
        return found

    def entropies(self) -> Array:
        return np.array([np.mean([_entropy(p) for _, p in rows]) for rows in self.rows])

    def evenness(self) -> Array:
        return np.array(
            [
                sum(_entropy(p) for _, p in rows) / sum(np.log(len(s)) for s, _ in rows)
                for rows in self.rows
            ]
        )

    def values(self) -> dict[str, Any]:
        """Every quantity by its name."""
        largest = np.array([max(s.max() for s, _ in rows) for rows in self.rows])
        first = np.array([np.mean([p[0] for _, p in rows]) for rows in self.rows])
        return {
            "attn_entropy": self.entropies().mean(),
            "attn_entropy_min": self.entropies().min(),
            "attn_entropy_share": self.evenness().min(),
            "attn_max_logit": largest.max(),
            "attn_sink_share": first.mean(),
            "attn_narrowest_head": self.evenness().argmin(),
            "attn_max_logit_head": largest.argmax(),
            "attn_head_entropy": self.entropies(),
            "attn_head_max_logit": largest,
            "attn_head_sink_share": first,
        }


def _entropy(shares: Array) -> float:
    some = shares[shares > 0]
    return float(-(some * np.log(some)).sum())
