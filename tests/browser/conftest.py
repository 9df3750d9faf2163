"""A real Chromium without a screen, as a reader's browser; every test skips where the machine has none."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
QUIET = (
    "--headless=new",
    "--no-sandbox",  # the gate runs as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=2600,1400",  # MLflow draws only the columns that are in sight,
)


class Reader:
    """A browser with its notes: what it asked of the network and what it complained about."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        """Go to an address with a clean slate of notes."""
        self.driver.get_log("performance")  # type: ignore[no-untyped-call]
        self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        self.driver.get(address)

    def requests(self) -> list[str]:
        """Return the addresses that pages asked for since `open`."""
        notes = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]  # type: ignore[no-untyped-call]
        return [note["params"]["request"]["url"] for note in notes if note["method"] == "Network.requestWillBeSent"]

    def complaints(self) -> list[str]:
        """Return what went to the console as an error since `open`."""
        entries = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]


@contextmanager
def browser(profile: Path) -> Iterator[Reader]:
    """Start Chromium with a profile folder of its own, and end it."""
    options = Options()
    options.binary_location = CHROMIUM or ""
    for word in (*QUIET, f"--user-data-dir={profile}"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield Reader(driver)
    finally:
        driver.quit()


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """One browser for all tests."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no Chromium here: apt-get install chromium chromium-driver")
    with browser(tmp_path_factory.mktemp("chromium")) as found:
        yield found


STORY = "pcie8-blackwell-cuda128"
MEMORY = "default: {}\n      flag: mem-fraction-static"
FAILED = "#0"
"""The launch that fails in every course of the search: the default asks for too much memory."""


@pytest.fixture(scope="session")
def story_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a short campaign on the story's modelled node, whose first launch fails in every course of it."""
    from search_spaces import node_path
    from tests.support.command_line import start_agent

    folder = tmp_path_factory.mktemp("story")
    written = node_path(STORY).read_text(encoding="utf-8")
    usual, greedy = MEMORY.format(0.85), MEMORY.format(0.95)
    assert usual in written
    node = folder / "node.yaml"
    node.write_text(written.replace(usual, greedy), encoding="utf-8")
    words = ("search", "--engine", "replay", "--node", str(node), "--budget", "24", "--name", "story")
    ended = start_agent(*words, home=folder / "home").ended
    assert ended.returncode == 0, ended.stderr
    return folder / "home"
