"""Questions that quantities answer, as a user would ask them.

>>> DEAD
'Are my ReLUs dead?'
"""

from __future__ import annotations

__all__ = [
    "ATTENTION",
    "BATCHNORM",
    "COLLAPSE",
    "DATA",
    "DEAD",
    "LEARNING",
    "NOISE",
    "PROGRESS",
    "RANGE",
    "RATE",
    "SIGNAL",
    "SPEED",
    "SPIKE",
    "topic",
]

SIGNAL = "Do my activations or gradients vanish or explode?"
DEAD = "Are my ReLUs dead?"
BATCHNORM = "Training is fine, evaluation is bad: is it BatchNorm?"
RATE = "Is my learning rate too high or too low?"
LEARNING = "Which layers learn, which are frozen?"
SPIKE = "Why did the loss spike?"
RANGE = "Will bf16 or fp16 overflow? Where did the NaN start?"
ATTENTION = "Has attention collapsed or saturated?"
COLLAPSE = "Do representations collapse? Is the layer too wide?"
NOISE = "Is my batch size sensible? How noisy is the gradient?"
DATA = "Is it my data or my loader?"
SPEED = "How fast is a step, and how much memory does it need?"
PROGRESS = "Is it still improving? Is the minimum flat?"

_TOPICS = {
    SIGNAL: "Vanish or explode?",
    DEAD: "Dead units?",
    BATCHNORM: "BatchNorm?",
    RATE: "Learning rate?",
    LEARNING: "Who learns?",
    SPIKE: "Loss spikes?",
    RANGE: "Overflow, NaN?",
    ATTENTION: "Attention?",
    COLLAPSE: "Collapse, width?",
    NOISE: "Batch size, noise?",
    DATA: "Data, loader?",
    SPEED: "Speed, memory?",
    PROGRESS: "Still improving?",
}


def topic(question: str) -> str:
    """Return the short form of a question; a question of the user is unchanged.

    Examples
    --------
    >>> topic(DEAD), topic("Is it my tokenizer?")
    ('Dead units?', 'Is it my tokenizer?')
    """
    return _TOPICS.get(question, question)
