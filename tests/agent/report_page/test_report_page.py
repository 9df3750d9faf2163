"""The report without a browser: it says what the study says, escapes what logs say, and needs no network."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from agent.outcome import Outcome, OutcomeKind
from agent.report_page import render
from agent.report_page.measured import importances, measured_study
from agent.summary import arms_of, summarise
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
    study = measured_study(history.space, arms_of(history.trials))
    shares = importances(study)
    assert shares
    assert set(shares) <= set(study.trials[0].params)
    assert importances(measured_study(history.space, arms_of(history.trials)[:2])) == {}


def _saying(trial: object, text: str) -> object:
    outcome: Outcome = trial.outcome  # type: ignore[attr-defined]
    assert outcome.kind is OutcomeKind.FAILED
    assert outcome.failure is not None
    line = {"number": 1, "text": text}
    failure = outcome.failure.model_validate({**outcome.failure.model_dump(), "decisive": line})
    return trial.model_copy(update={"outcome": outcome.model_copy(update={"failure": failure})})  # type: ignore[attr-defined]
