"""Modelled launches: simulated time, noise that hangs on the work's identity, evidence that says it is modelled."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

import pytest

from runners import EngineSettings, Phase, Rung, RunRecord, Workload
from runners.ray_nodes import resources_of
from runners.registry import make_runner
from runners.replay import answer
from runners.replay_runner import ReplayRunner
from search_spaces import true_value
from tests.support.small_node import request_for, small_data, small_node, written

BASE = {"backend": "a", "draft": 2, "graph": 8, "expert": False}
TOO_LARGE = {**BASE, "graph": 64, "expert": True}
LAUNCHES = 400


def objective(record: RunRecord) -> float:
    assert record.measurement is not None
    return math.exp(statistics.fmean(math.log(level.output_tok_per_s) for level in record.measurement.levels))


def test_the_registry_knows_it() -> None:
    assert isinstance(make_runner("replay"), ReplayRunner)


def test_the_same_work_gives_the_same_answer_and_a_repeat_another_one(tmp_path: Path) -> None:
    """What was interrupted and queued again may be launched by another agent, with another trial number."""
    node = small_node()
    first = answer(node, request_for(BASE, tmp_path))
    again = answer(node, request_for(BASE, tmp_path / "elsewhere").model_copy(update={"trial": 7, "cookie": "d"}))
    assert again == first
    assert answer(node, request_for(BASE, tmp_path, identity="x/search/1")) != first


def test_another_seed_gives_another_answer(tmp_path: Path) -> None:
    node, one = small_node(), answer(small_node(), request_for(BASE, tmp_path))
    assert answer(node, request_for(BASE, tmp_path, workload=Workload(seed=1))) != one
    assert answer(small_node(seed=1), request_for(BASE, tmp_path)) != one


def test_launches_scatter_around_the_true_value_as_the_model_says(tmp_path: Path) -> None:
    """Lognormal, with one offset for all levels of a launch, and a little more for each level's requests."""
    node = small_node()
    true = true_value(node, BASE)
    assert true is not None
    records = [answer(node, request_for(BASE, tmp_path, identity=f"x/repeat/{n}")).record for n in range(LAUNCHES)]
    logs = [math.log(objective(record) / true) for record in records]
    assert abs(statistics.fmean(logs)) < 4 * 0.05 / math.sqrt(LAUNCHES)
    assert statistics.stdev(logs) == pytest.approx(0.05, rel=0.15)
    assert abs(_correlation(records)) > 0.9


def _correlation(records: list[RunRecord]) -> float:
    levels = [[r.measurement.levels[i].output_tok_per_s for r in records if r.measurement] for i in (0, 1)]
    return statistics.correlation(*levels)


def test_without_noise_a_launch_shows_the_model_itself(tmp_path: Path) -> None:
    node = small_node(noise={"launch_sd": 0, "request_sd": 0, "probe_sd": 0})
    record = answer(node, request_for(BASE, tmp_path)).record
    assert objective(record) == pytest.approx(true_value(node, BASE))
    assert record.measurement is not None
    level = record.measurement.levels[0]
    assert level.acceptance_length == pytest.approx(2.2)
    assert level.acceptance_per_position == pytest.approx((0.8, 0.4))
    assert level.step_ms_p50 == pytest.approx((1030 + 1300 + 200) / 1000)
    assert record.measurement.collective_us_per_call == pytest.approx(13)
    probe = answer(node, request_for(BASE, tmp_path, rung=Rung.PROBE)).record.probe
    assert probe is not None and (probe.pass_us, probe.calls_per_pass) == pytest.approx((1300, 100))


def test_time_is_simulated_and_serving_lasts_as_long_as_the_workload_takes(tmp_path: Path) -> None:
    node = small_node(noise={"launch_sd": 0, "request_sd": 0})
    record = answer(node, request_for(BASE, tmp_path, workload=Workload(requests=4, output_tokens=100))).record
    assert record.measurement is not None
    serving = sum(0.1 + 400 / level.output_tok_per_s for level in record.measurement.levels)
    assert record.phase_s[Phase.SERVE] == pytest.approx(serving)
    assert record.wall_s == pytest.approx(10 + 60 + 20 + 5 + serving)
    assert answer(node, request_for(BASE, tmp_path, rung=Rung.PROBE)).record.wall_s == pytest.approx(2)


def test_a_planted_failure_ends_the_launch_in_its_phase(tmp_path: Path) -> None:
    record = answer(small_node(), request_for(TOO_LARGE, tmp_path)).record
    assert (record.phase, record.exit.code, record.measurement) == (Phase.CAPTURE_GRAPHS, 1, None)
    assert record.phase_s == {Phase.SPAWN: 10, Phase.LOAD_WEIGHTS: 60, Phase.CAPTURE_GRAPHS: 7}
    assert record.wall_s == pytest.approx(77)
    assert record.leftovers.is_clean


def test_a_probe_shows_only_what_is_planted_for_probes(tmp_path: Path) -> None:
    node = small_node()
    assert answer(node, request_for(TOO_LARGE, tmp_path, rung=Rung.PROBE)).record.probe is not None
    dead = answer(node, request_for({**BASE, "backend": "c"}, tmp_path, rung=Rung.PROBE)).record
    assert dead.probe is None and dead.exit.signal == 9


def test_a_flaky_failure_comes_as_often_as_the_model_says(tmp_path: Path) -> None:
    node, point = small_node(), {**BASE, "draft": 3}
    records = [answer(node, request_for(point, tmp_path, identity=f"x/{n}")).record for n in range(LAUNCHES)]
    failed = sum(record.measurement is None for record in records)
    assert failed / LAUNCHES == pytest.approx(0.4, abs=0.1)


def test_a_silent_fallback_is_a_proof_that_a_value_had_no_effect(tmp_path: Path) -> None:
    record = answer(small_node(), request_for({**BASE, "draft": 1, "expert": True}, tmp_path)).record
    (proof,) = record.effects
    assert (proof.parameter, proof.requested, proof.effective) == ("expert", True, False)
    assert "experts are not split" in proof.evidence


def test_what_the_engine_tells_before_the_launch_is_a_rewrite(tmp_path: Path) -> None:
    data = small_data()
    data["no_ops"][0]["seen"] = "resolve"
    settings = EngineSettings(engine="replay", num_ranks=4, device="cuda", node_model=str(written(tmp_path, data)))
    resolution = ReplayRunner().resolve({**BASE, "draft": 1, "expert": True}, settings, {})
    assert resolution.assignment == {**BASE, "draft": 1}
    assert [(each.parameter, each.requested, each.resolved) for each in resolution.rewrites] == [
        ("expert", True, False)
    ]


def test_what_the_engine_refuses_at_once_is_never_launched(tmp_path: Path) -> None:
    data = small_data()
    data["failures"][0] |= {"phase": "resolve", "reason": "config_invalid", "log": "ValueError: no such pair"}
    settings = EngineSettings(engine="replay", num_ranks=4, device="cuda", node_model=str(written(tmp_path, data)))
    assert ReplayRunner().resolve(TOO_LARGE, settings, {}).error == "config_invalid: ValueError: no such pair"
    assert ReplayRunner().resolve(BASE, settings, {}).error is None


def test_everything_says_that_it_is_modelled(tmp_path: Path) -> None:
    """Log, record, figures: nobody may take a model's answer for a measurement."""
    path = str(written(tmp_path, small_data()))
    for number, point in enumerate((BASE, TOO_LARGE)):
        record = ReplayRunner().run(request_for(point, tmp_path / str(number), node_model=path))
        assert record.node == "modelled:small-node"
        assert record.log_path is not None
        lines = Path(record.log_path).read_text(encoding="utf-8").splitlines()
        assert "modelled" in lines[0] and "modelled" in lines[-1]
        assert len(lines) == record.log_lines
        assert record.measurement is None or record.measurement.extra["modelled"] == 1.0
    assert lines[-1] == "[replay] modelled failure: reason=gpu_oom blames=graph"


def test_a_modelled_launch_asks_ray_for_no_gpu(tmp_path: Path) -> None:
    request = request_for(BASE, tmp_path, node_model="node.yaml")
    assert resources_of(request.settings) == {"num_cpus": 1}
