"""What was logged last of each name, whichever were logged together."""

import random

from notebook_probe.probes.reading.last_scalars import LastScalars


def test_each_name_has_the_value_that_was_taken_last() -> None:
    last, truth, chance = LastScalars(), dict[str, float](), random.Random(0)
    names = [*"abcdef"]
    for step in range(200):
        together = names[:3] if step % 5 else chance.sample(names, chance.randint(1, 6))
        scalars = {name: step + chance.random() for name in together}
        last.take(scalars)
        truth |= scalars
        assert dict(last) == truth
        assert len(last) == len(truth)
        assert "b" in last or "b" not in truth


def test_names_of_one_step_are_told_first_named_first() -> None:
    last = LastScalars()
    last.take({"loss": 1.0, "lr": 2.0})
    last.take({"loss": 3.0, "lr": 4.0})
    assert [*last.items()] == [("loss", 3.0), ("lr", 4.0)]
    assert "other" not in last
