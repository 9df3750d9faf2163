"""Rules of the user's own: judged like the others, and refused with file and line where they are wrong."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from agent.classify import RULES, diagnose
from agent.classify.user_rules import load_rules
from agent.reasons import Reason
from search_spaces import SpecificationError

GOOD = """\
rules:
  - code: Z001
    name: experts-on-strike
    reason: host_oom
    any_of: ["experts went on (?P<option>strike)"]
    cure: "Pay for the {option}."
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rules.yaml"


def test_a_rule_of_the_user_names_the_reason(path: Path) -> None:
    """It wins over the catch-all rules and fills its cure from the line."""
    path.write_text(GOOD)
    failure = diagnose(io.BytesIO(b"RuntimeError: the experts went on strike"), rules=load_rules(path)).failure
    assert failure is not None
    assert (failure.rule, failure.reason, failure.cure) == ("Z001", Reason.HOST_OOM, "Pay for the strike.")


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("went on (", "went on ((", 5),
        ("experts went on (?P<option>strike)", ".*", 5),
        ("experts went on (?P<option>strike)", "(?:a{1,30}){1,30}b", 5),
        ("experts went on", "(?=a)", 5),
        ("host_oom", "host_omm", 4),
        ("Z001", "Z1", 2),
        ("Z001", RULES[0].code, 2),
        ("name: experts-on-strike", f"name: {RULES[0].name}", 3),
        ("    cure:", "    curse:", 6),
    ],
)
def test_a_mistake_is_named_with_file_and_line(old: str, new: str, line: int, path: Path) -> None:
    """A bad pattern too: nobody finds it by reading a traceback."""
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(SpecificationError) as caught:
        load_rules(path)
    assert (caught.value.path, caught.value.line) == (path, line)
