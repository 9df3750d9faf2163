"""The report in a real browser: it asks nothing of the network, draws its charts, and its tables sort."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from agent.cli.main import main
from agent.home import Home
from agent.reading import read_study
from agent.report_page.page import charts_of
from tests.browser.conftest import Reader

WAIT_S = 120
SHAPES = ".plot path, .plot rect, .trace path, .contourlayer path, .scatterlayer path"
LARGEST_BYTES = 8 * 2**20


@pytest.fixture(scope="module")
def page(story_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the story's campaign."""
    folder = tmp_path_factory.mktemp("report")
    result = CliRunner().invoke(main, ["report", "--home", str(story_home), "--output", str(folder)])
    assert result.exit_code == 0, result.output
    return folder / "report.html"


@pytest.fixture
def opened(page: Path, reader: Reader) -> Reader:
    """The browser with the report open and its charts drawn."""
    reader.open(page.as_uri())
    drawn = (By.CSS_SELECTOR, ".js-plotly-plot .main-svg")
    WebDriverWait(reader.driver, WAIT_S).until(lambda driver: driver.find_elements(*drawn))
    return reader


def test_it_asks_nothing_of_the_network_and_complains_of_nothing(opened: Reader) -> None:
    assert all(address.startswith(("file:", "data:", "blob:")) for address in opened.requests())
    assert opened.complaints() == []


def test_every_figure_that_the_study_has_is_drawn_with_something_in_it(opened: Reader, story_home: Path) -> None:
    """Which figures there are follows from what was measured, and that from the course that the search took."""
    reading = read_study(Home.find(str(story_home)), None, None)
    figures = opened.driver.find_elements(By.TAG_NAME, "figure")
    captions = [figure.find_element(By.TAG_NAME, "figcaption").text for figure in figures]
    assert captions == list(charts_of(reading.summary, reading.history))
    assert {"Every launch", "Throughput at each concurrency", "Where the node time went"} <= set(captions)
    for caption, figure in zip(captions, figures, strict=True):
        assert figure.find_elements(By.CSS_SELECTOR, SHAPES), caption


def test_the_verdict_stands_first_and_the_map_names_reasons_and_conditions(opened: Reader, story_home: Path) -> None:
    best = json.loads(CliRunner().invoke(main, ["best", "--json", "--home", str(story_home)]).stdout)
    found = json.loads(CliRunner().invoke(main, ["deadends", "--json", "--home", str(story_home)]).stdout)
    assert opened.driver.find_element(By.CSS_SELECTOR, ".verdict strong").text == best["verdict"]
    rows = [row.text for row in opened.driver.find_elements(By.CSS_SELECTOR, ".map tbody tr")]
    assert len(rows) == len(found)
    for each in found:
        assert any(each["id"] in row and each["reason"] in row for row in rows)


def test_tables_sort_both_ways(opened: Reader) -> None:
    head = opened.driver.find_element(By.XPATH, "//section[@id='launches']//th[text()='tok/s']")
    cells = "#launches tbody tr td:nth-child(4)"

    def rates() -> list[float]:
        texts = (cell.text for cell in opened.driver.find_elements(By.CSS_SELECTOR, cells))
        return [float(text) if text else float("-inf") for text in texts]

    head.click()
    assert rates() == sorted(rates())
    head.click()
    assert rates() == sorted(rates(), reverse=True)


def test_a_dead_end_opens_from_its_row(opened: Reader) -> None:
    link = opened.driver.find_element(By.CSS_SELECTOR, ".map tbody tr a")
    opened.driver.execute_script("arguments[0].click()", link)  # type: ignore[no-untyped-call]
    details = opened.driver.find_element(By.ID, link.text)
    WebDriverWait(opened.driver, WAIT_S).until(lambda _driver: details.get_attribute("open"))
    assert "cure" in details.text


def test_the_file_is_small_enough_to_be_sent(page: Path) -> None:
    assert page.stat().st_size < LARGEST_BYTES
