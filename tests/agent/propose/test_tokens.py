"""What one drafted token adds to a step: from pairs of launches, and from what is usual."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from agent.propose.tokens import ELSEWHERE_SD, USUAL_SHARE, USUAL_TIMES, Tokens, Told

HERE, THERE = math.log(500.0), math.log(2000.0)
"""Communication times beside two choices of collectives."""


def told(share: float, sd: float, *, drafted: int = 3, log_us: float = HERE) -> Told:
    """Return what launches say where a token adds exactly this."""
    return Told(math.log(1.0 + share * drafted), sd, drafted, 10.0, log_us)


def test_without_launches_a_token_adds_what_is_usual() -> None:
    """Give or take the factor by which that differs."""
    token = Tokens().beside(HERE)
    assert token.share == pytest.approx(USUAL_SHARE, rel=0.2) and token.plain_ms == 0.0
    assert USUAL_SHARE * (USUAL_TIMES - 1.0) < token.sd * USUAL_TIMES < 2.0 * USUAL_SHARE * (USUAL_TIMES - 1.0)


@pytest.mark.parametrize("share", [0.05, 0.18, 0.4, 0.8])
def test_sure_launches_are_believed_and_a_doubtful_one_is_drawn_towards_what_is_usual(share: float) -> None:
    """Whatever a token adds: an eighth or a half of a step."""
    sure = Tokens([told(share, 0.005)] * 9).beside(HERE)
    assert sure.share == pytest.approx(share, rel=0.05) and sure.plain_ms == pytest.approx(10.0)
    assert sure.sd == pytest.approx(ELSEWHERE_SD * sure.share, rel=0.2)
    usual, doubtful = Tokens().beside(HERE).share, Tokens([told(share, 0.3)]).beside(HERE).share
    assert min(share, usual) <= doubtful <= max(share, usual) * 1.05


def test_what_was_seen_beside_other_collectives_says_little_of_these() -> None:
    """Slow collectives make drafting dear, and the search must not give it up where they are fast."""
    dear = [told(0.8, 0.05, log_us=THERE)] * 2
    there, here = (Tokens(dear).beside(each) for each in (THERE, HERE))
    assert there.share > 0.6 and here.share < 0.75 * there.share
    assert here.sd / here.share > 1.5 * there.sd / there.share
    with_own = Tokens([*dear, told(0.2, 0.05)]).beside(HERE)
    assert with_own.share == pytest.approx(0.2, rel=0.25)


@pytest.mark.parametrize("share", [0.12, 0.25])
def test_lucky_launches_make_drafting_neither_cheap_nor_dear(share: float) -> None:
    """Launches that differ by 10 % leave the share right in the middle of many studies."""
    source = random.Random(1)
    found = []
    for _ in range(200):
        off = [math.exp(source.gauss(0.0, 0.1)) for _ in range(2)]
        slower = math.log(1.0 + 3 * share) + math.log(off[0] / off[1])
        found.append(Tokens([Told(slower, 0.1 * math.sqrt(2.0), 3, 10.0, HERE)] * 1).beside(HERE).share)
    assert statistics.median(found) == pytest.approx(share, rel=0.25)
