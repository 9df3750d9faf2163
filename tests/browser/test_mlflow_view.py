"""MLflow's own view in a real browser: what failed, why, and where; and the map on the study's run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from agent.cli.main import main
from tests.browser.conftest import FAILED, Reader
from tests.browser.screenshots import opens, served
from tests.support.waiting import wait_until

WAIT_S = 180

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def view(story_home: Path, reader: Reader) -> Iterator[str]:
    """The page that `agent ui` names, once it answers."""
    with served(story_home) as page:
        wait_until(lambda: opens(reader, page), WAIT_S)
        yield page


def _shows(reader: Reader, *texts: str) -> None:
    def has_all(_driver: object) -> bool:
        shown = reader.driver.find_element(By.TAG_NAME, "body").text
        return all(text in shown for text in texts)

    WebDriverWait(reader.driver, WAIT_S).until(has_all, f"not all of {texts} are shown")


def failed(home: Path) -> dict[str, object]:
    """The launch of the study that fails in every course of it, explained."""
    found = CliRunner().invoke(main, ["explain", FAILED, "--json", "--home", str(home)])
    content: dict[str, object] = json.loads(found.stdout)
    assert content["reason"]
    return content


def test_the_page_that_the_command_names_says_what_failed_why_and_where(
    view: str, reader: Reader, story_home: Path
) -> None:
    trial = failed(story_home)
    reader.open(view)
    _shows(reader, "reason", "phase", "wall_s", str(trial["reason"]), f"{trial['trial']} ")


def test_a_failed_run_shows_reason_line_and_cure(view: str, reader: Reader, story_home: Path) -> None:
    trial = failed(story_home)
    run_id = _run_of(story_home, str(trial["trial"]).removeprefix("#"))
    reader.open(f"{view.partition('/runs')[0]}/runs/{run_id}")
    _shows(reader, str(trial["reason"]), "Cure:")


def test_the_study_s_run_carries_the_map(view: str, reader: Reader, story_home: Path) -> None:
    reader.open(f"{view.partition('/runs')[0]}/runs/{_run_of(story_home, '')}/artifacts")
    _shows(reader, "dead_ends.html", "report.md")


def _run_of(home: Path, number: str) -> str:
    """Return the id of the run of a launch; of the study itself for an empty number."""
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{home / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("story")
    assert experiment is not None
    for run in client.search_runs([experiment.experiment_id], max_results=500):
        if run.data.tags.get("agent.trial", "") == number:
            return str(run.info.run_id)
    raise AssertionError(f"no run of launch {number}")
