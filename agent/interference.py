"""What a neighbour trial does to a measurement on this node: launches side by side against launches alone.

A measured fact of the node, kept in the state folder with its date. Trials run at the same time on one node only where
it was measured and the neighbour changes less than launches differ by themselves.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from agent.errors import UsageError
from agent.home import Home, write_atomically
from agent.spread import spread_of
from agent.verdict import LEVEL
from runners import Frozen
from runners.student import t_quantile

FILE = "interference.json"
ROUNDS = 5
SMALLEST, LARGEST = 0.02, 0.10
"""Share that a neighbour may take in any case, since nothing is told apart that finely, and at most: on a node where
launches differ by more than that, other work disturbs them already."""
FLAG = "--accept-interference"

Launch = Callable[[int], list[float]]
"""Number of launches at the same time → the objective of each, in output tokens per second.

Raises:
    NodeUnusableError: a launch measured nothing.
"""


class Interference(Frozen):
    """What was measured on one node for trials of so many ranks."""

    node: str
    device: str
    num_ranks: int
    measured_at: datetime
    rounds: int
    alone: tuple[float, ...]
    """Objective of each launch alone, in output tokens per second."""
    beside: tuple[tuple[float, ...], ...]
    """Those of the launches side by side, a row a round."""
    ratio: float
    """Objective beside a neighbour divided by that alone."""
    low: float
    high: float
    """Ends of its interval."""
    noise: float
    """Spread of launches alone, as a share."""
    at_once: int = 2
    """Launches side by side, each on a slot of its own."""

    @property
    def is_within_noise(self) -> bool:
        """True when a neighbour surely changes less than launches differ by themselves."""
        allowed = min(max(self.noise, SMALLEST), LARGEST)
        return self.low >= math.exp(-allowed) and self.high <= math.exp(allowed)

    def words(self) -> str:
        """Return what was measured, and what it allows."""
        neighbours = "a neighbour" if self.at_once == 2 else f"{self.at_once - 1} neighbours"
        found = (
            f"beside {neighbours} a launch serves {self.ratio:.2f}× what it serves alone ({self.low:.2f}× to "
            f"{self.high:.2f}×, {self.rounds} rounds); launches alone differ by {self.noise:.1%}"
        )
        if self.is_within_noise:
            return f"{found}: {self.at_once} trials may run side by side here"
        return f"{found}: trials side by side would not measure themselves"


def measure(
    launch: Launch, seed: int, rounds: int = ROUNDS, at_once: int = 2
) -> tuple[list[float], list[tuple[float, ...]]]:
    """Return the objectives alone and side by side, round by round; which comes first in a round is drawn.

    Raises:
        NodeUnusableError: a launch measured nothing.
    """
    order = random.Random(seed)  # noqa: S311 - an order, not a secret
    alone, beside = list[float](), list[tuple[float, ...]]()
    for _ in range(rounds):
        numbers = [1, at_once]
        order.shuffle(numbers)
        for number in numbers:
            values = launch(number)
            if number == 1:
                alone += values
            else:
                beside.append(tuple(values))
    return alone, beside


def interference(
    node: str, device: str, num_ranks: int, moment: datetime, alone: Sequence[float], beside: Sequence[Sequence[float]]
) -> Interference:
    """Return what the rounds say. Each round is a pair, so that what drifts over the test falls out."""
    differences = [
        statistics.fmean(math.log(value) for value in pair) - math.log(single)
        for pair, single in zip(beside, alone, strict=True)
    ]
    middle = statistics.fmean(differences)
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    reach = t_quantile(0.5 + LEVEL / 2, len(differences) - 1) * error
    return Interference(
        node=node,
        device=device,
        num_ranks=num_ranks,
        measured_at=moment,
        rounds=len(differences),
        alone=tuple(alone),
        beside=tuple(tuple(pair) for pair in beside),
        ratio=math.exp(middle),
        low=math.exp(middle - reach),
        high=math.exp(middle + reach),
        noise=spread_of([alone]).sd,
        at_once=max(map(len, beside)),
    )


def remember(home: Home, found: Interference) -> None:
    """Keep a measured fact in the state folder; a newer one of the same node and ranks takes the place of an older."""
    kept = [each for each in known(home) if _key(each) != _key(found)]
    text = json.dumps([each.model_dump(mode="json") for each in (*kept, found)], indent=1)
    write_atomically(home.path / FILE, text + "\n")


def known(home: Home) -> list[Interference]:
    """Return what was measured so far.

    Raises:
        UsageError: the file cannot be read.
    """
    path = home.path / FILE
    try:
        return [Interference.model_validate(each) for each in json.loads(path.read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be read ({error}): measure again with `agent doctor --interference`"
        ) from error


def check_parallel(home: Home, trials_per_node: int, facts: Mapping[str, object], widths: Sequence[int] = ()) -> None:
    """Raise UsageError where several trials would run on this node though what they do to each other is not known.

    Args:
        home: Where it is kept.
        trials_per_node: How many are to run at the same time.
        facts: The node's, with the study's device and ranks.
        widths: Numbers of ranks that the study's trials may have; by default the ranks in the facts.
    """
    if trials_per_node == 1:
        return
    node, device, gpus = str(facts.get("hostname")), str(facts["device"]), int(str(facts.get("gpu_count") or 0))
    for ranks in widths or (int(str(facts["num_ranks"])),):
        at_once = min(trials_per_node, max(1, gpus // ranks)) if device == "cuda" and widths else trials_per_node
        if at_once > 1 and (problem := parallel_problem(home, node, device, ranks, at_once)) is not None:
            raise UsageError(f"--trials-per-node {trials_per_node}: {problem}")


def parallel_problem(home: Home, node: str, device: str, num_ranks: int, at_once: int = 2) -> str | None:
    """Return why so many trials must not run at the same time on a node, and what to do; None where they may."""
    found = next((each for each in known(home) if _key(each) == (node, device, num_ranks)), None)
    ways = f"Run them one after the other, or force it with {FLAG}"
    ask = f"agent doctor --interference --tp {num_ranks} --device {device}"
    ask += f" --trials-per-node {at_once}" if at_once > 2 else ""
    if found is None:
        return f"what trials do to each other on this node was not measured yet: {ask}. {ways}"
    if found.at_once < at_once:
        return f"what {at_once} trials do to each other was not measured, only {found.at_once}: {ask}. {ways}"
    if found.is_within_noise:
        return None
    return f"measured on {found.measured_at:%Y-%m-%d}: {found.words()}. {ways}"


def _key(found: Interference) -> tuple[str, str, int]:
    return found.node, found.device, found.num_ranks


def folder_of(home: Home) -> Path:
    """Return the folder for the logs of the test's launches."""
    return home.path / "artifacts" / "interference"
