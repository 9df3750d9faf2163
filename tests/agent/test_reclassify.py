"""A rule that improved changes what stored failures mean: laid over them, for every reader, and nothing is launched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent.classify import RULES, classify
from agent.clean_evidence import clean_outcome
from agent.cli.main import main
from agent.errors import UsageError
from agent.heritage import chart_of
from agent.judge import judge
from agent.mirror.runs import run_of
from agent.outcome import OutcomeKind
from agent.reasons import Reason
from agent.reclassify import reclassify
from agent.store.opening import open_storage
from agent.store.study_store import BUDGET, StudyStore
from agent.store.trial import Kind, Trial
from agent.study_rules import rules_of, rules_of_file, store_rules
from agent.wishes import read_wishes
from runners import Exit, Phase, RunRecord
from tests.support.simulated_study import LEASE
from tests.support.stores import sqlite_store, work

RULES_FILE = """\
rules:
  - code: Z001
    name: experts-on-strike
    reason: topology_unsupported
    any_of: ["experts went on strike"]
    blames: [backend]
    cure: "Pay for the strike."
"""
LOG = "INFO 11-29 16:31:56 starting\nthe experts went on strike with key hf_abcdefghijklmnopqrst\n"


def failed(store: StudyStore, folder: Path, kind: Kind = Kind.SEARCH, log: str = LOG) -> Trial:
    """Store a launch that failed in a way that no built-in rule knows, as the campaign would."""
    folder.mkdir(parents=True)
    path = folder / "engine.log"
    path.write_text(log, encoding="utf-8")
    record = RunRecord(exit=Exit(code=1), phase=Phase.SERVE, wall_s=1.0, log_path=str(path))
    trial = store.open_trial(work(kind, backend="b"), "cookie", LEASE, str(folder))
    outcome = judge(trial, record, store.manifest.space, None, 0, rules_of(store))
    return store.close(trial, clean_outcome(outcome, ()), record)


def reopened(store: StudyStore) -> StudyStore:
    """Return the study as another process reads it."""
    return StudyStore(open_storage(store.url), store.url, store.name)


def reasons(store: StudyStore) -> list[Reason]:
    """Return the reasons of all failures."""
    trials = (*store.trials(), *store.probes())
    return [trial.outcome.failure.reason for trial in trials if trial.outcome and trial.outcome.failure]


@pytest.fixture
def rules_file(tmp_path: Path) -> Path:
    """A rule that knows what went wrong."""
    path = tmp_path / "rules.yaml"
    path.write_text(RULES_FILE, encoding="utf-8")
    return path


@pytest.fixture
def store(tmp_path: Path) -> StudyStore:
    """A study with a launch and a probe that failed."""
    found = sqlite_store(tmp_path)
    found.set_attribute(BUDGET, 3)
    failed(found, tmp_path / "0")
    failed(found, tmp_path / "p0", Kind.PROBE)
    return found


def test_rules_of_a_study_are_read_by_whoever_resumes_it(store: StudyStore, rules_file: Path, tmp_path: Path) -> None:
    """The file may be gone by then; what runs from now on is judged by the stored rules."""
    store_rules(store, rules_of_file(str(rules_file)))
    rules_file.unlink()
    again = reopened(store)
    assert [rule.code for rule in rules_of(again)] == [*(rule.code for rule in RULES), "Z001"]
    trial = failed(again, tmp_path / "1")
    assert trial.outcome is not None and trial.outcome.failure is not None
    assert trial.outcome.failure.cure == "Pay for the strike."


def test_judging_again_lays_the_new_verdict_over_the_stored_one(store: StudyStore, rules_file: Path) -> None:
    """For this process and for every later one; the trials of the storage stay as they were told."""
    before = reasons(store)
    assert before == [Reason.UNKNOWN, Reason.UNKNOWN]
    store_rules(store, rules_of_file(str(rules_file)))
    found = reclassify(store, rules_of(store), {})
    assert [(change.label, change.after.reason) for change in found.changes] == [
        ("#0", Reason.TOPOLOGY_UNSUPPORTED),
        ("p0", Reason.TOPOLOGY_UNSUPPORTED),
    ]
    assert reasons(store) == reasons(reopened(store)) == [Reason.TOPOLOGY_UNSUPPORTED] * 2
    assert all(trial.is_failed and trial.counts for trial in store.trials())
    stored = open_storage(store.url).get_all_trials(1, deepcopy=False)[0]
    assert stored.user_attrs["outcome"]["failure"]["reason"] == "unknown"


def test_judging_twice_changes_nothing(store: StudyStore, rules_file: Path) -> None:
    """It is a pure function of the storage and the logs."""
    store_rules(store, rules_of_file(str(rules_file)))
    reclassify(store, rules_of(store), {})
    again = reopened(store)
    assert reclassify(again, rules_of(again), {}).changes == ()


def test_a_failure_whose_log_is_gone_keeps_its_verdict(store: StudyStore, rules_file: Path, tmp_path: Path) -> None:
    """Without its log, any rule would only see how the process ended."""
    (tmp_path / "0" / "engine.log").unlink()
    store_rules(store, rules_of_file(str(rules_file)))
    found = reclassify(store, rules_of(store), {})
    assert (found.judged, found.without_log) == (1, ("#0",))
    assert reasons(store) == [Reason.UNKNOWN, Reason.TOPOLOGY_UNSUPPORTED]


def test_new_evidence_is_masked_like_the_old(store: StudyStore, rules_file: Path) -> None:
    """The log may hold what the engine got to see."""
    store_rules(store, rules_of_file(str(rules_file)))
    found = reclassify(store, rules_of(store), {"MY_TOKEN": "starting-with-sesame"})
    assert "hf_abc" not in json.dumps([change.after.model_dump(mode="json") for change in found.changes])


def test_map_and_mirror_follow(store: StudyStore, rules_file: Path) -> None:
    """Both are made from the trials as they are read."""
    store_rules(store, rules_of_file(str(rules_file)))
    reclassify(store, rules_of(store), {})
    again = reopened(store)
    atlas = chart_of(again, read_wishes(again))
    assert {found.reason for found in atlas.dead_ends} == {Reason.TOPOLOGY_UNSUPPORTED}
    assert run_of(again.trials()[0]).tags["reason"] == "topology_unsupported"


def test_a_verdict_is_what_a_fresh_classification_says(store: StudyStore) -> None:
    """With the same rules nothing differs from the first judgement."""
    assert reclassify(store, RULES, {}).changes == ()
    record = store.trials()[0].record
    assert record is not None and classify(record).kind is OutcomeKind.FAILED


def test_the_command_says_what_changed(store: StudyStore, rules_file: Path, tmp_path: Path) -> None:
    """In words and as JSON; the rules stay with the study."""
    words = ("reclassify", "study", "--storage", store.url, "--home", str(tmp_path))
    result = CliRunner().invoke(main, [*words, "--rules", str(rules_file)])
    assert result.exit_code == 0, result.output
    assert "#0: unknown (none) → topology_unsupported (Z001), blames backend" in result.stdout
    assert "2 failures judged again, 2 differ" in result.stdout
    again = CliRunner().invoke(main, [*words, "--json"])
    assert json.loads(again.stdout) == {"judged": 2, "without_log": [], "changes": []}


def test_a_rules_file_that_is_wrong_changes_nothing(store: StudyStore, tmp_path: Path) -> None:
    """It is read before anything is stored."""
    with pytest.raises(UsageError, match="--rules"):
        rules_of_file(str(tmp_path / "missing.yaml"))
    assert rules_of(store) == RULES
