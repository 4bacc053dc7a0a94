"""Tokens that a model looks up in one training call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import nn
from torch.utils.hooks import RemovableHandle

from notebook_probe.probes.step.containers import tensors_of
from notebook_probe.probes.step.phase import is_traced
from notebook_probe.run.facts.context import GivenTokens
from notebook_probe.run.facts.fact import FactFindings

__all__ = ["LookupFollower"]


class LookupFollower:
    """Hooks on the lookups of a model, which note the tokens that they are given.

    Parameters
    ----------
    lookups : iterable of nn.Embedding
    findings : FactFindings
    tokens : GivenTokens
        Receives the tokens.
    """

    def __init__(
        self, lookups: Iterable[nn.Embedding], findings: FactFindings, tokens: GivenTokens
    ) -> None:
        noting = _NotingTokens(findings, tokens)
        self._handles: list[RemovableHandle] = [
            one.register_forward_pre_hook(noting) for one in lookups
        ]

    def remove(self) -> None:
        """Take all hooks off."""
        handles, self._handles = self._handles, []
        for handle in handles:
            handle.remove()


class _NotingTokens:
    """Hook that notes what one lookup is given."""

    def __init__(self, findings: FactFindings, tokens: GivenTokens) -> None:
        self._findings, self._tokens = findings, tokens

    def __call__(self, module: nn.Module, args: Any) -> None:
        if not is_traced():
            self._findings.attempt(self._note, args)

    def _note(self, args: Any) -> None:
        self._tokens.looked_up(tensors_of(args))
