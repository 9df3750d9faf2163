"""Launches of modelled nodes: their last line says the reason that the node model plants, one rule a reason."""

from __future__ import annotations

from agent.classify.rule import Priority, Rule
from agent.reasons import Reason

_BLAMES = r"(?: blames=(?:(?P<stated>none)|(?P<option1>\w+)(?:,(?P<option2>\w+))?(?:,(?P<option3>\w+))?))?$"
"""`stated`: the model says that the evidence accuses no parameter. Without `blames`, the rest of the log decides."""


def _rule(number: int, reason: Reason) -> Rule:
    return Rule(
        code=f"R{number:03}",
        name=f"modelled-{reason.value.replace('_', '-')}",
        reason=reason,
        any_of=(rf"^\[replay\] modelled failure: reason={reason.value}{_BLAMES}",),
        cure="Only a model failed. What helps on a real node stands with the rule for the other lines of its log.",
        source="runners/replay of this project, version 1 of the line",
        priority=Priority.MODELLED,
    )


RULES = tuple(_rule(number, reason) for number, reason in enumerate(Reason, start=1))
