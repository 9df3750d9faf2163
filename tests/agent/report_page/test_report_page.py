"""The report without a browser: it says what the study says, escapes what logs say, and needs no network."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from agent.outcome import Outcome, OutcomeKind
from agent.report_page import render
from agent.report_page.charts import node_time_chart
from agent.report_page.measured import importances, measured_study
from agent.report_page.page import _breakable, charts_of
from agent.report_page.tables import MOST_CONDITIONS, map_columns, map_rows
from agent.rungs import RungCost
from agent.saved import times_of
from agent.summary import arms_of, summarise
from runners import Rung
from search_spaces import load_node
from tests.benchmarks.report_size import random_history

NUMBER = 40


@pytest.fixture(scope="module")
def page() -> str:
    """The page of random launches of a generated node."""
    history = random_history(5, NUMBER)
    return render(summarise(history, "random"), history, {}, "agent --flag '<b>'")


def without_plotly(page: str) -> str:
    """Return the page without plotly's own script, which is full of addresses that it never asks for."""
    return re.sub(r"<script>/\*\*.*?</script>", "", page, flags=re.DOTALL)


def test_every_launch_and_every_dead_end_is_there(page: str) -> None:
    history = random_history(5, NUMBER)
    assert all(f'id="t#{number}"' in page for number in range(NUMBER))
    assert all(f'id="{found.id}"' in page for found in history.atlas.dead_ends)


def test_commands_and_log_lines_are_escaped(page: str) -> None:
    assert "agent --flag &#39;&lt;b&gt;&#39;" in page


def test_a_log_cannot_put_anything_into_the_page() -> None:
    history = random_history(5, NUMBER)
    evil = "<script>alert('gotcha')</script> token=hf_abcdefghijklmnopqrstuv"
    trials = tuple(_saying(trial, evil) if trial.is_failed else trial for trial in history.trials)
    spiked = replace(history, trials=trials)
    page = render(summarise(spiked, "random"), spiked, {}, None)
    assert "alert(&#39;gotcha&#39;)" in page
    assert "alert('gotcha')" not in page
    assert "hf_abcdefghijklmnopqrstuv" not in page


def test_nothing_is_fetched_from_anywhere(page: str) -> None:
    rest = without_plotly(page)
    assert not re.findall(r"(?:src|href)=[\"'](?!#|data:)[^\s>]+", rest)
    assert "@import" not in rest
    assert "url(" not in rest


def test_a_study_that_measured_nothing_has_a_report_too() -> None:
    history = random_history(5, NUMBER)
    failed = replace(history, trials=tuple(trial for trial in history.trials if trial.is_failed))
    page = render(summarise(failed, "dead"), failed, {}, None)
    assert "nothing was measured" in page


def test_what_was_never_varied_has_no_importance() -> None:
    history = random_history(5, NUMBER)
    arms = arms_of(history.trials)
    best = max(arms, key=lambda arm: arm.mean).assignment
    shares = importances(history, arms, best)
    assert shares
    assert set(shares) <= set(measured_study(history.space, arms).trials[0].params)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    assert importances(history, arms[:2], best) == {}


def test_what_matters_on_a_node_is_what_the_report_says_mattered() -> None:
    """On a node where graphs and speculation decide, and all else changes a tenth at most: random launches show it."""
    history = random_history(3, 60, load_node("nvlink8-hopper-moe"))
    arms = arms_of(history.trials)
    best = max(arms, key=lambda arm: arm.mean).assignment
    assert set(list(importances(history, arms, best))[:2]) == {"cuda_graph_max_bs", "speculative_algorithm"}


def test_a_long_dead_end_does_not_widen_the_picture() -> None:
    """A flaky launch is listed with all its values: below the picture, not as its columns."""
    history = random_history(5, NUMBER)
    found = history.atlas.dead_ends[0]
    each = found.conditions[0]
    long = found.model_copy(update={"id": "Dlong00", "conditions": (each,) * (MOST_CONDITIONS + 1)})
    columns = map_columns((found,))
    assert map_columns((found, long)) == columns
    rows = {row.found.id: row.cells for row in map_rows((found, long), {}, times_of(history))}
    assert rows["Dlong00"] == ()
    assert len(rows[found.id]) == len(columns)


def test_words_may_be_broken_where_columns_are_narrow_and_stay_escaped() -> None:
    assert _breakable("a_<b>") == "a_<wbr>&lt;b&gt;"


def test_every_kind_of_end_has_a_place_in_the_chart_of_node_time() -> None:
    """A probe that could not look at something took its time too."""
    cost = RungCost(closed=2, failed=0, node_s=10.0, by_outcome_s={kind.value: 2.0 for kind in OutcomeKind})
    figure = node_time_chart({Rung.PROBE: cost})
    assert [trace.name for trace in figure.data] == [kind.value.replace("_", " ") for kind in OutcomeKind]


def test_the_charts_of_a_study_follow_from_what_it_measured() -> None:
    """What to draft at each concurrency is there exactly where the summary knows it."""
    history = random_history(5, NUMBER)
    summary = summarise(history, "random")
    told = "How many tokens to draft"
    assert (told in charts_of(summary, history)) is (summary.schedule is not None)
    assert told not in charts_of(replace(summary, schedule=None), history)


def _saying(trial: object, text: str) -> object:
    outcome: Outcome = trial.outcome  # type: ignore[attr-defined]
    assert outcome.kind is OutcomeKind.FAILED
    assert outcome.failure is not None
    line = {"number": 1, "text": text}
    failure = outcome.failure.model_validate({**outcome.failure.model_dump(), "decisive": line})
    return trial.model_copy(update={"outcome": outcome.model_copy(update={"failure": failure})})  # type: ignore[attr-defined]
