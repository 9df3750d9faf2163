"""optuna-dashboard opens the study's storage as it is."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from urllib.error import URLError

from runners.ports import free_port
from tests.support.waiting import wait_until


def test_it_lists_the_study_and_its_trials(story_home: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "optuna_dashboard._cli", f"sqlite:///{story_home / 'study.db'}"]
    with subprocess.Popen([*command, "--host", "127.0.0.1", "--port", str(port)]) as process:
        try:
            listed = wait_until(lambda: _asked(f"http://127.0.0.1:{port}/api/studies"), 180)
            by_name = {study["study_name"]: study["study_id"] for study in listed["study_summaries"]}
            assert {"story", "story/probes"} <= set(by_name)
            study = _asked(f"http://127.0.0.1:{port}/api/studies/{by_name['story']}?after=0")
            assert study is not None
            assert {trial["state"] for trial in study["trials"]} == {"Complete", "Pruned"}  # the first one failed
        finally:
            process.terminate()


def _asked(address: str) -> dict[str, list[dict[str, str]]] | None:
    try:
        with urllib.request.urlopen(address, timeout=20) as answer:  # noqa: S310 (loopback)
            content: dict[str, list[dict[str, str]]] = json.load(answer)
            return content
    except URLError:
        return None
