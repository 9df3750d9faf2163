"""The Optuna storage as the one source of truth: trials go in running, get their evidence, and are told last.

A study NAME has a companion NAME/probes in the same storage for everything that is not a launch at the top rung.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import ValidationError

from agent.errors import StorageError
from agent.front import violations
from agent.outcome import Failure, Outcome, OutcomeKind
from agent.store.compact import compact
from agent.store.distributions import distributions_of
from agent.store.epoch import Epoch
from agent.store.manifest import Manifest
from agent.store.opening import storage_errors
from agent.store.stored_trial import final_state, partial_value, trial_of
from agent.store.trial import Kind, Lease, Trial, Work, trial_label
from runners import Rung, RunRecord

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial

Parted = tuple[tuple[Trial, ...], tuple[Trial, ...]]
PROBES = "/probes"
MANIFEST, OWNER, ASKED, BUDGET = "manifest", "owner", "asked", "budget"
FORGOTTEN, RECHECKS, RULED_OUT = "forgotten", "rechecks", "ruled_out"
BEAT, SESSION, EPOCHS, PAUSED, NODES = "beat", "session", "epochs", "paused", "nodes"
RULES_ATTRIBUTE, VERDICTS = "rules", "verdicts"


def study_names(storage: BaseStorage) -> list[str]:
    """Return the names of the studies in the storage, without their companions, oldest first."""
    with storage_errors("of the studies"):
        studies = sorted(storage.get_all_studies(), key=lambda study: study._study_id)
    return [study.study_name for study in studies if MANIFEST in study.user_attrs]


class StudyStore:
    """One study and its companion, read and written through the Optuna storage only."""

    def __init__(self, storage: BaseStorage, url: str, name: str) -> None:
        self._storage = storage
        self.url = url
        self.name = name
        with storage_errors(url):
            self._ids = {study: storage.get_study_id_from_name(study) for study in (name, name + PROBES)}
            attributes = storage.get_study_user_attrs(self._ids[name])
        try:
            self._created = Manifest.model_validate_json(str(attributes.get(MANIFEST)))
            self._later = tuple(Epoch.model_validate(each) for each in attributes.get(EPOCHS) or ())
        except ValidationError as error:
            raise StorageError(
                f"study {name}: its description cannot be read ({error.errors()[0]['msg']}). "
                "Was it written by another version of the agent?"
            ) from error
        self._distributions = distributions_of(self._created.space)
        self._trials: dict[str, dict[int, Trial]] = {study: {} for study in self._ids}
        self._lists: dict[str, tuple[Trial, ...]] = {}
        self._parted: tuple[tuple[Trial, ...], Parted] = ((), ((), ()))
        self._stored_last = -1  # the id that the database gave to the trial which this agent stored last
        self._trial_ids: dict[tuple[str, int], int] = {}
        self._verdicts = self.verdicts()
        self.version = 0
        """Grows with every change of a trial, so that what is derived from the trials need not be derived twice."""
        self.refresh()

    @classmethod
    def create(cls, storage: BaseStorage, url: str, manifest: Manifest) -> StudyStore:
        """Create the study and its companion; the manifest is written last, so that half a study is none."""
        from optuna.exceptions import DuplicatedStudyError
        from optuna.study import StudyDirection

        name = manifest.settings.name
        with storage_errors(url):
            directions = [
                StudyDirection.MINIMIZE if goal.is_latency else StudyDirection.MAXIMIZE
                for goal in manifest.settings.goals
            ]
            for study, wanted in ((name, directions), (name + PROBES, [StudyDirection.MINIMIZE])):
                try:
                    storage.create_new_study(wanted, study)
                except DuplicatedStudyError:
                    continue  # left by a creation that was killed half-way
            study_id = storage.get_study_id_from_name(name)
            storage.set_study_user_attr(study_id, MANIFEST, manifest.model_dump_json(by_alias=True))
        return cls(storage, url, name)

    @property
    def manifest(self) -> Manifest:
        """The study's description, with the facts and the inherited dead ends of the environment as it is now."""
        if not self._later:
            return self._created
        now = self._later[-1]
        return self._created.model_copy(update={"facts": now.facts, "inherited": now.inherited})

    @property
    def epochs(self) -> tuple[Epoch, ...]:
        """The environments that the study ran in, oldest first: the one it was created in, and each accepted change."""
        first = self._created
        return (Epoch(facts=first.facts, inherited=first.inherited, began_at=first.created_at), *self._later)

    def add_epoch(self, epoch: Epoch) -> None:
        """Store that the environment changed: what is launched from now on belongs to this epoch."""
        later = (*self._later, epoch)
        self.set_attribute(EPOCHS, [each.model_dump(mode="json") for each in later])
        self._later = later
        self.version += 1

    def refresh(self) -> None:
        """Read everything anew. Only a study's owner writes to it, so an owner needs this once."""
        for study, study_id in self._ids.items():
            with storage_errors(self.url):
                stored = self._storage.get_all_trials(study_id, deepcopy=False)
            for trial in stored:
                known = self._trials[study].get(trial.number)
                if known is None or not known.is_closed:
                    self._keep(study, trial)

    def trials(self) -> tuple[Trial, ...]:
        """Return the trials of the study (launches at the top rung), by number."""
        return self._listed(self.name)

    def probes(self) -> tuple[Trial, ...]:
        """Return the trials of the companion study, by number."""
        return self._listed(self.name + PROBES)

    def _listed(self, study: str) -> tuple[Trial, ...]:
        """Return the trials of the study or of its companion: the same object as long as none of them changes."""
        if study not in self._lists:
            self._lists[study] = tuple(self._trials[study].values())
        return self._lists[study]

    def trials_of(self, epoch: int = -1) -> tuple[Trial, ...]:
        """Return the trials of one epoch, by default the latest."""
        return self._of_epoch(self.trials(), epoch)

    def probes_of(self, epoch: int = -1) -> tuple[Trial, ...]:
        """Return the probes of one epoch, by default the latest."""
        return self._of_epoch(self.probes(), epoch)

    def parted_probes_of(self, epoch: int = -1) -> Parted:
        """Return the same in two lists: those at the probe rung, and those at the rungs that measure nothing."""
        probes = self.probes_of(epoch)
        if probes is not self._parted[0]:
            others = tuple(each for each in probes if each.work.rung is not Rung.PROBE)
            self._parted = probes, (tuple(each for each in probes if each.work.rung is Rung.PROBE), others)
        return self._parted[1]

    def _of_epoch(self, trials: tuple[Trial, ...], epoch: int) -> tuple[Trial, ...]:
        wanted = epoch % (1 + len(self._later))
        return tuple(trial for trial in trials if trial.epoch == wanted) if self._later else trials

    def open_trial(self, work: Work, cookie: str, lease: Lease, artifact_dir: str) -> Trial:
        """Store a trial as running, with its lease and cookie in the same transaction, and return it."""
        from optuna.trial import TrialState, create_trial

        study = self.name + PROBES if work.kind is Kind.PROBE else self.name
        launch: dict[str, object] = {
            "cookie": cookie,
            "lease": lease.model_dump(mode="json"),
            "artifact_dir": artifact_dir,
        }
        launch |= {"epoch": len(self._later)} if self._later else {}
        attributes = {"work": work.model_dump(mode="json"), "launch": launch}
        template = create_trial(
            state=TrialState.RUNNING,
            params=dict(work.requested),
            distributions=self._distributions,
            user_attrs=attributes,
        )
        with storage_errors(self.url):
            trial_id = self._storage.create_new_trial(self._ids[study], template_trial=template)
            template.number = self._number_of(trial_id, study)
        template._trial_id = trial_id
        return self._keep(study, template)

    def close(self, trial: Trial, outcome: Outcome, record: RunRecord | None) -> Trial:
        """Write the evidence, then tell the state. Raises StorageError when the trial was closed by somebody else."""
        trial_id = self._trial_ids[trial.study, trial.number]
        final = outcome.model_copy(update={"closed_at": datetime.now(UTC)})
        with storage_errors(self.url):
            if trial.work != self._trials[trial.study][trial.number].work:  # something else ran
                self._storage.set_trial_user_attr(trial_id, "work", trial.work.model_dump(mode="json"))
            if record is not None:
                self._storage.set_trial_user_attr(trial_id, "record", record.model_dump(mode="json"))
            self._storage.set_trial_user_attr(trial_id, "outcome", final.model_dump(mode="json"))
            self._set_constraints(trial, final, record)
            self._set_partial_value(trial_id, final, record)
            self._set_state(trial_id, final)
        return self._remember(trial.closed(final, record))

    def tell(self, trial: Trial, outcome: Outcome) -> Trial:
        """Set the final state of a trial whose evidence is already stored."""
        trial_id = self._trial_ids[trial.study, trial.number]
        with storage_errors(self.url):
            self._set_partial_value(trial_id, outcome, trial.record)
            self._set_state(trial_id, outcome)
            return self._keep(trial.study, self._storage.get_trial(trial_id))

    def _set_constraints(self, trial: Trial, outcome: Outcome, record: RunRecord | None) -> None:
        """Tell Optuna how far the limits of the study were kept, so that its own front heeds them too."""
        limits = self.manifest.settings.workload.slo
        if not limits or outcome.kind is not OutcomeKind.MEASURED or record is None or record.measurement is None:
            return
        import optuna

        study = optuna.load_study(study_name=trial.study, storage=self._storage)
        told = optuna.Trial(study, self._trial_ids[trial.study, trial.number])
        for name, value in violations(record.measurement, limits).items():
            if name not in told.constraints:
                told.set_constraint(name, value)

    def _set_partial_value(self, trial_id: int, outcome: Outcome, record: RunRecord | None) -> None:
        """Note what a trial that was stopped early points to: as Optuna has it, an intermediate value and no other."""
        if (partial := partial_value(outcome, record)) is not None:
            self._storage.set_trial_intermediate_value(trial_id, *partial)

    def _set_state(self, trial_id: int, outcome: Outcome) -> None:
        state, values = final_state(outcome)
        self._storage.set_trial_state_values(trial_id, state, values)

    def attributes(self) -> dict[str, object]:
        """Return the mutable attributes of the study: budget, owner, and what the user wishes for."""
        with storage_errors(self.url):
            return self._storage.get_study_user_attrs(self._ids[self.name])

    def get_attribute(self, name: str) -> object:
        """Return one mutable attribute, or None."""
        return self.attributes().get(name)

    def set_attribute(self, name: str, value: object) -> None:
        """Set a mutable attribute of the study; `value` must be made of JSON types."""
        with storage_errors(self.url):
            self._storage.set_study_user_attr(self._ids[self.name], name, value)

    def verdicts(self) -> dict[str, Failure]:
        """Return label of a trial (`#12`, `p12`) → what a later judgement made of its failure.

        A closed trial never changes in the storage: this is laid over it whenever it is read.
        """
        stored = self.get_attribute(VERDICTS)
        known = stored if isinstance(stored, Mapping) else {}
        try:
            return {label: Failure.model_validate(found) for label, found in known.items()}
        except ValidationError as error:
            raise StorageError(
                f"study {self.name}: its later verdicts cannot be read ({error.errors()[0]['msg']})"
            ) from error

    def set_verdicts(self, verdicts: Mapping[str, Failure]) -> None:
        """Store the later verdicts, in the place of those before; the trials are read with them from now on."""
        self.set_attribute(VERDICTS, {label: found.model_dump(mode="json") for label, found in verdicts.items()})
        self._verdicts = dict(verdicts)
        for trial in (*self.trials(), *self.probes()):
            self._remember(self._with_verdict(trial))

    def _with_verdict(self, trial: Trial) -> Trial:
        found = self._verdicts.get(trial_label(trial))
        if found is None or trial.outcome is None or trial.outcome.failure is None:
            return trial
        return trial.model_copy(update={"outcome": trial.outcome.model_copy(update={"failure": found})})

    def _number_of(self, trial_id: int, study: str) -> int:
        """Return a new trial's number: the next one, as consecutive ids tell, or else a query over all trials."""
        expected, before = next(reversed(self._trials[study]), -1) + 1, self._stored_last
        self._stored_last = trial_id
        if trial_id == before + 1:
            return expected
        with suppress(KeyError):  # where somebody else stored a trial meanwhile
            if self._storage.get_trial_id_from_study_id_trial_number(self._ids[study], expected) == trial_id:
                return expected
        return self._storage.get_trial_number_from_id(trial_id)

    def _keep(self, study: str, stored: FrozenTrial) -> Trial:
        try:
            trial = trial_of(study, stored)
        except (ValidationError, KeyError, TypeError) as error:
            raise StorageError(
                f"study {study}: trial {stored.number} cannot be read ({type(error).__name__}). Was it written by "
                "another program, or by another version of the agent?"
            ) from error
        facts = self._later[trial.epoch - 1].facts if trial.epoch else self._created.facts
        trial = trial.model_copy(update={"facts": facts})
        self._trial_ids[study, stored.number] = stored._trial_id
        return self._remember(self._with_verdict(trial))

    def _remember(self, trial: Trial) -> Trial:
        kept = self._trials[trial.study][trial.number] = compact(trial, as_it_is={"facts"})
        self._lists.pop(trial.study, None)
        self.version += 1
        return kept
