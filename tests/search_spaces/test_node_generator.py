"""Generated nodes: everything hangs on the seed, and each node is as hard as it should be."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from search_spaces import NodeModel, cause, true_value
from search_spaces.node_generator import FAILURES, PARAMETERS, Size, generate, node_data, random_assignments, to_yaml
from search_spaces.node_parts import PlantedFailure

SEEDS = range(12)
SIZES: tuple[Size, ...] = ("small", "medium", "large")
SAMPLES = 800


@pytest.fixture(scope="module")
def nodes() -> list[NodeModel]:
    return [generate(seed, size) for size in SIZES for seed in SEEDS]


def certain(node: NodeModel) -> list[PlantedFailure]:
    return [failure for failure in node.file.failures if not failure.is_flaky]


def test_equal_seeds_give_equal_nodes_in_every_process(tmp_path: Path) -> None:
    """Also where texts are hashed otherwise."""
    command = [sys.executable, "-m", "search_spaces.node_generator", "--seed", "5", "--size", "small"]
    run = {"capture_output": True, "text": True, "check": True, "cwd": Path(__file__).parents[2]}
    printed = [subprocess.run(command, env={"PYTHONHASHSEED": seed}, **run).stdout for seed in ("1", "2")]  # type: ignore[call-overload]
    assert printed == [to_yaml(node_data(5, "small"))] * 2
    assert generate(6, "small") != generate(5, "small")


def test_a_node_has_the_parameters_and_failures_of_its_size(nodes: list[NodeModel]) -> None:
    for node in nodes:
        size: Size = node.name.split("-")[1]  # type: ignore[assignment]
        assert len(node.space.parameters) == PARAMETERS[size]
        assert FAILURES[size] - 3 <= len(certain(node)) <= FAILURES[size]
        assert 1 <= len(node.file.failures) - len(certain(node)) <= 2
        assert 1 <= len(node.file.no_ops) <= 2
        assert all(1 <= len(failure.when) <= 3 for failure in certain(node))


def test_of_random_assignments_40_to_70_percent_fail(nodes: list[NodeModel]) -> None:
    for node in nodes:
        points = random_assignments(node, random.Random(0), SAMPLES)
        share = sum(true_value(node, point) is None for point in points) / SAMPLES
        assert 0.36 <= share <= 0.74, node.name


def test_the_default_works_on_most_nodes_and_dies_on_some(nodes: list[NodeModel]) -> None:
    working = sum(true_value(node, node.default) is not None for node in nodes)
    assert 0.7 * len(nodes) <= working < len(nodes)


def test_a_node_on_which_the_default_dies_has_a_safer_setting_that_works(nodes: list[NodeModel]) -> None:
    for node in nodes:
        ladder = [node.default]
        for safer in node.space.fallbacks:
            ladder.append({**ladder[-1], **safer})
        assert any(true_value(node, point) is not None for point in ladder), node.name


def test_every_planted_failure_shows_somewhere(nodes: list[NodeModel]) -> None:
    """Else nothing could find it."""
    for node in nodes[:: len(SEEDS) // 3]:
        points = random_assignments(node, random.Random(1), 6000)
        shown = {found.name for point in points if (found := cause(node, point)) is not None}
        assert {failure.name for failure in certain(node)} <= shown, node.name


def test_no_planted_failure_contains_another_one(nodes: list[NodeModel]) -> None:
    for node in nodes:
        names = [set(failure.when) for failure in certain(node)]
        assert not any(one < other for one in names for other in names)


def test_blames_name_parameters_of_the_cause(nodes: list[NodeModel]) -> None:
    blamed = [failure for node in nodes for failure in certain(node) if failure.blames]
    total = sum(len(certain(node)) for node in nodes)
    assert all(set(failure.blames or ()) <= set(failure.when) for failure in blamed)
    assert 0.2 * total < len(blamed) < 0.6 * total, "most logs name no parameter"


def test_drafting_pays_off_up_to_a_length(nodes: list[NodeModel]) -> None:
    """Somewhere between none and the longest, on most nodes whose default works."""
    inside = total = 0
    for node in nodes:
        lengths = node.space.parameters["draft_length"].domain
        values = [true_value(node, {**node.default, "draft_length": length}) or 0.0 for length in lengths]
        if max(values) > 0:
            total += 1
            inside += 0 < values.index(max(values)) < len(lengths) - 1
    assert inside >= 0.7 * total
