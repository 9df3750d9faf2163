"""Every command of a tutorial is run as it stands there, in order, in an empty folder."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import ROOT, environment

TUTORIALS = ("agent/tutorial.md",)
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
TIMEOUT_S = 240


def commands(page: str) -> list[str]:
    """Return the lines of the page's shell blocks."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [line for block in BLOCK.findall(text) for line in block.splitlines() if line.strip()]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", TUTORIALS)
def test_every_command_does_what_the_page_promises(page: str, tmp_path: Path) -> None:
    lines = commands(page)
    assert lines
    said: dict[str, str] = {}
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "agent", f"{page} has a command that nothing runs here: {line}"
        ran = subprocess.run(
            [sys.executable, "-m", "agent", *words],
            cwd=tmp_path,
            env=environment(AGENT_HOME=str(tmp_path / "state"), COLUMNS="200"),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert ran.returncode == 0, f"{line}\n{ran.stdout}\n{ran.stderr}"
        said[line] = ran.stdout
    _the_story_is_as_told(said, tmp_path)


def _the_story_is_as_told(said: dict[str, str], folder: Path) -> None:
    """The sentences of the page that a change of the search could make untrue."""
    before, after = said["agent deadends"], said["agent deadends after-the-upgrade --all"]
    for words in ("flashinfer_fusion_trtllm", "torch_symm_mem", "nccl_algo = Tree", "allreduce:tree worked"):
        assert words in before
    assert "modelled" in said["agent best"]
    assert "allreduce:tree" in said["agent best"]
    fusion = [line for line in after.splitlines() if "flashinfer_fusion_trtllm" in line]
    assert not any("confirmed" in line for line in fusion)
    assert any("confirmed" in line and "torch_symm_mem" in line for line in after.splitlines())
    assert os.access(folder / "report.html", os.R_OK)
