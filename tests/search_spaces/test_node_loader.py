"""Node model files: every mistake is answered with file, line and key; variants; what ships."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from search_spaces import SpecificationError, best, load_node, shipped_nodes, true_value
from search_spaces.node_generator import node_data
from tests.support.small_node import small_data, small_node, written

Change = Callable[[dict[str, Any]], object]
MISTAKES: list[tuple[Change, str, str]] = [
    (lambda data: data.pop("facts"), "facts", "required"),
    (lambda data: data.pop("space"), "space", "write the space here, or name one"),
    (lambda data: data.update(noize={}), "noize", "Did you mean 'noise'?"),
    (lambda data: data["facts"].pop("num_ranks"), "facts", "'num_ranks' is missing"),
    (lambda data: data["space"]["parameters"]["draft"].update(default=9), "space.parameters.draft", "not one of its"),
    (lambda data: data["performance"]["effects"][1].update(component="stepp"), "performance.effects.1", "'step'"),
    (lambda data: data["performance"]["effects"][0].update(plus_us=3), "performance.effects.0", "exactly one"),
    (lambda data: data["performance"]["effects"][0].update(when={"backent": ["b"]}), "when.backent", "'backend'"),
    (lambda data: data["performance"]["effects"][0].update(when={"backend": ["d"]}), "when.backend", "a, b, c"),
    (lambda data: data["performance"]["effects"][1].update(when={"graph": ["0"]}), "when.graph", "write 0, not '0'"),
    (lambda data: data["performance"]["draft"].update(parameter="backend"), "draft.parameter", "numbers"),
    (
        lambda data: data["failures"][0].update(when={"graph": {"at_least": 65}}),
        "failures.0.when",
        "none of its values",
    ),
    (lambda data: data["failures"][0].update(when={"backend": {"at_least": 1}}), "failures.0.when", "need numbers"),
    (lambda data: data["failures"][0].update(when={"graph": {}}), "failures.0.when", "a list of values, or"),
    (lambda data: data["failures"][0].update(rung="probe"), "failures.0.rung", "cannot see 'graph'"),
    (lambda data: data["failures"][0].update(phase="loading"), "failures.0.phase", "'load_weights'"),
    (lambda data: data["failures"][1].update(name="too-large"), "failures.1.name", "another name"),
    (lambda data: data["failures"][1].update(where={"cudda": ["12"]}), "where.cudda", "'cuda'"),
    (lambda data: data["failures"][0].update(blames=["grahp"]), "failures.0.blames", "'graph'"),
    (lambda data: data["failures"][2].update(probability=1.2), "failures.2.probability", "at most 1"),
    (lambda data: data.update(rungs=["full"]), "failures.1.rung", "no probe rung"),
    (lambda data: data["no_ops"][0].update(resolved={"expert": 0}), "no_ops.0.resolved.expert", "not one of its"),
    (lambda data: data["failures"][0].update(seconds=-1), "failures.0.seconds", "at least 0"),
    (lambda data: data["performance"]["effects"][1].update(times=float("inf")), "effects.1.times", "finite number"),
    (lambda data: data["facts"].update(gpu_memory_bytes=float("nan")), "facts.gpu_memory_bytes", "finite number"),
    (lambda data: data.update(narrow={"pins": {"draft": 7}}), "narrow", "0, 1, 2, 3"),
]


@pytest.mark.parametrize(("change", "key", "remedy"), MISTAKES, ids=[key for _, key, _ in MISTAKES])
def test_a_mistake_is_named_with_its_place(change: Change, key: str, remedy: str, tmp_path: Path) -> None:
    data = small_data()
    change(data)
    path = written(tmp_path, data)
    with pytest.raises(SpecificationError) as raised:
        load_node(path)
    assert str(raised.value).startswith(f"{path}:")
    assert key in str(raised.value)
    assert remedy in str(raised.value)


def test_a_mistake_points_to_its_line(tmp_path: Path) -> None:
    """Also inside the space that stands in the file."""
    data = small_data()
    data["space"]["parameters"]["expert"]["defualt"] = False
    path = written(tmp_path, data)
    line = next(number for number, text in enumerate(path.read_text().splitlines(), 1) if "defualt" in text)
    with pytest.raises(SpecificationError) as raised:
        load_node(path)
    assert str(raised.value).startswith(f"{path}:{line}: space.parameters.expert.defualt: ")


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    assert load_node(written(tmp_path, small_data())) == small_node()


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    """Parsed once for each state of the file."""
    data = small_data()
    path = written(tmp_path, data)
    assert load_node(path) is load_node(path)
    data["performance"]["compute"]["base_us"] = 123_456
    written(tmp_path, data)
    assert load_node(path).file.performance.compute.base_us == 123_456


def test_a_variant_is_the_same_node_with_other_facts(tmp_path: Path) -> None:
    written(tmp_path, small_data())
    variant = tmp_path / "upgraded.yaml"
    variant.write_text("node: upgraded\nlike: node.yaml\nfacts: {cuda: '13.1', packages: {y: '1'}}\n")
    node = load_node(variant)
    assert node.name == "upgraded"
    assert node.facts["packages"] == {"x": "2.1", "y": "1"}
    assert true_value(node, {**node.default, "backend": "c"}) is not None
    assert true_value(small_node(), {**node.default, "backend": "c"}) is None


def test_a_variant_names_facts_that_are_there(tmp_path: Path) -> None:
    written(tmp_path, small_data())
    variant = tmp_path / "upgraded.yaml"
    variant.write_text("node: upgraded\nlike: node.yaml\nfacts:\n  cudda: '13.1'\n")
    with pytest.raises(SpecificationError, match=r"upgraded\.yaml:4: facts\.cudda: .*'cuda'"):
        load_node(variant)


def test_variants_in_a_circle_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("node: a\nlike: a.yaml\nfacts: {}\n")
    with pytest.raises(SpecificationError, match="circle"):
        load_node(path)


def test_without_a_probe_rung_no_parameter_is_seen_by_one(tmp_path: Path) -> None:
    data = small_data()
    data["rungs"], data["failures"] = ["full"], []
    assert load_node(written(tmp_path, data)).space.probe_parameters == ()


def test_the_file_on_the_page_loads(tmp_path: Path) -> None:
    """Somebody who has only the page begins with it."""
    page = (Path(__file__).parents[2] / "search_spaces" / "nodes" / "README.md").read_text(encoding="utf-8")
    path = tmp_path / "node.yaml"
    block = page.partition("## A whole file\n\n```yaml node\n")[2].partition("\n```")[0]
    path.write_text(block, encoding="utf-8")
    node = load_node(path)
    assert (node.name, len(node.file.failures), len(node.file.no_ops)) == ("my-node", 1, 1)


def test_an_unknown_name_lists_what_ships() -> None:
    with pytest.raises(SpecificationError, match="pcie8-blackwell-cuda128"):
        load_node("pcie8-blackwell-cuda127")


@pytest.mark.parametrize("name", shipped_nodes())
def test_a_shipped_node_loads_and_has_a_best(name: str) -> None:
    node = load_node(name)
    assert node.name == name
    assert len(node.file.about) > 20
    found = best(node)
    assert found is not None and found.value > 0


@pytest.mark.parametrize("name", [name for name in shipped_nodes() if name.startswith("generated-")])
def test_a_shipped_generated_node_is_what_the_generator_makes_today(name: str) -> None:
    """Else benchmarks of the same seed would speak of different nodes."""
    _, size, seed = name.split("-")
    made = node_data(int(seed), size)  # type: ignore[arg-type]
    assert load_node(name).file.model_dump(mode="json")["failures"] == _plain(made["failures"])
    assert load_node(name).file.performance.model_dump(mode="json") == _performance(made)


def _plain(failures: object) -> list[dict[str, Any]]:
    from search_spaces.node_parts import PlantedFailure

    assert isinstance(failures, list)
    return [PlantedFailure.model_validate(each).model_dump(mode="json") for each in failures]


def _performance(data: dict[str, object]) -> dict[str, Any]:
    from search_spaces.node_parts import Performance

    return Performance.model_validate(data["performance"]).model_dump(mode="json")
