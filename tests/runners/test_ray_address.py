"""Whether the head of a cluster still answers: a moment without is nothing, a while is the end."""

from __future__ import annotations

from runners.ray_address import LOOK_EVERY_S, SILENT_S, HeadWatch


def test_a_head_that_is_silent_for_a_while_is_gone_and_one_that_was_silent_for_a_moment_is_not() -> None:
    now, asked = [0.0], [0]
    problem: list[str | None] = [None]

    def look(address: str) -> str | None:
        asked[0] += 1
        return problem[0]

    watch = HeadWatch("head:6379", look, lambda: now[0])
    problem[0] = "nothing answers there"
    now[0] += SILENT_S / 2
    assert not watch.is_gone()
    problem[0] = None
    now[0] += LOOK_EVERY_S
    assert not watch.is_gone()
    problem[0] = "nothing answers there"
    now[0] += SILENT_S
    assert watch.is_gone()
    assert asked[0] == 3
