"""What the process learns of effects and noise, against known truths."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from functools import lru_cache

import pytest

from agent.propose.history import USUAL_NOISE_SD, USUAL_WEIGHT
from agent.propose.surrogate import NOTHING, Effects, Seen, Surrogate
from agent.spread import Spread
from search_spaces import Assignment, SearchSpace, load_node

USUAL = Spread(variance=USUAL_NOISE_SD**2, freedom=USUAL_WEIGHT)
"""What is known of the noise without any repeat."""
EFFECT = 0.15
SEEDS = range(12)


@lru_cache
def space() -> SearchSpace:
    """Return the space of a modelled node; its values have other effects here."""
    return load_node("pcie2-24gib-vllm").space


def names() -> list[str]:
    """Return the parameters with more than one value."""
    return [name for name, each in space().parameters.items() if len(each.domain) > 1]


def points(number: int, source: random.Random) -> list[Assignment]:
    """Return steps of one or two values from a few assignments, as a search takes them."""
    found = [{name: each.domain[0] for name, each in space().parameters.items()}]
    while len(found) < number:
        start = dict(found[source.randrange(min(len(found), 5))])
        for name in source.sample(names(), source.choice((1, 2))):
            start[name] = source.choice(space().parameters[name].domain)
        found.append(start)
    return found


def truth(share: float, size: float, source: random.Random) -> dict[tuple[str, str], float]:
    """Return the effect of each value: a share of them has one, of about this size."""
    values = [(name, repr(value)) for name in names() for value in space().parameters[name].domain]
    return {value: source.gauss(0.0, size) if source.random() < share else 0.0 for value in values}


def log_of(point: Assignment, effects: Mapping[tuple[str, str], float]) -> float:
    """Return the logarithm of a point's true figure."""
    return 5.0 + math.fsum(effects.get((name, repr(point[name])), 0.0) for name in names())


def rows(
    chosen: Sequence[Assignment], effects: Mapping[tuple[str, str], float], noise: float, source: random.Random
) -> list[Seen]:
    """Return one launch of each point."""
    return [Seen(point, math.exp(log_of(point, effects) + source.gauss(0.0, noise))) for point in chosen]


@pytest.mark.parametrize("noise", [0.03, 0.1, 0.2])
def test_the_noise_is_learned_without_a_single_repeat(noise: float) -> None:
    """That launches do not agree with any effects says how far they differ by chance."""
    found = []
    for seed in SEEDS:
        source = random.Random(seed)
        chosen = points(34, source)
        seen = rows(chosen, truth(0.2, 0.08, source), noise, source)
        found.append(Surrogate(space(), Effects(dict.fromkeys(names(), EFFECT)), seen, USUAL).belief.noise_sd)
    assert statistics.median(found) == pytest.approx(noise, rel=0.35, abs=0.02)


def test_where_launches_differ_much_lucky_ones_are_believed_less_than_as_expected() -> None:
    """A process that takes the usual noise for granted takes luck for effects, and is farther from the truth."""
    errors: dict[str, list[float]] = {"learned": [], "usual": []}
    for seed in SEEDS:
        source = random.Random(seed)
        chosen, effects = points(34, source), truth(0.2, 0.08, source)
        seen, others = rows(chosen, effects, 0.2, source), points(60, source)
        for name, noise in (("learned", USUAL), ("usual", USUAL_NOISE_SD)):
            expected = Surrogate(space(), Effects(dict.fromkeys(names(), EFFECT)), seen, noise).expect(others).mean
            wrong = [float(mean) - log_of(point, effects) for mean, point in zip(expected, others, strict=True)]
            middle = statistics.fmean(wrong)
            errors[name].append(math.sqrt(statistics.fmean((each - middle) ** 2 for each in wrong)))
    assert statistics.fmean(errors["learned"]) < 0.7 * statistics.fmean(errors["usual"])


def test_effects_of_which_little_is_left_to_learn_have_a_size_of_their_own() -> None:
    """That they do nothing makes nobody doubt the effects of the others."""
    source = random.Random(1)
    quiet = [name for name in names() if name.startswith("nccl")]
    loud = [name for name in names() if name not in quiet]
    effects = {key: value for key, value in truth(0.8, 0.2, source).items() if key[0] in loud}
    seen = rows(points(40, source), effects, 0.02, source)
    found = Surrogate(space(), Effects(dict.fromkeys(loud, EFFECT), dict.fromkeys(quiet, EFFECT)), seen, USUAL).belief
    assert found.settled_size < 0.3 < 0.6 < found.size


def test_a_ruinous_value_makes_nothing_else_look_worse_and_stays_known_for_it() -> None:
    """Its launch says how slow it is, and nothing of the few per cent that others make."""
    source = random.Random(2)
    chosen, effects = points(24, source), truth(0.3, 0.08, source)
    name = "cuda_graph_max_bs"
    chosen = [{**point, name: space().parameters[name].domain[-1]} for point in chosen]
    eager = {**chosen[0], name: 0}
    seen = rows(chosen, effects, 0.1, source)
    ruined = [*seen, Seen(eager, math.exp(log_of(eager, effects) - 2.3))]
    without, with_it = (
        Surrogate(space(), Effects(dict.fromkeys(names(), EFFECT)), each, USUAL) for each in (seen, ruined)
    )
    assert max(abs(with_it.expect(chosen).mean - without.expect(chosen).mean)) < 0.02
    assert with_it.belief.noise_sd == pytest.approx(without.belief.noise_sd, rel=0.1)
    beside = [{**point, name: 0} for point in chosen[1:]]
    assert max(with_it.expect(beside).mean - with_it.expect(chosen[1:]).mean) < -1.5


def test_what_few_launches_differ_in_keeps_its_doubt() -> None:
    """That nothing was seen of other values does not make them the same, however small other effects turn out."""
    source = random.Random(4)
    chosen = [{**point, "allreduce": "nccl"} for point in points(30, source)]
    others = [name for name in names() if name != "allreduce"]
    seen = rows(chosen, {}, 0.02, source)
    other = {**chosen[0], "allreduce": "custom"}
    sds = []
    for effects in (
        Effects(dict.fromkeys(names(), EFFECT)),
        Effects(dict.fromkeys(others, EFFECT), kept={"allreduce": EFFECT}),
    ):
        sds.append(float(Surrogate(space(), effects, seen, USUAL).expect([other]).sd[0]))
    assert sds[0] < 0.6 * EFFECT < EFFECT < sds[1]


def test_the_outlook_agrees_with_what_is_expected_of_each_alone() -> None:
    """Means and spreads are the same; a row shares with itself all that is not known of it."""
    source = random.Random(3)
    chosen, effects = points(24, source), truth(0.3, 0.08, source)
    seen = rows(chosen, effects, 0.1, source)
    process = Surrogate(space(), Effects(dict.fromkeys(names(), EFFECT)), seen, USUAL)
    rivals = [3, 0, 7]
    outlook = process.outlook([*points(9, source), chosen[3]], [NOTHING] * 10, rivals)
    alone = process.expect(chosen)
    assert outlook.rivals == pytest.approx(alone.mean[rivals], abs=1e-9)
    assert outlook.mean[-1] == pytest.approx(alone.mean[3], abs=1e-9)
    assert outlook.variance[-1] == pytest.approx(alone.sd[3] ** 2, abs=1e-9)
    assert outlook.shared[-1, 0] == pytest.approx(outlook.variance[-1], abs=1e-9)
    assert outlook.noise_sd == process.belief.noise_sd
