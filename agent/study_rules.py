"""The user's own rules of a study: stored with it, so that whoever resumes or reads it judges alike."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from agent.classify import RULES, Rule
from agent.classify.user_rules import UserRule, read_rules, with_user_rules
from agent.errors import StorageError, UsageError
from agent.spec import StudySpec
from agent.store.study_store import RULES_ATTRIBUTE, StudyStore
from search_spaces import UnreadableFileError

_STORED: TypeAdapter[tuple[UserRule, ...]] = TypeAdapter(tuple[UserRule, ...])


def asked_rules(spec: StudySpec) -> tuple[UserRule, ...]:
    """Return the rules of the file that a study names, none where it names none.

    Raises:
        UsageError, SpecificationError: the file, or something in it, is wrong.
    """
    if spec.rules is None:
        return ()
    try:
        return read_rules(Path(spec.rules))
    except UnreadableFileError as error:
        raise spec.error(error.problem, "rules", spec.rules) from error


def rules_of_file(file: str) -> tuple[UserRule, ...]:
    """Return the rules of a file named by `--rules`.

    Raises:
        UsageError, SpecificationError: the file, or something in it, is wrong.
    """
    try:
        return read_rules(Path(file))
    except UnreadableFileError as error:
        raise UsageError(f"--rules {error}") from error


def store_rules(store: StudyStore, rules: tuple[UserRule, ...]) -> None:
    """Store the user's rules in the place of those that were stored before."""
    store.set_attribute(RULES_ATTRIBUTE, _STORED.dump_python(rules, mode="json"))


def rules_of(store: StudyStore) -> tuple[Rule, ...]:
    """Return what the failures of a study are judged by: the built-in rules and its own.

    Raises:
        StorageError: the stored rules cannot be read.
    """
    stored = store.get_attribute(RULES_ATTRIBUTE)
    if not stored:
        return RULES
    try:
        return with_user_rules(_STORED.validate_python(stored))
    except ValidationError as error:
        raise StorageError(f"study {store.name}: its rules cannot be read ({error.errors()[0]['msg']})") from error
