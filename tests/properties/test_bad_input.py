"""What somebody writes or types is accepted, or refused with one message that says where: no traceback, no hang."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.bad_input.cases import KINDS, make_case
from tests.support.bad_input.verdicts import names_a_place, verdict_of

LIMIT_S = 60.0
"""A hang is what never ends; a loaded machine is none."""


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(min_value=0, max_value=2**32))
def test_a_spoilt_input_is_refused_with_a_place(kind: str, seed: int) -> None:
    """The seed is the whole case: `python -m tests.benchmarks.bad_input --seed SEED` shows it."""
    with tempfile.TemporaryDirectory() as folder:
        case = make_case(seed, Path(folder), kind)
        verdict = verdict_of(case, Path(folder), LIMIT_S)
    assert verdict.problem == "", (case, verdict)


@pytest.mark.parametrize(
    ("message", "has_place"),
    [
        ("/a/b.yaml:3: budget: must be at least 1", True),
        ("/a/b.yaml: budget: must be at least 1", True),
        ("--budget 0: must be at least 1", True),
        ("/a/b.yaml: cannot be read: Is a directory", False),
        ("something went wrong", False),
    ],
)
def test_the_judge_of_messages_knows_a_place(message: str, has_place: bool) -> None:
    """A judge that takes everything would find nothing."""
    assert names_a_place(message) is has_place
