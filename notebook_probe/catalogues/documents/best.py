"""Direction of improvement of a number, from its name."""

from __future__ import annotations

import re

__all__ = ["is_better"]

LESS = frozenset(
    """
    bce bpb bpc ce cer divergence eer err error errors fid kl loss losses mae mse nll
    perplexity ppl regret rmse wer
    """.split()  # noqa: SIM905
)
MORE = frozenset(
    """
    acc accuracy ap auc auprc auroc bleu dice f1 iou map meteor miou mrr ndcg precision psnr
    r2 recall return returns reward rewards rouge ssim top1 top5
    """.split()  # noqa: SIM905
)
_WORD = re.compile(r"[A-Za-z]+\d*")


def is_better(name: str) -> str:
    """Return ``"min"``, ``"max"``, or empty if unknown: nothing is guessed.

    Examples
    --------
    >>> is_better("eval_loss"), is_better("eval/Top5"), is_better("lr"), is_better("acc_loss")
    ('min', 'max', '', 'min')
    """
    words = [word.lower() for word in _WORD.findall(name)]
    told = [word for word in words if word in LESS or word in MORE]
    if not told:
        return ""
    return "min" if told[-1] in LESS else "max"
