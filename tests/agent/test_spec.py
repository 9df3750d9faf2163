"""The specification of a study: durations, what overrides what, and errors that point to where it was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.errors import UsageError
from agent.spec import StudySpec, load_spec, seconds_of
from search_spaces import SpecificationError


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("30m", 1800), ("30 min", 1800), ("1.5h", 5400), (" 2h ", 7200)]
)
def test_durations_are_read_as_people_write_them(text: str, seconds: float) -> None:
    """A bare number is seconds."""
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0s", "-1s", "1d", "h", "1h30m", "nan", "1e3"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """No time that could be read in two ways, and none that ends before it began."""
    with pytest.raises(ValueError, match="not a duration"):
        seconds_of(text)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A specification with two keys."""
    path = tmp_path / "study.yaml"
    path.write_text("budget: 7\npin:\n  draft_length: 3\n", encoding="utf-8")
    return path


def test_options_override_the_keys_of_the_file(file: Path) -> None:
    """The command line is the last word; the rest of the file stands."""
    spec = load_spec(file, {"budget": 9})
    assert (spec.budget, dict(spec.pin)) == (9, {"draft_length": 3})


def test_without_file_and_options_the_defaults_hold() -> None:
    """`agent search` alone is complete."""
    assert load_spec(None, {}) == StudySpec()


def test_an_error_points_to_the_line_of_the_file(file: Path) -> None:
    """What stands in the file is found in the file."""
    error = load_spec(file, {}).error("wrong", "pin", "draft_length")
    assert isinstance(error, SpecificationError)
    assert str(error) == f"{file}:3: pin.draft_length: wrong"


def test_an_error_points_to_the_option_that_overrode_the_file(file: Path) -> None:
    """What was typed is named as it was typed."""
    error = load_spec(file, {"pin": {"draft_length": "9"}}).error("wrong", "pin", "draft_length")
    assert isinstance(error, UsageError)
    assert str(error) == "--pin draft_length: wrong"


def test_a_misspelt_key_from_python_names_the_nearest() -> None:
    """`search(budgett=3)` is answered like the misspelt key of a file."""
    with pytest.raises(UsageError, match="Did you mean 'budget'"):
        load_spec(None, {"budgett": 3})


def test_a_long_value_is_not_repeated_in_full() -> None:
    """A message stays a line, whatever was typed."""
    with pytest.raises(UsageError) as caught:
        load_spec(None, {"device": "x" * 10_000})
    assert len(str(caught.value)) < 200
