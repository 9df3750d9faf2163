"""Pictures of the pages that people look at, for the documentation.

    python -m tests.browser.screenshots --home agent-state --into pictures

Needs Chromium and its driver. The study is the last one of the home; MLflow is served on 127.0.0.1 meanwhile.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from runners.ports import free_port
from tests.browser.conftest import Reader, browser
from tests.support.command_line import agent, environment
from tests.support.waiting import wait_until

WAIT_S = 180


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--home", type=Path, required=True, help="state folder of a finished study")
    parser.add_argument("--into", type=Path, required=True, help="folder for the pictures")
    given = parser.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser(Path(folder) / "profile") as reader:
        written = agent("report", "--output", folder, home=given.home)
        assert written.returncode == 0, written.stderr
        reader.driver.set_window_size(1400, 2600)
        take(reader, (Path(folder) / "report.html").as_uri(), given.into / "report.png", ".js-plotly-plot .main-svg")
        with served(given.home) as page:
            reader.driver.set_window_size(2000, 1100)
            wait_until(lambda: opens(reader, page), WAIT_S)
            take(reader, page, given.into / "mlflow-runs.png", "[col-id] a")


def take(reader: Reader, address: str, picture: Path, shown: str) -> None:
    """Take a picture of a page once something of this selector is on it."""
    reader.driver.get(address)
    there: Callable[[object], object] = lambda _driver: reader.driver.find_elements(By.CSS_SELECTOR, shown)  # noqa: E731
    WebDriverWait(reader.driver, WAIT_S).until(there)
    reader.driver.save_screenshot(str(picture))  # type: ignore[no-untyped-call]
    print(picture)


def opens(reader: Reader, page: str) -> bool:
    """Return whether the server answers yet."""
    from selenium.common.exceptions import WebDriverException

    try:
        reader.driver.get(page)
    except WebDriverException:
        return False
    return "MLflow" in reader.driver.title


@contextmanager
def served(home: Path) -> Iterator[str]:
    """Serve MLflow's view of the study, and give the page that `agent ui` names."""
    command = [sys.executable, "-u", "-m", "agent", "ui", "--port", str(free_port()), "--home", str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().removeprefix("open ").strip()
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
