"""Everything the proposer may look at, and the few questions it asks of it."""

from __future__ import annotations

import hashlib
import math
import random
from collections import Counter
from collections.abc import Container, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property

from agent.deadends.atlas import Atlas
from agent.effects import Rewrites, rewritten
from agent.propose import sums, tallies, working
from agent.propose.admission import ATTEMPTS as ATTEMPTS
from agent.propose.admission import Refusal as Refusal
from agent.propose.admission import ruled_out, still_locked, why_not
from agent.propose.closed import of_closed
from agent.propose.in_flight import InFlight
from agent.propose.memo import Memo
from agent.propose.prepared import prepared
from agent.propose.rung_memory import RungMemory
from agent.propose.starts import base_of, starts_of
from agent.propose.values import Values, measured_values
from agent.settings import StudySettings
from agent.spread import Spread, pooled, spread_within
from agent.store.trial import Kind, Lease, Trial, Work
from runners import Rung, Runner
from runners.rungs import rungs_of
from search_spaces import Assignment, Facts, Scalar, SearchSpace, assignment_key

ADOPTION_MARGIN = 0.03
"""Share by which a launch must beat the incumbent to be adopted, where no repeats say how large the noise is."""
USUAL_NOISE_SD, USUAL_WEIGHT = 0.05, 4
"""Noise from launch to launch before repeats say more, and how many repeats that belief is worth."""


@dataclass(frozen=True)
class History:
    """The study so far. Two equal histories give equal proposals."""

    settings: StudySettings
    space: SearchSpace
    facts: Facts
    runner: Runner
    trials: tuple[Trial, ...]
    probes: tuple[Trial, ...]
    """Of the companion study, those at the probe rung."""
    atlas: Atlas
    budget: int
    checks: tuple[Trial, ...] = ()
    """Of the companion study, those at the rungs that measure nothing: resolve and dummy."""
    asked: tuple[Assignment, ...] = ()
    rechecks: Mapping[str, int] = field(default_factory=dict)
    """Id of a dead end that the user wants to be checked again → how many such trials there are to be in all."""
    known_spread: Spread | None = None
    """How much launches differ, as it was known before the study."""
    is_even: bool = False
    """Whether several goals are weighed alike, as for a reader, and not anew for each launch."""
    owner: Lease | None = None
    """The agent that runs the study now: what stopped an earlier one does not stop it. None: all count as one."""
    earlier: int = 0
    """Launches of the budget that were used up before the environment changed; they are no trials of this history."""
    ruled_out: Counter[str] = field(default_factory=Counter)
    """Candidates that were not launched, by why: a tally for the reader, which no decision looks at."""
    refusals: list[Refusal] = field(default_factory=list)
    """Candidates that the map ruled out, in order: for the reader too."""
    memo: Memo = field(default_factory=Memo, compare=False, repr=False)
    """Sums over closed trials that an earlier history of the study took already: a cache, which decides nothing."""

    @cached_property
    def launches(self) -> tuple[Trial, ...]:
        """Launches at the top rung that count, with those in flight."""
        return tuple(sums.launches(self))

    @property
    def spent(self) -> int:
        """How many launches of the budget are used up, with those in flight."""
        return self.earlier + tallies.num_launches(self)

    @cached_property
    def in_flight(self) -> InFlight:
        """What is running now."""
        return InFlight.of(self)

    @cached_property
    def rungs(self) -> tuple[Rung, ...]:
        """The rungs that this study climbs, cheapest first: those of its engine, as far as it may."""
        order = list(Rung)
        first, last = order.index(self.settings.start_rung), order.index(self.settings.max_rung)
        return tuple(rung for rung in rungs_of(self.runner, self.settings.engine) if rung in order[first : last + 1])

    @cached_property
    def memory(self) -> RungMemory:
        """What the rungs below the top said."""
        return RungMemory(self.space, self.probes, self.checks, self.atlas, self.memo)

    @cached_property
    def checked(self) -> Set[str]:
        """Identities of the checks that are closed or in flight, as asked and as ran."""
        return sums.checked(self)

    @cached_property
    def identities(self) -> Container[str]:
        """Identities of the launches that are closed or in flight, as asked and as ran: none of them may run again."""
        return sums.identities(self)

    @cached_property
    def probed(self) -> Set[str]:
        """Identities of the probes that are closed or in flight, as they ran."""
        return sums.probed(self)

    @cached_property
    def closed_probes(self) -> Set[str]:
        """The same, and as they were asked for: where another value ran, asking again would run it again."""
        return sums.probed(self, as_asked=True)

    @cached_property
    def interruptions(self) -> Counter[str]:
        """How often each identity ended by the harness's own fault; an agent that was killed or stopped is none."""
        return sums.interruptions(self)

    @cached_property
    def values(self) -> Values:
        """Resolved assignment's key → values of all its measured launches, repeats included, in order.

        Of several goals it is one figure, with the weights of the next launch.
        """
        if len(self.settings.goals) == 1:
            return measured_values(self)
        return Values(sums.weighed_values(self, None if self.is_even else self._num_closed))

    @cached_property
    def evenly(self) -> History:
        """The same study with its goals weighed alike: what is compared and declared does not hang on a draw."""
        return replace(self, is_even=True) if len(self.settings.goals) > 1 else self

    @cached_property
    def silent_rewrites(self) -> Rewrites:
        """Values that the engine was seen to replace: asking for one means asking for the other."""
        return sums.silent_rewrites(self, with_probes=False)

    @cached_property
    def _probe_rewrites(self) -> Rewrites:
        """The same for a probe. What only a probe showed says nothing about the engine: launches look at their own."""
        return sums.silent_rewrites(self, with_probes=True)

    @cached_property
    def measured(self) -> Mapping[str, Assignment]:
        """Key → resolved assignment of everything that was measured, in order of first measurement."""
        return sums.measured(self)

    def working_at(self, rung: Rung) -> dict[str, Assignment]:
        """Return key → resolved assignment of everything that worked at this rung or above it."""
        return working.working_at(self, rung)

    def mean(self, key: str) -> float:
        """Return the mean value of an assignment over its launches."""
        return self.means[key]

    @cached_property
    def noise_sd(self) -> float:
        """Standard deviation from launch to launch, as a share of the value."""
        return self.spread.sd

    @cached_property
    def spread(self) -> Spread:
        """How far launches differ: by the repeats, and by what is usual."""
        usual = Spread(variance=USUAL_NOISE_SD**2, freedom=USUAL_WEIGHT)
        return pooled([usual, spread_within(self.values.of_several)])

    @cached_property
    def means(self) -> Mapping[str, float]:
        """Key → mean value of an assignment over its launches."""
        return self.values.means

    @cached_property
    def ranking(self) -> list[str]:
        """Return the keys of the measured assignments, best mean first."""
        return self.values.ranking

    @cached_property
    def default(self) -> Assignment:
        """The engine's default assignment here."""
        return self.space.normalise(self.space.default_on(self.facts), self.facts)

    @cached_property
    def base(self) -> Assignment | None:
        """The starting point of every change: the default where it works, else the first assignment that worked.

        None until the default or a safer setting is closed. In a study without launches: what no rung refused.
        """
        return base_of(self)

    @cached_property
    def starts(self) -> tuple[Assignment, ...]:
        """The engine's default, then safer and safer settings."""
        return starts_of(self)

    def without_speculation(self, assignment: Mapping[str, Scalar]) -> Assignment:
        """Return what an assignment becomes as the baseline."""
        return self.space.normalise({**assignment, **self.space.baseline}, self.facts)

    @cached_property
    def baseline_key(self) -> str | None:
        """Key of the measured baseline, or None where it does not work."""
        if self.base is None:
            return None
        key = assignment_key(self.without_speculation(self.base))
        return key if key in self.measured else None

    @cached_property
    def incumbent(self) -> Assignment | None:
        """The best working assignment so far, replaced only by what is better beyond the noise."""
        return of_closed(self, "incumbent", self._incumbent)

    def _incumbent(self) -> Assignment | None:
        best, bar = None, -math.inf
        for key, mean in self.means.items():  # in order of first measurement
            if mean > bar:
                best, bar = key, mean * (1 + ADOPTION_MARGIN)
        return self.measured[best] if best is not None else None

    def random(self, purpose: str) -> random.Random:
        """Return a generator that depends on the seed, the purpose and how far the study is, and on nothing else."""
        return random.Random(self.seed_for(purpose))  # noqa: S311 - reproducible choices, not secrets

    def seed_for(self, purpose: str) -> int:
        """Return a 32-bit seed derived like that of `random`."""
        text = f"{self.settings.seed}/{purpose}/{self._num_closed}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")

    @cached_property
    def _num_closed(self) -> int:
        return sums.num_closed(self)

    @cached_property
    def _locked(self) -> frozenset[tuple[str, str]]:
        return still_locked(self)

    def locked_value(self, point: Mapping[str, Scalar]) -> str | None:
        """Return a value of the point that no step may propose but an escape, in words, or None."""
        if not self._locked:
            return None
        name = next((each for each in point if (each, repr(point[each])) in self._locked), None)
        return None if name is None else f"{name}={point[name]} is tried as an escape only"

    def admit(
        self,
        candidate: Mapping[str, Scalar],
        kind: Kind,
        stage: str,
        base: Assignment | None = None,
        *,
        about: str = "",
        repeat: int = 0,
        may_unlock: bool = False,
        rung: Rung | None = None,
    ) -> Work | None:
        """Return the candidate as work, or None when it must not or need not be launched (and tally why).

        Args:
            candidate: A complete assignment.
            kind: Why it would run.
            stage: Which step proposes it, in words.
            base: The working assignment it was changed from.
            about: Reason or id of the dead end that an experiment is about: neither it nor a suspicion is in its way.
            repeat: Number of the repeat, for work of which this kind was closed before.
            may_unlock: True for an escape and for what the user asks for: locked values are allowed.
            rung: Where it would run; by default a probe at its own, everything else at the top.
        """
        asked = prepared(self, candidate)
        requested, resolution = asked.requested, asked.resolution
        rewrites = self._probe_rewrites if kind is Kind.PROBE else self.silent_rewrites
        resolved, observed = rewritten(resolution.assignment, rewrites)
        resolved = self.space.normalise(resolved, self.facts) if observed else resolved
        if (shown := self.memory.resolved(requested, asked.key)) is not None:
            resolved, observed = shown[0], (*observed, *shown[1])
        rung = rung or (Rung.PROBE if kind is Kind.PROBE else Rung.FULL)
        locked = None if may_unlock else self.locked_value(requested)
        if (why := asked.why_not or locked or ruled_out(self, resolved, about, rung)) is not None:
            self.ruled_out[why] += 1
            return None
        work = Work(
            kind=kind,
            rung=rung,
            requested=requested,
            resolved=resolved,
            rewrites=(*resolution.rewrites, *observed),
            stage=stage,
            base=base,
            about=about,
            repeat=repeat,
        )
        if (why := why_not(self, work)) is not None:
            self.ruled_out[why] += 1
            return None
        return work
