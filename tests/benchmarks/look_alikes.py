"""Nodes on which more failures come and go than usual, and look like what fails for certain: the map's hardest case."""

from __future__ import annotations

import random

from search_spaces import NodeModel
from search_spaces.failure_texts import FLAKY
from search_spaces.node_generator import node_data
from search_spaces.node_loader import node_of

LEAST_OFTEN, MOST_OFTEN = 0.3, 0.5
"""How often such a source strikes where it does."""


def generate_with(seed: int, number: int) -> NodeModel:
    """Return the generated node of a seed with further flaky failures.

    Each of them says what a planted failure says whose reason comes and goes, and strikes at one value of a parameter.
    None where the node has no such failure.
    """
    data, rng = node_data(seed), random.Random(f"look-alikes/{seed}")
    planted = data["failures"]
    assert isinstance(planted, list)
    models = [each for each in planted if "probability" not in each and each["reason"] in FLAKY]
    parameters = node_of(data).space.parameters
    for index in range(number if models else 0):
        model, name = rng.choice(models), rng.choice(list(parameters))
        planted.append(
            {
                **{key: value for key, value in model.items() if key != "rung"},
                "name": f"{model['reason']}-look-alike-{index}",
                "when": {name: [rng.choice(parameters[name].domain)]},
                "log": [line for line in model["log"] if "while" not in line],
                "blames": [],
                "probability": round(rng.uniform(LEAST_OFTEN, MOST_OFTEN), 2),
            }
        )
    return node_of(data)
