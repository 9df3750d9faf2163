"""The flags: a pinned list, and one line that says what is wrong with a bad one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from runners.torch_engine.cli import build_parser, parse_config
from runners.torch_engine.config import ConfigError

FLAGS = (
    "--allreduce --concurrency --cuda-graph-max-bs --device --draft-agreement --draft-layers --draft-length "
    "--expert-hidden --expert-parallel --experts --experts-per-token --first-level --head-dim --heads --help --hidden "
    "--hopes --layers --output-tokens --preset --prompt-tokens --requests --result --seed --stop-below --tp --vocab"
)


def test_the_list_of_flags_is_pinned() -> None:
    """A flag is part of recorded commands: removing or renaming one breaks them."""
    options = {option for action in build_parser()._actions for option in action.option_strings if option != "-h"}
    assert sorted(options) == FLAGS.split()


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--draft-length", "9"], "draft_length=9"),
        (["--draft-length", "-1"], "draft_length=-1"),
        (["--draft-agreement", "1.5"], "draft_agreement=1.5"),
        (["--tp", "3"], "tp=3 does not divide heads=4"),
        (["--tp", "0"], "tp=0"),
        (["--experts", "3", "--expert-parallel", "on"], "does not divide experts=3"),
        (["--expert-hidden", "33"], "does not divide expert_hidden=33"),
        (["--expert-hidden", "0", "--device", "cpu"], "expert_hidden=0"),
        (["--experts-per-token", "5"], "experts_per_token=5"),
        (["--vocab", "65"], "vocab=65"),
        (["--hidden", "16"], "needs hidden >= 32"),
        (["--layers", "1"], "layers=1"),
        (["--draft-layers", "3"], "draft_layers=3"),
        (["--concurrency", "0"], "concurrency=0"),
        (["--concurrency", "1,x"], "concurrency=1,x"),
        (["--cuda-graph-max-bs", "-1"], "cuda_graph_max_bs=-1"),
        (["--prompt-tokens", "3"], "prompt_tokens=3"),
        (["--output-tokens", "1"], "output_tokens=1"),
        (["--requests", "-1"], "requests=-1"),
        (["--seed", "-1"], "seed=-1"),
        (["--allreduce", "mpi"], "mpi"),
        (["--no-such-flag"], "--no-such-flag"),
    ],
)
def test_a_bad_flag_is_named_with_its_value(flags: list[str], named: str) -> None:
    """Both the flag and what it clashes with are in the message."""
    with pytest.raises(ConfigError, match=named):
        parse_config(["--preset", "tiny", *flags])


def test_bad_flags_exit_with_two_before_anything_starts(engine: Callable[..., Any]) -> None:
    """The exit code of usage errors, as argparse has it."""
    launch = engine("--draft-length", "9")
    assert launch.exit_code == 2
    assert "error: draft_length=9" in launch.stderr
    assert launch.stdout == ""


def test_captured_batch_sizes_are_the_powers_of_two_up_to_the_limit() -> None:
    """Batches are padded to the next captured size and run eagerly beyond the largest."""
    config = parse_config(["--preset", "tiny", "--device", "cpu", "--cuda-graph-max-bs", "6"])
    assert config.graph_batch_sizes == (1, 2, 4)
    assert [config.padded_batch(batch) for batch in (1, 2, 3, 4, 5)] == [1, 2, 4, 4, 5]


def test_reading_the_flags_does_not_import_torch() -> None:
    """``--help`` and usage errors answer at once."""
    code = "import sys, runners.torch_engine.__main__; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
