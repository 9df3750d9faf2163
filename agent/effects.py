"""What a launch really ran, where its engine took something else than it was told without a word.

A measurement belongs to what ran. So a trial whose record proves another value is closed as a trial of that value, the
requested one stays visible beside it as a rewrite, and it is not launched again as if it were something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agent.store.trial import Trial, Work
from runners import EffectProof, Rewrite, RunRecord
from search_spaces import Assignment, Facts, Scalar, SearchSpace

OBSERVED = "observed: "
"""Begins the reason of a rewrite that a launch showed, in contrast to one that was known before it."""

Rewrites = Mapping[tuple[str, Scalar], EffectProof]
"""(parameter, requested value) → the proof that another value took effect."""


def of_active_parameters(record: RunRecord, assignment: Assignment, space: SearchSpace, facts: Facts) -> RunRecord:
    """Return the record without proofs about parameters that mean nothing beside the other values.

    An engine without speculation reports no draft length: that replaces nothing.
    """
    known = space.parameters
    kept = tuple(
        proof
        for proof in record.effects
        if proof.parameter not in known or known[proof.parameter].is_active(assignment, facts)
    )
    return record if len(kept) == len(record.effects) else record.model_copy(update={"effects": kept})


def observed_work(work: Work, record: RunRecord, space: SearchSpace, facts: Facts) -> Work:
    """Return the work as it ran: the same object where every effect that the record proves is what was asked for."""
    found = [proof for proof in record.effects if _is_rewrite(proof, work.resolved, space)]
    if not found:
        return work
    effective = {proof.parameter: proof.effective for proof in found}
    return Work(
        kind=work.kind,
        rung=work.rung,
        requested=work.requested,
        resolved=space.normalise({**work.resolved, **effective}, facts),
        repeat=work.repeat,
        rewrites=(*work.rewrites, *(_rewrite(proof) for proof in found)),
        stage=work.stage,
        base=work.base,
        about=work.about,
        climbs=work.climbs,
    )


def silent_rewrites(trials: Iterable[Trial], space: SearchSpace) -> Rewrites:
    """Return what the launches so far have shown to be replaced; one launch in which a value took effect clears it."""
    found: dict[tuple[str, Scalar], EffectProof] = {}
    kept: set[tuple[str, Scalar]] = set()
    for trial in trials:
        found |= replaced_in(trial, space)
        kept |= taken_in(trial)
    return {key: proof for key, proof in found.items() if key not in kept}


def replaced_in(trial: Trial, space: SearchSpace) -> dict[tuple[str, Scalar], EffectProof]:
    """Return (parameter, requested value) → proof of everything that one trial showed to be replaced."""
    proofs = trial.record.effects if trial.record else ()
    others = (proof for proof in proofs if proof.effective != proof.requested and _is_in_space(proof, space))
    return {(proof.parameter, proof.requested): proof for proof in others}


def taken_in(trial: Trial) -> set[tuple[str, Scalar]]:
    """Return (parameter, requested value) of everything that took effect in one trial."""
    proofs = trial.record.effects if trial.record else ()
    return {(proof.parameter, proof.requested) for proof in proofs if proof.effective == proof.requested}


def contradictions(trial: Trial) -> tuple[Rewrite, ...]:
    """Return everything that a trial asked for and did not get, also where what ran has no name in the space."""
    told = {(each.parameter, each.requested) for each in trial.work.rewrites}
    proofs = trial.record.effects if trial.record else ()
    others = [
        each for each in proofs if each.effective != each.requested and (each.parameter, each.requested) not in told
    ]
    return (*trial.work.rewrites, *(_rewrite(proof) for proof in others))


def unproven(trials: Sequence[Trial], space: SearchSpace) -> dict[str, str]:
    """Return parameter → why nobody can tell whether it took effect, of those that launches that worked differ in."""
    measured = [trial for trial in trials if trial.works]
    proven = {proof.parameter for trial in measured for proof in (trial.record.effects if trial.record else ())}
    found: dict[str, str] = {}
    for name in space.parameters:
        is_varied = len({trial.work.resolved[name] for trial in measured}) > 1
        if is_varied and name not in proven:
            found[name] = "the space knows no proof" if name in space.unproven else "no launch showed the proof"
    return found


def rewritten(assignment: Assignment, rewrites: Rewrites) -> tuple[Assignment, tuple[Rewrite, ...]]:
    """Return what an assignment becomes by what was observed before, and what was replaced in it."""
    if not rewrites:
        return {**assignment}, ()
    proofs = [proof for item in assignment.items() if (proof := rewrites.get(item)) is not None]
    effective = {proof.parameter: proof.effective for proof in proofs}
    return {**assignment, **effective}, tuple(_rewrite(proof) for proof in proofs)


def _is_rewrite(proof: EffectProof, resolved: Assignment, space: SearchSpace) -> bool:
    asked = resolved.get(proof.parameter)
    return proof.requested == asked and proof.effective != asked and _is_in_space(proof, space)


def _is_in_space(proof: EffectProof, space: SearchSpace) -> bool:
    """True for a value that has a name in the space; another one stays in the record for the reader alone."""
    parameter = space.parameters.get(proof.parameter)
    return parameter is not None and proof.effective in parameter.domain


def _rewrite(proof: EffectProof) -> Rewrite:
    return Rewrite(
        parameter=proof.parameter,
        requested=proof.requested,
        resolved=proof.effective,
        why=OBSERVED + proof.evidence,
    )
