"""Check which parameters an update would change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from notebook_probe.examine.findings import Finding
from notebook_probe.examine.subject import Subject

__all__ = ["named", "who_trains"]

CHECK = "who trains"
MOST_NAMES = 4


def who_trains(subject: Subject) -> Iterator[Finding]:
    """Compare what requires a gradient with what the optimizers hold."""
    trainable, held = [*subject.trainable], subject.held
    if not trainable:
        advice = "model.requires_grad_(True)"
        yield Finding(CHECK, "wrong", "no parameter requires a gradient", advice)
        return
    if held is None:
        text = "no optimizer is known yet: pass one to nbp.watch(model, optimizer)"
        yield Finding(CHECK, "unknown", text)
        return
    missing = [name for name in trainable if name not in held]
    if missing:
        text = (
            f"no optimizer holds {len(missing)} of {len(trainable)} parameters that require a "
            f"gradient: {named(missing)}"
        )
        if subject.n_strangers:
            text += f", but {subject.n_strangers} that the model does not have"
        advice = "make the optimizer of model.parameters(), after the last change of the model"
        yield Finding(CHECK, "wrong" if subject.n_strangers else "note", text, advice)
    elif subject.n_strangers:
        text = f"the optimizer also holds {subject.n_strangers} parameters of other modules"
        yield Finding(CHECK, "note", text)
    if not missing:
        yield Finding(CHECK, "good", f"an optimizer holds all {len(trainable)} parameters to train")


def named(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
