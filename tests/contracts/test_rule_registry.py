"""Every failure rule is documented, has a real log that it alone wins, and can never be slow."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.classify import RULES, Rule, classify, decisive_patterns
from agent.classify.document import FOLDER, pages
from agent.classify.lines import BENIGN, PHASES, READY, STOP_ASKED, TELLING
from agent.classify.matcher import MAX_PROGRAM_SIZE, find, pattern_problem
from agent.classify.outputs import OUTPUTS_DIFFER
from agent.classify.registry import collect
from agent.classify.rules import FAMILIES
from agent.outcome import Failure
from agent.reasons import Reason
from runners import Exit, Phase, RunRecord
from search_spaces import catalogue, load_space

FIXTURES = Path(__file__).parents[1] / "agent" / "classify" / "fixtures"
RECORDS: dict[str, dict[str, Any]] = yaml.safe_load((FIXTURES / "records.yaml").read_text())
LINES: dict[str, list[str]] = {
    code: lines
    for name in ("lines", "lines_engines")
    for code, lines in yaml.safe_load((FIXTURES / f"{name}.yaml").read_text(encoding="utf-8")).items()
}
_PATHS = ("p2p_level", "p2p_disable", "shm_disable", "cumem_enable")
_SHAPES = ("algo", "proto", "min_ctas", "max_ctas", "nthreads", "buffsize")
NCCL_PARAMETERS = frozenset(f"nccl_{name}" for name in (*_PATHS, *_SHAPES))
_FIXED_SETTINGS = frozenset(
    {
        "max_model_len",
        "tensor_parallel_size",
        "tp",
        "quantization",
        "attention_backend",
        "trust_remote_code",
        "model",
        "draft_model",
    }
)
"""Settings of SGLang and vLLM that are fixed in our spaces; a space of the user's own may have them."""
_OF_THE_SPACES = frozenset(name for space in catalogue() for name in load_space(space).parameters)
PARAMETERS = NCCL_PARAMETERS | _FIXED_SETTINGS | _OF_THE_SPACES
ENV_NAMES = {name.upper(): name for name in NCCL_PARAMETERS}
every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)


def failure_of(log: Path, facts_of: str, rules: tuple[Rule, ...] = RULES) -> Failure:
    facts = {"phase": "init_distributed", "code": 1} | RECORDS["records"].get(facts_of, {})
    phase = Phase(facts.pop("phase"))
    stacks = FIXTURES / f"{facts_of}.stacks"
    stacks_path = str(stacks) if stacks.is_file() else None
    record = RunRecord(exit=Exit(**facts), phase=phase, wall_s=1.0, log_path=str(log), stacks_path=stacks_path)
    failure = classify(record, env_names=ENV_NAMES, rules=rules).failure
    assert failure is not None
    return failure


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a log for each rule: its own, or the first message of the software in `lines_engines.yaml`."""
    folder = tmp_path_factory.mktemp("logs")
    found = {}
    for rule in RULES:
        own = FIXTURES / f"{rule.code}.log"
        found[rule.code] = own if own.is_file() else folder / own.name
        if not own.is_file():
            found[rule.code].write_text(log_of(rule.code, LINES[rule.code][0]), encoding="utf-8")
    return found


def log_of(code: str, line: str) -> str:
    """Return the line, with the note that goes with rules which ask for a kill."""
    return line + ("\nrank 1 died: signal 9 (SIGKILL)" if code in ("M004", "M017") else "")


@every_rule
def test_a_rule_wins_its_own_fixture(rule: Rule, logs: dict[str, Path]) -> None:
    failure = failure_of(logs[rule.code], rule.code)
    assert (failure.rule, failure.reason) == (rule.code, rule.reason)


@every_rule
def test_each_pattern_of_a_rule_matches_a_line_of_the_software(rule: Rule) -> None:
    own = FIXTURES / f"{rule.code}.log"
    lines = own.read_text().splitlines() if own.is_file() else []
    lines += [line for text in LINES.get(rule.code, []) for line in text.splitlines()]
    dead = [pattern for pattern in rule.any_of if not any(find(pattern, line.encode()) for line in lines)]
    assert dead == []


@pytest.mark.parametrize(("code", "line"), [(code, line) for code, lines in LINES.items() for line in lines])
def test_a_line_of_the_software_alone_is_enough(code: str, line: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(log_of(code, line), encoding="utf-8")
    assert failure_of(log, code).rule == code


def test_every_fixture_belongs_to_a_rule() -> None:
    codes = {rule.code for rule in RULES}
    assert {path.stem for path in FIXTURES.glob("*.log")} | set(LINES) == codes
    assert set(RECORDS["records"]) | set(RECORDS["written"]) | set(RECORDS["raised"]) | set(LINES) <= codes


@pytest.mark.parametrize("seed", range(5))
def test_the_winner_does_not_depend_on_the_order_of_rules(seed: int, logs: dict[str, Path]) -> None:
    rules = list(RULES)
    random.Random(seed).shuffle(rules)
    winners = {rule.code: failure_of(logs[rule.code], rule.code, tuple(rules)) for rule in RULES}
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
    assert f"## {rule.code} " in pages()[f"reasons/{rule.reason}.md"]


@every_rule
def test_a_rule_blames_parameters_that_exist(rule: Rule) -> None:
    assert set(rule.blames) <= PARAMETERS


@every_rule
def test_a_cure_asks_only_for_groups_that_every_line_of_its_rule_has(rule: Rule) -> None:
    wanted = set(re.findall(r"\{(\w+)\}", rule.cure))
    assert all(wanted <= set(re.compile(pattern).groupindex) for pattern in rule.any_of)


def test_patterns_need_little_work_for_each_byte() -> None:
    of_rules = [
        pattern
        for rule in RULES
        for pattern in (*rule.any_of, *rule.none_of, *rule.above, *rule.frame, *rule.last_words, *rule.stacks)
    ]
    phases = [pattern for pattern, _ in PHASES]
    problems = [pattern_problem(each) for each in (*of_rules, *TELLING, *BENIGN, *READY, *STOP_ASKED, *phases)]
    assert set(problems) == {None}, MAX_PROGRAM_SIZE


def test_decisive_patterns_are_harmless_for_an_engine_that_backtracks() -> None:
    """Runners match them with `re`: no `.*`, and no repetition within a repetition."""
    re.compile("|".join(decisive_patterns()))
    for pattern in decisive_patterns():
        assert not re.search(r"\.[*+]", pattern), pattern
        assert not re.search(r"[*+]\)[*+{]", pattern), pattern


def test_decisive_patterns_find_the_line_that_decided_their_fixture(logs: dict[str, Path]) -> None:
    for rule in (rule for rule in RULES if rule.is_decisive):
        text = logs[rule.code].read_text(encoding="utf-8")
        assert any(re.search(pattern, text, re.MULTILINE) for pattern in decisive_patterns()), rule.code


def test_every_reason_has_a_rule() -> None:
    assert {rule.reason for rule in RULES} == set(Reason)


def test_the_page_about_reasons_is_up_to_date() -> None:
    """Repeat `python -m agent.classify.document` after a change of a rule or reason."""
    written = {str(path.relative_to(FOLDER)) for path in (FOLDER / "reasons").glob("*.md")} | {"reasons.md"}
    assert written == set(pages())
    assert all((FOLDER / name).read_text(encoding="utf-8") == text for name, text in pages().items())
    assert all(f"reasons/{reason}.md" in pages() for reason in Reason)
