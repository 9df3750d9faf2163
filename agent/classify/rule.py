"""One failure rule: a row that says which evidence means which reason, whom it blames, and what helps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from agent.reasons import REASONS, Policy, Reason
from runners import Phase


class Priority(IntEnum):
    """How close to the root a rule's evidence is. A higher one wins; within one, the earliest line wins.

    Only the order matters; it answers "which of two lines explains the other".
    """

    MODELLED = 70
    """The last line of a modelled launch: the reason is what its node model says, whatever else the log shows."""
    SPECIFIC = 60
    """The message names the cause itself."""
    GENERAL = 50
    """A category that the software gives to its own failure ("invalid usage"); a specific line explains it."""
    SYMPTOM = 40
    """What one sees when something went wrong: a timeout, an assertion, a process that is gone."""
    WRAPPER = 30
    """A message put around another one ("Capture cuda graph failed: X")."""
    BARE = 25
    """An exception that no rule knows, or a death without a word: the root, but nothing can be said about it."""
    FOLLOW_UP = 20
    """What the healthy ranks say after another rank failed: never a root while anything else matched."""
    EXIT = 10
    """No line at all: exit facts and phase."""


SILENT = ("deadline", "no_progress", "unfinished")
"""Ends of a wait in which nothing happened any more; `unfinished`: the log just ends, and nobody watched the launch."""

NOT_OURS = ("exited", "served", "decisive_line", "child_died")
"""Ends of a wait that the engine itself brought about, or in which nobody here had killed anything yet."""

CONFIDENCE: dict[Priority, float] = {
    Priority.MODELLED: 1.0,
    Priority.SPECIFIC: 1.0,
    Priority.GENERAL: 0.9,
    Priority.SYMPTOM: 0.7,
    Priority.WRAPPER: 0.6,
    Priority.BARE: 0.5,
    Priority.FOLLOW_UP: 0.5,
    Priority.EXIT: 0.5,
}
"""How far a failure may be trusted that rests on evidence of this priority."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitFacts:
    """What a rule asks of a launch's end; an empty field asks nothing, the fields given must all hold."""

    signals: tuple[int, ...] = ()
    """One of these ended a process of the launch, and nobody here had asked for the end."""
    codes: tuple[int, ...] = ()
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A failure rule. Patterns are RE2 regular expressions, matched against one cleaned log line at a time."""

    code: str
    name: str
    reason: Reason
    any_of: tuple[str, ...] = ()
    """A line matching one of these is the evidence. Empty: exit facts and phase alone.

    Named groups carry meaning: `env…` an environment variable, `option` an engine option, `signal` the signal that
    ended a process. A group's text also replaces `{group}` in the cure.
    """
    none_of: tuple[str, ...] = ()
    """A line matching one of these is not evidence for this rule."""
    above: tuple[str, ...] = ()
    """One of these must match in the text just above the line: in its traceback, or in the message it belongs to."""
    frame: tuple[str, ...] = ()
    """One of these must match the innermost frame of the traceback that the line ends."""
    phases: tuple[Phase, ...] = ()
    """Phases (the last one reached) in which the rule applies; empty for all."""
    exit_facts: ExitFacts | None = None
    blames: tuple[str, ...] = ()
    """Parameters the evidence accuses when the line itself names none."""
    cure: str
    source: str
    """Software, version, and where in it the message is made."""
    priority: Priority = Priority.SPECIFIC
    is_decisive: bool = False
    """True when a line of this kind may end the wait at once: no launch recovers from it."""
    last_words: tuple[str, ...] = ()
    """For a rule without a line: one of these must match the last line that showed progress."""
    stacks: tuple[str, ...] = ()
    """For a rule without a line: one of these must match the stacks that were taken of the silent launch."""
    reads_benign: bool = False
    """True where a harmless line is evidence together with the exit facts."""
    needs_watch: bool = False
    """True for evidence that counts only where the launch was watched, so that it is known that nobody here did it."""
    is_catch_all: bool = False
    """True for a rule that takes any exception: it does not count on a line that another rule knows."""
    depends_on: tuple[str, ...] = ()
    """The facts that this failure hangs on, where they are fewer than those of its reason."""
    own_policy: Policy | None = None
    """The policy where this failure obliges to less than its reason does, as one that may not repeat."""

    @property
    def policy(self) -> Policy:
        """What one failure by this rule allows to conclude."""
        return self.own_policy or REASONS[self.reason].policy

    @property
    def num_constraints(self) -> int:
        """Conditions beside the line: of two rules with the same line, the one that asks for more wins."""
        # Which line came last says more than which phase, and where the ranks stand says more than either.
        weighty = 2 * [self.last_words] + 4 * [self.stacks]
        conditions = (self.phases, self.exit_facts, self.none_of, self.above, self.frame, *weighty)
        return sum(bool(condition) for condition in conditions)
