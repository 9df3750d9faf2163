"""WHY a trial ended as it did: evidence in, reason out. Rules are rows; this package is pure but for reading logs."""

from agent.classify.classifier import classify
from agent.classify.diagnose import Diagnosis, diagnose
from agent.classify.outputs import OUTPUTS_DIFFER, check_outputs, own_agreement, wrong_output
from agent.classify.registry import RULES, decisive_patterns
from agent.classify.rule import ExitFacts, Priority, Rule

__all__ = [
    "OUTPUTS_DIFFER",
    "RULES",
    "Diagnosis",
    "ExitFacts",
    "Priority",
    "Rule",
    "check_outputs",
    "classify",
    "decisive_patterns",
    "diagnose",
    "own_agreement",
    "wrong_output",
]
