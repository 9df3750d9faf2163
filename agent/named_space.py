"""The search space that a study names."""

from __future__ import annotations

from agent.spec import StudySpec
from search_spaces import SearchSpace, SpecificationError, UnreadableFileError, load_space


def named_space(spec: StudySpec) -> SearchSpace:
    """Return the space that a study names, by default the one of its engine.

    Raises:
        UsageError, SpecificationError: there is none, or something in its file is wrong.
    """
    try:
        return load_space(spec.space or spec.engine)
    except SpecificationError as error:
        if error.path is None or isinstance(error, UnreadableFileError):  # nothing in a file, but its name
            raise spec.error(error.problem, "space", spec.space or spec.engine) from error
        raise
