"""A database server that is away for a moment (restarted, moved) costs a search that moment, and nothing else.

Each call is repeated until the server answers again, for at most a minute and a half. A call whose answer was lost may
have taken effect: what is not safe to repeat as it stands looks first at what is stored. SQLite has no server, and
waits for other processes by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial, TrialState

T = TypeVar("T")
PATIENCE_S = 90.0
PAUSE_S = 0.5
SERVER_GOES_OR_COMES = ("08", "57P")
"""Classes of SQLSTATE that say: no connection (08), or the server is shutting down or starting (57P).

Source: PostgreSQL 15, appendix A of its manual."""


def is_away(error: BaseException) -> bool:
    """Return whether an error of the storage says that its server cannot be reached now."""
    from sqlalchemy.exc import DBAPIError

    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, DBAPIError):
        cause = cause.__cause__
    if cause is None:
        return False
    if cause.connection_invalidated:
        return True
    state = getattr(cause.orig, "sqlstate", None) or getattr(cause.orig, "pgcode", None)
    is_operational = type(cause.orig).__name__ == "OperationalError" and state is None  # no server to give one
    return is_operational or str(state).startswith(SERVER_GOES_OR_COMES)


class PatientStorage:
    """An Optuna storage on a database server, each call of which waits for a server that is away."""

    def __init__(
        self,
        storage: BaseStorage,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._storage, self._clock, self._pause = storage, clock, pause

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._storage, name)
        return (
            (lambda *args, **options: self._patiently(lambda: method(*args, **options))) if callable(method) else method
        )

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial) -> int:
        """Create a trial once: one that was stored although the answer was lost is found by its attributes."""

        def again() -> int:
            for trial in self._storage.get_all_trials(study_id, deepcopy=False):
                if trial.user_attrs == template_trial.user_attrs:
                    return int(trial._trial_id)
            return self._storage.create_new_trial(study_id, template_trial=template_trial)

        return self._patiently(lambda: self._storage.create_new_trial(study_id, template_trial=template_trial), again)

    def set_trial_state_values(self, trial_id: int, state: TrialState, values: list[float] | None = None) -> bool:
        """Set a trial's final state once."""

        def again() -> bool:
            if self._storage.get_trial(trial_id).state is state:
                return True
            return self._storage.set_trial_state_values(trial_id, state, values)

        return self._patiently(lambda: self._storage.set_trial_state_values(trial_id, state, values), again)

    def _patiently(self, call: Callable[[], T], again: Callable[[], T] | None = None) -> T:
        from optuna.exceptions import StorageInternalError
        from sqlalchemy.exc import SQLAlchemyError

        deadline = self._clock() + PATIENCE_S
        while True:
            try:
                return call()
            except (StorageInternalError, SQLAlchemyError) as error:
                if not is_away(error) or self._clock() >= deadline:
                    raise
            self._pause(PAUSE_S)
            call = again or call
