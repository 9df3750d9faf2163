"""Every code block of the documentation is what it says: commands that exist with options that exist, files that load.

What needs a GPU, a cluster or an engine is parsed by the very program that would run it. Commands that read a study are
run in `tests/agent/cli/test_pages.py`, the tutorial in `test_tutorials.py`.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import click
import pytest
import yaml

from agent.classify.user_rules import read_rules
from agent.cli.main import main
from agent.spec import load_spec
from runners.load_client.prompts import read_dataset
from runners.torch_engine.cli import parse_config
from search_spaces import load_node, load_replayed, load_space
from tests.support.code_blocks import Block, ShellCommand, blocks, commands, inline_commands
from tests.support.command_line import ROOT, environment

LANGUAGES = ("sh", "console", "text", "json", "python")
NODE = "pcie8-blackwell-cuda128"
MINIMAL_SPACE = {"meaning": "m", "source": "s", "flag": "f"}
NUMBERS, SWITCH = {"values": [1, 2], "default": 1}, {"values": [False, True], "default": False}
PARAMETERS = {
    **dict.fromkeys(("nccl_min_ctas", "nccl_max_ctas", "ep_size", "topk", "num_steps"), NUMBERS),
    "draft_tokens": {"values": [2, 3], "default": 2},
    "expert_parallel": SWITCH,
    "allreduce": {"values": ["nccl", "gloo", "custom"], "default": "nccl"},
}
"""What the relations of the page about spaces are about."""


def test_every_block_says_what_it_is() -> None:
    """A block without a language is one that nobody checks."""
    strange = [str(each) for each in blocks() if each.language not in (*LANGUAGES, *(f"yaml {kind}" for kind in YAML))]
    assert not strange


@pytest.mark.parametrize("command", commands(), ids=str)
def test_every_command_would_be_taken(command: ShellCommand) -> None:
    """By the program that it names: a command or an option that is gone or misspelt fails."""
    assert command.program in TAKEN_BY, f"nobody here knows {command.program}"
    TAKEN_BY[command.program](command.words[1:])


@pytest.mark.parametrize("command", inline_commands(), ids=str)
def test_commands_in_sentences_would_be_taken_too(command: ShellCommand) -> None:
    """Where a sentence names one without what it is about, that is no mistake."""
    with suppress(click.MissingParameter):
        parsed_by_agent(command.words[1:])


def parsed_by_agent(words: tuple[str, ...]) -> None:
    """Give the words to click as `agent` does; nothing is run."""
    _parsed(main, "agent", list(words))


def _parsed(command: click.Command, name: str, words: list[str]) -> None:
    if not isinstance(command, click.Group):
        command.make_context(name, words)
        return
    found, called, left = command.resolve_command(click.Context(command, info_name=name), words)
    assert called is not None
    _parsed(called, str(found), left)


def _by_ray(words: tuple[str, ...]) -> None:
    from ray.scripts.scripts import cli

    _parsed(cli, "ray", list(words))


def _by_mlflow(words: tuple[str, ...]) -> None:
    from mlflow.cli import cli

    _parsed(cli, "mlflow", list(words))


def _by_make(words: tuple[str, ...]) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(words) <= set(targets)


def _by_sbatch(words: tuple[str, ...]) -> None:
    """The job's script is there, behind options of Slurm's own, and hands its words to a search."""
    number = next(index for index, word in enumerate(words) if not word.startswith("--"))
    assert {word.partition("=")[0] for word in words[:number]} <= {"--nodes", "--dependency", "--time"}
    assert (ROOT / words[number]).exists()
    parsed_by_agent(("search", *words[number + 1 :]))


def _by_pip(words: tuple[str, ...]) -> None:
    """What is installed by hand is the pinned version, or one of our own optional packages."""
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    for word in words:
        assert "==" not in word or word in pins
        assert not word.endswith(".txt") or (ROOT / word).exists()


def _by_python(words: tuple[str, ...]) -> None:
    if words[0] != "-m":
        assert (ROOT / words[0]).exists()
        return
    module, rest = words[1], words[2:]
    assert importlib.util.find_spec(module) is not None
    own = rest[: rest.index("--")] if "--" in rest else rest
    if module == "runners.torch_engine":
        parse_config(list(own))
        return
    assert not [word for word in own if word.startswith("--") and word not in _options(module)]
    parse_config(list(rest[len(own) + 1 :]))


@cache
def _options(module: str) -> frozenset[str]:
    """Return the options that a module's own help lists."""
    asked = [sys.executable, "-m", module, "--help"]
    said = subprocess.run(asked, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True).stdout
    return frozenset(re.findall(r"--[a-z][a-z-]+", said))


def _by_pytest(words: tuple[str, ...]) -> None:
    places = words[2:] if words[:1] == ("-m",) else words
    assert all((ROOT / place).exists() for place in places)


def _as_it_is(words: tuple[str, ...]) -> None:
    """A program of somebody else's that is not installed here."""


TAKEN_BY: dict[str, Callable[[tuple[str, ...]], None]] = {
    "agent": parsed_by_agent,
    "ray": _by_ray,
    "mlflow": _by_mlflow,
    "make": _by_make,
    "sbatch": _by_sbatch,
    "pip": _by_pip,
    "python": _by_python,
    ".venv/bin/pytest": _by_pytest,
    "export": _as_it_is,
    "kubectl": _as_it_is,
}


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_every_file_of_yaml_loads(block: Block, tmp_path: Path) -> None:
    """Through the reader that reads such a file of the user's."""
    YAML[block.language.removeprefix("yaml ")](block, tmp_path)


def _study(block: Block, folder: Path) -> None:
    load_spec(_written(folder / "study.yaml", block.text), {})


def _rules(block: Block, folder: Path) -> None:
    assert read_rules(_written(folder / "rules.yaml", block.text))


def _node(block: Block, folder: Path) -> None:
    """A variant stands beside the node that it names, which is the block above it."""
    for each in [other for other in blocks("yaml node") if other.page == block.page and other.line <= block.line]:
        path = _written(folder / f"{yaml.safe_load(each.text)['node']}.yaml", each.text)
    assert load_node(path).space.parameters


def _parameters(block: Block, folder: Path) -> None:
    """Parameters alone, as they stand in a space."""
    content = {"engine": "mine", "parameters": yaml.safe_load(block.text)}
    load_space(str(_written(folder / "space.yaml", json.dumps(content))))


def _relations(block: Block, folder: Path) -> None:
    """Relations alone, between parameters that they name."""
    parameters = {name: {**MINIMAL_SPACE, "flag": name, **each} for name, each in PARAMETERS.items()}
    content = {"engine": "mine", "parameters": parameters, **yaml.safe_load(block.text)}
    load_space(str(_written(folder / "space.yaml", json.dumps(content))))


YAML = {"study": _study, "rules": _rules, "node": _node, "parameters": _parameters, "relations": _relations}


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_every_line_of_json_is_what_its_page_says(block: Block, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in block.text.splitlines()]
    JSON_LINES[block.page](lines, tmp_path)


def _dataset(lines: list[dict[str, object]], folder: Path) -> None:
    path = _written(folder / "prompts.jsonl", "\n".join(map(json.dumps, lines)) + "\n")
    assert len(read_dataset(path, output_tokens=8)) == len(lines)


def _table(lines: list[dict[str, object]], folder: Path) -> None:
    """With the head that the page describes."""
    backends = {"values": ["a", "b", "c"], "default": "a", "seen_by_probe": True}
    space = {"engine": "mine", "parameters": {"backend": {**MINIMAL_SPACE, **backends}}}
    facts = {"device": "cuda", "num_ranks": 8, "engine_version": "mine 1"}
    head = {"node": "mine", "space": space, "facts": facts}
    path = _written(folder / "table.jsonl", "\n".join(map(json.dumps, [head, *lines])) + "\n")
    assert len(load_replayed(path).trials) == len(lines)  # type: ignore[union-attr]


JSON_LINES = {"runners/load_client/README.md": _dataset, "search_spaces/nodes/README.md": _table}


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_every_program_runs(block: Block, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", block.text],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout


def test_what_is_run_on_a_node_model_says_what_the_page_shows(tmp_path: Path) -> None:
    """The page about node models: the answer of a model to one assignment, and a random node that can be used."""
    page = "search_spaces/nodes/README.md"
    _node([block for block in blocks("yaml node") if block.page == page][-1], tmp_path)
    asked = [each for each in commands() if each.where.startswith(page) and each.program == "python"]
    for command in (each for each in asked if each.words[2] != "agent.recorded"):
        ran = subprocess.run(
            [sys.executable, *command.words[1:]],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        if command.words[2] == "search_spaces.node_generator":
            load_node(_written(tmp_path / "node.yaml", ran.stdout))
        else:
            assert ran.stdout.startswith("modelled node my-node")


@pytest.mark.parametrize(
    "words",
    [("serach",), ("search", "--bugdet", "3"), ("best", "--export", "toml"), ("search", "--pin", "draft_length")],
)
def test_a_command_that_is_wrong_would_be_found(words: tuple[str, ...]) -> None:
    """A check that takes everything proves nothing."""
    with pytest.raises(click.UsageError):
        parsed_by_agent(words)
