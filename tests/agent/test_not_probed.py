"""What a probe cannot look at, from the runner to the screen: neither a pass nor a failure, and a launch decides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.home import Home
from agent.outcome import OutcomeKind
from agent.reading import read_study
from agent.store.trial import Kind
from tests.support.command_line import SYNTHETIC, agent, query
from tests.support.synthetic_engine import NOT_PROBED

PARTLY = "tests.support.synthetic_engine:PartlyProbedEngine"


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The home of a search whose probes cannot look at symmetric memory, and what it printed."""
    home = tmp_path_factory.mktemp("partly") / "home"
    done = agent("search", *SYNTHETIC, "--engine", PARTLY, "--budget", "16", home=home)
    assert done.returncode == 0, done.stderr
    return home, done.stdout


def test_it_is_stored_and_not_asked_again(searched: tuple[Path, str]) -> None:
    history = read_study(Home.find(str(searched[0])), None, None).history
    unseen = [probe for probe in history.probes if probe.is_not_probed]
    assert {probe.work.resolved["allreduce"] for probe in unseen} >= {"symm_mem_one_shot", "symm_mem_two_shot"}
    assert len({probe.work.identity for probe in unseen}) == len(unseen)
    assert not any(probe.is_measured or probe.is_failed for probe in unseen)
    states = query(
        searched[0],
        "SELECT DISTINCT state FROM trials JOIN trial_user_attributes USING (trial_id) "
        "WHERE key = 'outcome' AND json_extract(value_json, '$.kind') = 'not_probed'",
    )
    assert states == [("PRUNED",)]


def test_the_map_draws_no_conclusion(searched: tuple[Path, str]) -> None:
    history = read_study(Home.find(str(searched[0])), None, None).history
    labels = {f"p{probe.number}" for probe in history.probes if probe.is_not_probed}
    named = {label for found in history.atlas.dead_ends for label in (*found.support, *found.contradicting)}
    assert labels and not labels & named


def test_a_launch_may_still_show_it(searched: tuple[Path, str]) -> None:
    """Nothing stands in the way of a launch, while the same probe is not asked for again."""
    history = read_study(Home.find(str(searched[0])), None, None).history
    unseen = next(probe for probe in history.probes if probe.is_not_probed)
    assert history.admit({**unseen.work.resolved, "draft_length": 7}, Kind.SEARCH, "test") is not None
    assert history.admit(unseen.work.resolved, Kind.PROBE, "test") is None


def test_the_screen_and_the_explanation_say_why(searched: tuple[Path, str]) -> None:
    home, printed = searched
    assert "not probed" in printed and NOT_PROBED in printed
    history = read_study(Home.find(str(home)), None, None).history
    first = next(probe for probe in history.probes if probe.is_not_probed)
    assert f"not probed: {NOT_PROBED}" in agent("explain", f"p{first.number}", home=home).stdout


def test_mlflow_s_table_says_why(searched: tuple[Path, str]) -> None:
    (path,) = searched[0].glob("mlartifacts/**/probes.json")
    table = json.loads(path.read_text(encoding="utf-8"))
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]
    unseen = [row for row in rows if row["outcome"] == OutcomeKind.NOT_PROBED]
    assert unseen and {row["note"] for row in unseen} == {NOT_PROBED}
    assert {row["pass_us"] for row in unseen} == {None}
