"""What a neighbour does to a measurement: measured in pairs, kept with its date, asked before trials run together."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent.cli.main import main
from agent.errors import NodeUnusableError, UsageError
from agent.home import Home
from agent.interference import (
    FLAG,
    Interference,
    check_parallel,
    interference,
    known,
    measure,
    parallel_problem,
    remember,
)
from agent.interference_run import objectives, request_of_test, slots_of_test
from runners import EngineSettings, Exit, Latency, LevelMeasurement, Measurement, Phase, RunRecord
from runners.slot import Slot

WHEN = datetime(2026, 11, 29, tzinfo=UTC)
FACTS = {"hostname": "here", "device": "cpu", "num_ranks": 2, "gpu_count": 0}


def node(loss: float, noise: float = 0.02, rounds: int = 6, seed: int = 1) -> Interference:
    """Return what is measured on a node where a neighbour takes this share, and launches differ by that much."""
    rng, order = random.Random(seed), list[int]()

    def launch(number: int) -> list[float]:
        order.append(number)
        worth = 100.0 if number == 1 else 100.0 * (1 - loss)
        return [worth * math.exp(rng.gauss(0.0, noise)) for _ in range(number)]

    alone, beside = measure(launch, seed, rounds)
    assert sorted(order) == [1] * rounds + [2] * rounds and [len(pair) for pair in beside] == [2] * rounds
    return interference("here", "cpu", 2, WHEN, alone, beside)


def test_a_neighbour_that_takes_a_third_is_seen() -> None:
    """And the ratio is what it takes."""
    found = node(1 / 3)
    assert found.ratio == pytest.approx(2 / 3, rel=0.05)
    assert not found.is_within_noise
    assert "would not measure themselves" in found.words()


def test_a_neighbour_that_takes_nothing_is_allowed() -> None:
    """The whole interval lies within what launches differ by themselves."""
    found = node(0.0, noise=0.05, rounds=30)
    assert found.low < 1.0 < found.high
    assert found.is_within_noise
    assert "may run side by side" in found.words()


def test_too_few_rounds_do_not_show_that_it_is_harmless() -> None:
    """An interval wider than the noise is no proof."""
    assert not node(0.0, noise=0.05, rounds=2).is_within_noise


def test_on_a_restless_node_a_harmful_neighbour_does_not_pass_for_noise() -> None:
    """Other work disturbs launches there already: that is no leave to disturb them more."""
    found = node(0.3, noise=0.5, rounds=200)
    assert found.noise > 0.3 and not found.is_within_noise


def test_alone_and_side_by_side_take_turns_in_a_drawn_order() -> None:
    """What drifts over the test meets both; equal seeds give equal orders."""

    def order_of(seed: int) -> list[int]:
        order: list[int] = []

        def launch(number: int) -> list[float]:
            order.append(number)
            return [1.0] * number

        measure(launch, seed, 8)
        return order

    assert order_of(3) == order_of(3)
    assert {tuple(order_of(3)[i : i + 2]) for i in range(0, 16, 2)} == {(1, 2), (2, 1)}


def test_what_was_measured_is_kept_by_node_device_and_ranks(tmp_path: Path) -> None:
    """A newer measurement takes the place of the older one of the same; others stay."""
    home = Home(tmp_path)
    assert known(home) == []
    first, other = node(0.3), node(0.3).model_copy(update={"num_ranks": 4})
    newer = node(0.0, noise=0.05, rounds=30)
    for each in (first, other, newer):
        remember(home, each)
    assert known(home) == [other, newer]


def test_a_file_that_cannot_be_read_says_what_to_do(tmp_path: Path) -> None:
    """No traceback for a broken file."""
    (tmp_path / "interference.json").write_text("{", encoding="utf-8")
    with pytest.raises(UsageError, match="agent doctor --interference"):
        known(Home(tmp_path))


def test_trials_run_together_only_where_it_was_measured_and_is_harmless(tmp_path: Path) -> None:
    """One after the other always; the message names the command to measure, or the measurement, and the way around."""
    home = Home(tmp_path)
    check_parallel(home, 1, FACTS)
    with pytest.raises(UsageError, match=rf"agent doctor --interference --tp 2 --device cpu.*{FLAG}"):
        check_parallel(home, 2, FACTS)
    remember(home, node(0.3))
    with pytest.raises(UsageError, match=r"measured on 2026-11-29: beside a neighbour"):
        check_parallel(home, 2, FACTS)
    remember(home, node(0.0, noise=0.05, rounds=30))
    check_parallel(home, 2, FACTS)
    assert parallel_problem(home, "elsewhere", "cpu", 2) is not None


def test_no_more_trials_run_together_than_were_measured(tmp_path: Path) -> None:
    """What one neighbour does not do, three may."""
    home = Home(tmp_path)
    remember(home, node(0.0, noise=0.05, rounds=30))
    with pytest.raises(UsageError, match=r"only 2: agent doctor .*--trials-per-node 4"):
        check_parallel(home, 4, FACTS)
    rows = [tuple(100.0 * math.exp(random.Random(row).gauss(0.0, 0.01)) for _ in range(4)) for row in range(30)]
    found = interference("here", "cpu", 2, WHEN, [row[0] for row in rows], rows)
    assert found.at_once == 4 and "beside 3 neighbours" in found.words()
    remember(home, found)
    check_parallel(home, 4, FACTS)


def test_each_width_of_a_study_is_asked_for_as_often_as_it_fits(tmp_path: Path) -> None:
    """On eight GPUs, of four trials at most two have four ranks, and one that takes all of them has no neighbour."""
    home, facts = Home(tmp_path), {"hostname": "here", "device": "cuda", "num_ranks": 4, "gpu_count": 8}
    quiet = node(0.0, noise=0.05, rounds=30).model_copy(update={"device": "cuda", "num_ranks": 4})
    remember(home, quiet)
    check_parallel(home, 4, facts, (4, 8))
    with pytest.raises(UsageError, match=r"--tp 1 --device cuda --trials-per-node 4"):
        check_parallel(home, 4, facts, (1, 4, 8))


def test_the_search_refuses_before_anything_is_written(tmp_path: Path) -> None:
    """With exit code 2; forced, the plan is made."""
    home = ["--home", str(tmp_path / "state"), "--trials-per-node", "2", "--device", "cpu", "--dry-run"]
    refused = CliRunner().invoke(main, ["search", *home])
    assert refused.exit_code == 2 and "--interference" in refused.output
    assert not (tmp_path / "state").exists()
    forced = CliRunner().invoke(main, ["search", *home, FLAG])
    assert forced.exit_code == 0 and "2 trials at the same time, each with core" in forced.output


def settings(device: str = "cuda", ranks: int = 2) -> EngineSettings:
    """Return the settings of the test's launches."""
    return EngineSettings(engine="torch", num_ranks=ranks, device=device)


def test_each_launch_has_a_slot_of_its_own() -> None:
    """Of the GPUs that are visible, or of the cores, as trials side by side have them."""
    cores = {"numa_cpus": {"0": "0-7"}}
    own = slots_of_test(settings(), {"gpu_count": 4, **cores}, {}, 2)
    assert [(each.gpus, each.cores) for each in own] == [((0, 1), (0, 1, 2, 3)), ((2, 3), (4, 5, 6, 7))]
    named = slots_of_test(settings(ranks=1), {"gpu_count": 8, **cores}, {"CUDA_VISIBLE_DEVICES": "5,7"}, 2)
    assert [each.gpus for each in named] == [(5,), (7,)]
    assert [each.cores for each in slots_of_test(settings("cpu"), cores, {}, 4)] == [(0, 1), (2, 3), (4, 5), (6, 7)]
    with pytest.raises(UsageError, match="need 8 GPUs, this node shows 4"):
        slots_of_test(settings(ranks=4), {"gpu_count": 4, **cores}, {}, 2)


def test_a_launch_that_measured_nothing_ends_the_test() -> None:
    """Nobody takes a crash for interference."""
    latency = Latency(p50=1.0, p99=1.0)
    levels = tuple(
        LevelMeasurement(
            concurrency=number,
            output_tok_per_s=rate,
            ttft_ms=latency,
            tpot_ms=latency,
            step_ms_p50=1.0,
            verify_steps_per_s=1.0,
            acceptance_length=1.0,
        )
        for number, rate in ((1, 10.0), (8, 40.0))
    )
    served = RunRecord(exit=Exit(code=0), phase=Phase.STOP, wall_s=1.0, measurement=Measurement(levels=levels))
    assert objectives([served]) == [pytest.approx(20.0)]
    with pytest.raises(NodeUnusableError, match="ended in compile and measured nothing"):
        objectives([served, RunRecord(exit=Exit(code=1), phase=Phase.COMPILE, wall_s=1.0)])


def test_the_tests_launches_are_the_engines_default(tmp_path: Path) -> None:
    """On this device, with cookies of their own."""
    slot = Slot(places=(0,))
    one, two = (request_of_test(settings("cpu"), FACTS, tmp_path, {}, slot) for _ in range(2))
    assert one.assignment["allreduce"] == "gloo" and one.cookie != two.cookie
