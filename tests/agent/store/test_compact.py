"""Trials are kept small: what equal ones have in common is there once, and nothing else about them changes."""

from __future__ import annotations

from agent.store.compact import compact
from agent.store.trial import Trial
from tests.agent.mirror.samples import trial


def read_back(number: int) -> Trial:
    """Return a trial as it comes out of a storage."""
    return Trial.model_validate_json(trial(number).model_dump_json())


def test_trials_share_the_names_of_their_fields() -> None:
    one, other = compact(read_back(1)), compact(read_back(2))
    assert one.record is not None and other.record is not None
    assert one.record.measurement is not None and other.record.measurement is not None
    pairs = [(one, other), (one.work, other.work), (one.record, other.record)]
    pairs += zip(one.record.measurement.levels, other.record.measurement.levels, strict=True)
    assert all(left.model_fields_set is right.model_fields_set for left, right in pairs)
    assert one.model_fields_set is not one.work.model_fields_set


def test_a_compact_trial_is_the_same_trial() -> None:
    before, after = read_back(1), compact(read_back(1))
    assert after == before
    assert after.model_dump_json() == before.model_dump_json()
    assert after.model_dump(exclude_unset=True) == before.model_dump(exclude_unset=True)


def test_a_changed_copy_changes_nothing_for_others() -> None:
    given = trial(1)
    assert "epoch" not in given.model_fields_set
    kept = compact(given)
    assert "epoch" in kept.model_copy(update={"epoch": 1}).model_fields_set
    assert "epoch" not in kept.model_fields_set
