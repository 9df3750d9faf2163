"""Recorded tables: a study's trials replayed, in files that other people write too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runners import EngineSettings, Rung, TrialRequest, Workload
from runners.replay import recorded_answer
from runners.replay_runner import ReplayRunner
from search_spaces import RecordedNode, SpecificationError, load_replayed
from tests.support.small_node import request_for, small_data

A = {"backend": "a", "draft": 2, "graph": 8, "expert": False}
CSV = """backend,draft,quick,tok_per_s@1,tok_per_s@8,reason,phase,seconds,log
nccl,3,true,100,400,,,310,
nccl,3,true,110,410,,,300,
nccl,0,true,120,300,,,290,
tree,3,true,,,collective_error,capture_graphs,60,RuntimeError: NCCL error: invalid usage
"""


def table(folder: Path, *rows: dict[str, object]) -> Path:
    path = folder / "table.jsonl"
    data = small_data()
    head = {"node": "recorded", "space": data["space"], "facts": data["facts"]}
    path.write_text("\n".join(json.dumps(line) for line in (head, *rows)) + "\n", encoding="utf-8")
    return path


def rated(rate: float, rung: str = "full", **changes: object) -> dict[str, object]:
    levels = [{"concurrency": 1, "tok_per_s": rate}, {"concurrency": 8, "tok_per_s": 4 * rate}]
    return {"assignment": {**A, **changes}, "rung": rung, "seconds": 50, "levels": levels}


def dead(rung: str, **changes: object) -> dict[str, object]:
    failure = {"reason": "assertion", "phase": "warmup", "log": ["AssertionError"], "exit": {"signal": 9}}
    return {"assignment": {**A, **changes}, "rung": rung, "failure": failure}


def loaded(path: Path) -> RecordedNode:
    node = load_replayed(path)
    assert isinstance(node, RecordedNode)
    return node


def request(folder: Path, identity: str = "x/0", rung: Rung = Rung.FULL, **changes: object) -> TrialRequest:
    return request_for({**A, **changes}, folder, identity=identity, rung=rung)  # type: ignore[dict-item]


def test_a_recorded_trial_comes_back_and_says_that_it_is_modelled(tmp_path: Path) -> None:
    node = loaded(table(tmp_path, rated(100)))
    found = recorded_answer(node, request(tmp_path))
    assert found.record.measurement is not None
    assert [level.output_tok_per_s for level in found.record.measurement.levels] == [100, 400]
    assert (found.record.wall_s, found.record.node) == (50, "modelled:recorded")
    assert "modelled" in found.log[0]


def test_of_several_trials_the_identity_picks_one(tmp_path: Path) -> None:
    node = loaded(table(tmp_path, rated(100), rated(120), dead("full")))
    answers = [recorded_answer(node, request(tmp_path, f"x/{number}")).record for number in range(30)]
    again = [recorded_answer(node, request(tmp_path, f"x/{number}")).record for number in range(30)]
    assert answers == again
    assert {r.measurement.levels[0].output_tok_per_s if r.measurement else None for r in answers} == {100, 120, None}


def test_an_assignment_that_was_not_recorded_is_refused_before_the_launch(tmp_path: Path) -> None:
    path = table(tmp_path, rated(100), rated(90, draft=3))
    settings = EngineSettings(engine="replay", num_ranks=4, device="cuda", node_model=str(path))
    assert ReplayRunner().resolve(A, settings, {}).error is None
    assert "not recorded" in (ReplayRunner().resolve({**A, "draft": 1}, settings, {}).error or "")


def test_what_failed_as_a_probe_fails_as_a_launch_too(tmp_path: Path) -> None:
    node = loaded(table(tmp_path, rated(100), dead("probe", backend="c")))
    record = recorded_answer(node, request(tmp_path, backend="c")).record
    assert record.measurement is None and record.exit.signal == 9


def test_the_space_is_narrowed_to_what_was_recorded_and_the_first_launch_is_the_default(tmp_path: Path) -> None:
    node = loaded(table(tmp_path, rated(100, draft=3), rated(90, draft=0, backend="b")))
    domains = {name: each.domain for name, each in node.space.parameters.items()}
    assert domains == {"backend": ("a", "b"), "draft": (0, 3), "graph": (8,), "expert": (False,)}
    assert node.space.default_on(node.facts)["draft"] == 3
    assert node.space.probe_parameters == (), "no probe was recorded"


def test_the_best_is_the_best_mean(tmp_path: Path) -> None:
    node = loaded(table(tmp_path, rated(100), rated(120), rated(115, draft=3), dead("full", backend="c")))
    assert node.best() == ({**A, "draft": 3}, pytest.approx(230))
    assert node.value({**A, "backend": "c"}) is None


def test_a_sheet_of_somebody_is_a_table(tmp_path: Path) -> None:
    """CSV: parameters, tok_per_s@LEVEL, and how it failed. The space is what stands in the columns."""
    path = tmp_path / "sheet.csv"
    path.write_text(CSV, encoding="utf-8")
    node = loaded(path)
    assert {name: each.domain for name, each in node.space.parameters.items()} == {
        "backend": ("nccl", "tree"),
        "draft": (0, 3),
        "quick": (True,),
    }
    assert node.value({"backend": "nccl", "draft": 0, "quick": True}) == pytest.approx((120 * 300) ** 0.5)
    tree = request_for({"backend": "tree", "draft": 3, "quick": True}, tmp_path, workload=Workload(concurrency=(8,)))
    assert recorded_answer(node, tree).log[-1] == "[replay] modelled failure: reason=collective_error blames=none"


@pytest.mark.parametrize(
    ("row", "fragments"),
    [
        ({"assignment": {**A, "draft": 9}}, [":2:", "draft", "0, 1, 2, 3"]),
        ({"assignment": {"backend": "a"}}, [":2:", "lacks draft"]),
        ({"assignment": A, "levels": [{"concurrency": 1, "tok_per_s": 0}]}, [":2:", "levels.0.tok_per_s"]),
        ({**rated(1), "rung": "probe"}, ["no launch of the full rung"]),
    ],
)
def test_a_mistake_is_named_with_its_line(row: dict[str, object], fragments: list[str], tmp_path: Path) -> None:
    path = table(tmp_path, row)
    with pytest.raises(SpecificationError) as raised:
        load_replayed(path)
    assert str(raised.value).startswith(str(path))
    assert not [fragment for fragment in fragments if fragment not in str(raised.value)], str(raised.value)


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    path = table(tmp_path, rated(1))
    path.write_text(path.read_text() + "{broken\n")
    with pytest.raises(SpecificationError, match=r"table\.jsonl:3: not JSON"):
        load_replayed(path)
