"""Rules that users bring in a YAML file; they stand beside the built-in ones and are judged in the same way."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from agent.classify.matcher import pattern_problem
from agent.classify.registry import RULES
from agent.classify.rule import Priority, Rule
from agent.reasons import Reason
from runners import Phase
from search_spaces import YamlDocument

_NAMED_PRIORITIES = {priority.name.lower(): priority for priority in Priority}
_PATTERN_KEYS = ("any_of", "none_of", "above", "frame")


class UserRule(BaseModel):
    """One rule as it stands in the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str = Field(pattern=r"^[A-Z]\d{3}$")
    name: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    reason: Reason
    any_of: tuple[str, ...] = Field(min_length=1)
    none_of: tuple[str, ...] = ()
    above: tuple[str, ...] = ()
    frame: tuple[str, ...] = ()
    phases: tuple[Phase, ...] = ()
    blames: tuple[str, ...] = ()
    cure: str = Field(min_length=1)
    source: str = "a rule of the user"
    priority: str = Field(default="specific", pattern="^(?:specific|general|symptom|wrapper|bare|follow_up)$")


class RuleFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rules: tuple[UserRule, ...]


def load_rules(path: Path, known: tuple[Rule, ...] = RULES) -> tuple[Rule, ...]:
    """Return the known rules and those of the file.

    Raises:
        SpecificationError: The file is wrong; its text names file, line and key.
    """
    return with_user_rules(read_rules(path, known), known)


def read_rules(path: Path, known: tuple[Rule, ...] = RULES) -> tuple[UserRule, ...]:
    """Return the rules of the file, checked against each other and against the known ones.

    Raises:
        SpecificationError: The file is wrong; its text names file, line and key.
    """
    document = YamlDocument(path)
    found = document.validate(RuleFile).rules
    taken = {rule.code for rule in known} | {rule.name for rule in known}
    for index, rule in enumerate(found):
        _check_patterns(document, index, rule)
        for key, label in (("code", rule.code), ("name", rule.name)):
            if label in taken:
                raise document.error(f"'{label}' is taken by another rule", "rules", index, key)
            taken.add(label)
    return found


def with_user_rules(users: tuple[UserRule, ...], known: tuple[Rule, ...] = RULES) -> tuple[Rule, ...]:
    """Return the known rules and the user's; of the same code, which a later version may have taken, the user's."""
    codes = {rule.code for rule in users}
    return (*(rule for rule in known if rule.code not in codes), *(_as_rule(rule) for rule in users))


def _check_patterns(document: YamlDocument, index: int, rule: UserRule) -> None:
    for key in _PATTERN_KEYS:
        for position, pattern in enumerate(getattr(rule, key)):
            problem = pattern_problem(pattern)
            if problem:
                raise document.error(f"not a usable RE2 pattern: {problem}", "rules", index, key, position)


def _as_rule(rule: UserRule) -> Rule:
    fields = rule.model_dump(exclude={"priority"})
    return Rule(**fields, priority=_NAMED_PRIORITIES[rule.priority])
