"""Defining rules: parameters are series and thresholds, the docstring is the sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import notebook_probe as nbp
from notebook_probe.alerts import RULES, Rules
from notebook_probe.errors import DuplicateNameError, RuleError, UnknownNameError


def test_parameters_without_a_default_are_series_and_the_others_thresholds() -> None:
    @nbp.rule(rows=3)
    def heavy(top_share, weight_norm, most=0.9, window=10):  # type: ignore[no-untyped-def]
        """One unit has {top_share:.0%}.

        More is not said.
        """
        return top_share > most

    assert heavy.quantities == ("top_share", "weight_norm")
    assert dict(heavy.thresholds) == {"most": 0.9, "window": 10}
    assert (heavy.says, heavy.rows, heavy.window) == ("One unit has {top_share:.0%}.", 3, 10)
    assert "heavy(top_share, weight_norm, most=0.9, window=10, rows=3)" in repr(heavy)
    assert RULES["heavy"] is heavy


def test_a_rule_is_edited_into_another_one() -> None:
    rule = RULES["dead_units"]
    edited = rule.but(most=0.25, steps=10)
    assert (edited.thresholds["most"], edited.steps, edited.name) == (0.25, 10, rule.name)
    assert (rule.thresholds["most"], rule.steps) == (0.8, 40)
    with pytest.raises(UnknownNameError, match=r"'dead_units' has no 'mots'; close: 'most'"):
        rule.but(mots=1)
    for numbers in ({"most": "a"}, {"most": float("nan")}, {"rows": 0}, {"rows": 1.5}):
        with pytest.raises(RuleError, match="dead_units"):
            rule.but(**numbers)


def test_a_rule_tells_how_bad_it_is_and_what_explains_it() -> None:
    made = nbp.rule(name="test_bad", says="high", severity="severe", explained_by="grad_norm")
    rule = made(lambda loss: loss > 0)
    assert (rule.severity, rule.explained_by) == ("severe", ("grad_norm",))
    assert (rule.but(rows=2).severity, rule.but(rows=2).explained_by) == ("severe", ("grad_norm",))
    plain = nbp.rule(name="test_plain", says="high")(lambda loss: loss > 0)
    assert (plain.severity, plain.explained_by) == ("warning", ())
    with pytest.raises(RuleError, match="severity='fatal'; allowed: remark, warning, severe"):
        nbp.rule(name="test_fatal", says="high", severity="fatal")(lambda loss: loss > 0)  # type: ignore[call-overload]


def test_a_rule_tells_how_it_travels_and_what_it_may_come_of() -> None:
    made = nbp.rule(name="test_late", says="x", flow="backward", consequence_of="lr_high")
    rule = made(lambda grad_norm: grad_norm > 0)
    assert (rule.flow, rule.consequence_of) == ("backward", ("lr_high",))
    assert (rule.but(rows=2).flow, rule.but(rows=2).consequence_of) == ("backward", ("lr_high",))
    plain = nbp.rule(name="test_still", says="x")(lambda loss: loss > 0)
    assert (plain.flow, plain.consequence_of) == (None, ())
    with pytest.raises(RuleError, match="flow='up'; allowed: forward, backward, or None"):
        nbp.rule(name="test_up", says="x", flow="up")(lambda loss: loss > 0)  # type: ignore[call-overload]
    with pytest.raises(RuleError, match="it is no consequence of itself"):
        nbp.rule(name="test_own", says="x", consequence_of=("test_own",))(lambda loss: loss > 0)


def test_the_causes_of_a_rule_are_rules_and_none_is_named_twice() -> None:
    for rule in RULES.values():
        assert {*rule.consequence_of} <= {*RULES}, rule.name
        assert len({*rule.consequence_of}) == len(rule.consequence_of), rule.name


def test_what_ruins_a_training_is_severe() -> None:
    severe = {rule.name for rule in RULES.values() if rule.severity == "severe"}
    assert {name for name in severe if not name.startswith("test_")} == {
        "equal_units",
        "gradients_cleared_early",
        "nonfinite_output",
        "nonfinite_gradient",
        "nonfinite_loss",
        "overflow_near",
        "exploding_gradient",
        "gradient_too_long",
        "attention_logit_large",
        "diverging_loss",
        "early_divergence",
        "uncleared_gradients",
        "untrained_adapter",
        "every_gradient_zero",
        "updates_skipped",
        "not_in_optimizer",
        "cut_off",
        "frozen_but_moving",
        "no_updates",
        "no_log_before_nll",
        "softmax_dimension",
        "negated_loss",
        "broadcast_loss",
        "unregistered_layers",
        "all_targets_ignored",
        "nonfinite_batch",
        "nonfinite_update",
        "nonfinite_from_loss",
        "ranks_differ",
        "rank_stands_still",
        "ranks_wait",
    }


def test_what_explains_a_rule_is_none_of_its_own_series() -> None:
    for rule in RULES.values():
        assert not {*rule.explained_by} & {*rule.quantities}, rule.name


def no_series(most: float = 1.0) -> Any:
    """sentence"""


def silent(loss: Any) -> Any:
    return loss


def unknown_word(loss: Any) -> Any:
    """the {los} is high"""


def attribute(loss: Any) -> Any:
    """the {loss.__class__} is high"""


def bad_format(loss: Any) -> Any:
    """the {loss:q} is high"""


def text_threshold(loss: Any, most: Any = "a") -> Any:
    """high"""


def endless(loss: Any, window: float = np.inf) -> Any:
    """high"""


def by_keyword(*, loss: Any) -> Any:
    """high"""


def any_series(*loss: Any) -> Any:
    """high"""


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (endless, "window=inf; whole rows"),
        (by_keyword, "takes loss: 'Any'; series are given by position"),
        (any_series, r"takes \*loss: 'Any'; series are given by position"),
        (no_series, "no quantity"),
        (silent, "says nothing"),
        (unknown_word, r"cannot say \{los\}; close: 'loss'"),
        (attribute, r"cannot say \{loss.__class__\}"),
        (bad_format, "Unknown format code 'q'"),
        (text_threshold, "most='a'"),
    ],
)
def test_a_rule_that_cannot_work_is_refused_with_the_reason(
    condition: Callable[..., Any], words: str
) -> None:
    with pytest.raises(RuleError, match=words):
        nbp.rule(condition)
    assert condition.__name__ not in RULES


@pytest.mark.parametrize(
    "settings",
    [
        {"name": 3},
        {"says": 3},
        {"view": 3},
        {"tells": (3,)},
        {"source": 3},
        {"consequence_of": (3,)},
    ],
)
def test_what_should_be_text_and_is_not_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(RuleError, match="3; name, says, tells, view, source are text"):
        nbp.rule(**{"name": "test_text", "says": "high", **settings})(lambda loss: loss > 0)
    with pytest.raises(RuleError, match="3 is no condition"):
        nbp.rule(3)  # type: ignore[call-overload]


def test_one_word_that_is_told_may_be_given_by_itself() -> None:
    made = nbp.rule(name="test_lone_word", says="{share}", tells="share")(lambda loss: loss > 0)
    assert made.tells == ("share",)


def test_a_cell_that_is_run_twice_replaces_its_rule_and_another_of_the_name_is_refused() -> None:
    def define(most: float) -> nbp.Rule:
        def mine(loss, limit=most):  # type: ignore[no-untyped-def]
            """high"""
            return loss > limit

        return nbp.rule(mine)

    define(1.0)
    assert define(2.0) is RULES["mine"]
    with pytest.raises(DuplicateNameError, match="already registered"):
        nbp.rule(name="mine", says="other")(lambda loss: loss > 0)


def test_the_rules_of_a_run_can_be_edited_taken_away_and_added() -> None:
    rules = Rules()
    n = len(rules)
    rules.edit("loss_spike", times=3)
    del rules["dead_units"]
    other = RULES["dead_units"].but(most=0.1)
    assert rules["loss_spike"].thresholds["times"] == 3
    assert (len(rules), "dead_units" in rules) == (n - 1, False)
    with pytest.raises(KeyError, match="taken away"):
        rules["dead_units"]
    rules.add(other)
    assert rules["dead_units"] is other
    with pytest.raises(UnknownNameError, match="close: 'loss_spike'"):
        rules["loss_spik"]
    with pytest.raises(RuleError, match="a Rule is expected"):
        rules["x"] = lambda loss: loss  # type: ignore[assignment]
    assert RULES["loss_spike"].thresholds["times"] == 2.5  # those of other runs


def test_a_rule_that_is_registered_later_is_followed_as_well() -> None:
    rules = Rules()

    @nbp.rule
    def later(loss):  # type: ignore[no-untyped-def]
        """high"""
        return np.isfinite(loss)

    assert rules["later"] is later


def test_rules_are_shown_with_what_they_do_and_names_are_escaped() -> None:
    rules = Rules(lambda: {"diverging_loss": "waits for <loss>"})
    diverging = "diverging_loss(loss, times=10, apart=5, recent=50, window=500, rows=2)"
    assert f"<rule {diverging}>  waits for <loss>" in repr(rules)
    html = rules._repr_html_()
    assert "waits for &lt;loss&gt;" in html
    assert diverging in html
