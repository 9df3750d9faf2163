"""`agent best --export`: a finished study is taken away as it was measured."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

Invoke = Callable[..., Result]


def test_the_script_of_a_finished_study_starts_its_engine(finished: Path, invoke: Invoke) -> None:
    script = invoke("best", "--export", "sh", "--home", str(finished)).stdout
    ran = subprocess.run(["/bin/sh", "-s"], input=script, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_the_document_has_the_assignment_that_best_names(finished: Path, invoke: Invoke) -> None:
    best = json.loads(invoke("best", "--json", "--home", str(finished)).stdout)
    taken = json.loads(invoke("best", "--export", "json", "--home", str(finished)).stdout)
    assert taken["assignment"] == best["assignment"]
    assert taken["trial"] == best["trials"][0]


def test_a_container_of_an_unknown_engine_asks_for_an_image(finished: Path, invoke: Invoke) -> None:
    refused = invoke("best", "--export", "compose", "--home", str(finished))
    assert refused.exit_code == 2
    assert "--image" in refused.output
    named = invoke("best", "--export", "compose", "--image", "mine:1", "--home", str(finished))
    assert "image: mine:1" in named.stdout
