"""Every failure rule is documented, has a real log that it alone wins, and can never be slow."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.classify import RULES, Rule, classify, decisive_patterns
from agent.classify.document import PAGE, page
from agent.classify.lines import BENIGN, TELLING
from agent.classify.matcher import _compiled, find
from agent.classify.outputs import OUTPUTS_DIFFER
from agent.classify.registry import collect
from agent.classify.rules import FAMILIES
from agent.outcome import Failure
from agent.reasons import Reason
from runners import Exit, Phase, RunRecord

FIXTURES = Path(__file__).parents[1] / "agent" / "classify" / "fixtures"
RECORDS: dict[str, dict[str, Any]] = yaml.safe_load((FIXTURES / "records.yaml").read_text())
LINES: dict[str, list[str]] = yaml.safe_load((FIXTURES / "lines.yaml").read_text())
_PATHS = ("p2p_level", "p2p_disable", "shm_disable", "cumem_enable")
_SHAPES = ("algo", "proto", "min_ctas", "max_ctas", "nthreads", "buffsize")
NCCL_PARAMETERS = frozenset(f"nccl_{name}" for name in (*_PATHS, *_SHAPES))
PARAMETERS = NCCL_PARAMETERS | {"allreduce", "expert_parallel", "cuda_graph_max_bs", "draft_length"}
ENV_NAMES = {name.upper(): name for name in NCCL_PARAMETERS}
MAX_PROGRAM_SIZE = 1500
"""Steps of a pattern's automaton: RE2 does at most size * length work, whatever the text."""

every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)


def failure_of(log: Path, facts_of: str, rules: tuple[Rule, ...] = RULES) -> Failure:
    facts = {"phase": "init_distributed", "code": 1} | RECORDS["records"].get(facts_of, {})
    phase = Phase(facts.pop("phase"))
    record = RunRecord(exit=Exit(**facts), phase=phase, wall_s=1.0, log_path=str(log))
    failure = classify(record, env_names=ENV_NAMES, rules=rules).failure
    assert failure is not None
    return failure


@every_rule
def test_a_rule_wins_its_own_fixture(rule: Rule) -> None:
    failure = failure_of(FIXTURES / f"{rule.code}.log", rule.code)
    assert (failure.rule, failure.reason) == (rule.code, rule.reason)


@every_rule
def test_each_pattern_of_a_rule_matches_a_line_of_the_software(rule: Rule) -> None:
    lines = (FIXTURES / f"{rule.code}.log").read_text().splitlines() + LINES.get(rule.code, [])
    dead = [pattern for pattern in rule.any_of if not any(find(pattern, line.encode()) for line in lines)]
    assert dead == []


@pytest.mark.parametrize(("code", "line"), [(code, line) for code, lines in LINES.items() for line in lines])
def test_a_line_of_the_software_alone_is_enough(code: str, line: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    killed_note = "\nrank 1 died: signal 9 (SIGKILL)" if code == "M004" else ""
    log.write_text(line + killed_note)
    assert failure_of(log, code).rule == code


def test_every_fixture_belongs_to_a_rule() -> None:
    codes = {rule.code for rule in RULES}
    assert {path.stem for path in FIXTURES.glob("*.log")} == codes
    assert set(RECORDS["records"]) | set(RECORDS["written"]) | set(RECORDS["raised"]) | set(LINES) <= codes


@pytest.mark.parametrize("seed", range(5))
def test_the_winner_does_not_depend_on_the_order_of_rules(seed: int) -> None:
    rules = list(RULES)
    random.Random(seed).shuffle(rules)
    winners = {rule.code: failure_of(FIXTURES / f"{rule.code}.log", rule.code, tuple(rules)) for rule in RULES}
    assert {code: failure.rule for code, failure in winners.items()} == {code: code for code in winners}


def test_a_code_or_name_used_twice_is_refused() -> None:
    with pytest.raises(ValueError, match=RULES[0].code):
        collect([*FAMILIES, (RULES[0],)])


@pytest.mark.parametrize("rule", [*RULES, OUTPUTS_DIFFER], ids=lambda rule: rule.code)
def test_a_rule_is_documented(rule: Rule) -> None:
    assert re.fullmatch(r"[A-Z]\d{3}", rule.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", rule.name)
    assert len(rule.cure) > 20
    assert re.search(r"\d", rule.source), "a source names a version"
    assert rule.any_of or rule.exit_facts or rule is OUTPUTS_DIFFER
    assert rule.code in page()


@every_rule
def test_a_rule_blames_parameters_that_exist(rule: Rule) -> None:
    assert set(rule.blames) <= PARAMETERS


@every_rule
def test_a_cure_asks_only_for_groups_that_every_line_of_its_rule_has(rule: Rule) -> None:
    wanted = set(re.findall(r"\{(\w+)\}", rule.cure))
    assert all(wanted <= set(re.compile(pattern).groupindex) for pattern in rule.any_of)


def test_patterns_need_little_work_for_each_byte() -> None:
    patterns = [pattern for rule in RULES for pattern in (*rule.any_of, *rule.none_of)]
    sizes = {pattern: _compiled(pattern).programsize for pattern in (*patterns, *TELLING, *BENIGN)}
    assert max(sizes.values()) <= MAX_PROGRAM_SIZE


def test_decisive_patterns_are_harmless_for_an_engine_that_backtracks() -> None:
    """Runners match them with `re`: no `.*`, and no repetition within a repetition."""
    re.compile("|".join(decisive_patterns()))
    for pattern in decisive_patterns():
        assert not re.search(r"\.[*+]", pattern), pattern
        assert not re.search(r"[*+]\)[*+{]", pattern), pattern


def test_decisive_patterns_find_the_line_that_decided_their_fixture() -> None:
    for rule in (rule for rule in RULES if rule.is_decisive):
        text = (FIXTURES / f"{rule.code}.log").read_text()
        assert any(re.search(pattern, text, re.MULTILINE) for pattern in decisive_patterns()), rule.code


def test_every_reason_that_a_log_can_show_now_has_a_rule() -> None:
    without = {Reason.JIT_COMPILE_ERROR, Reason.NETWORK_OR_AUTH, Reason.DRAFT_MISMATCH, Reason.MODEL_LOAD}
    assert {rule.reason for rule in RULES} == set(Reason) - without


def test_the_page_about_reasons_is_up_to_date() -> None:
    """Repeat `python -m agent.classify.document` after a change of a rule or reason."""
    assert PAGE.read_text(encoding="utf-8") == page()
    assert all(f"## {reason}" in page() for reason in Reason)
