"""What happens, on the screen: one line for each closed trial, and below it what runs now. It never steers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agent.deadends.dead_end import DeadEnd
from agent.deadends.observation import trial_label
from agent.effects import contradictions
from agent.front import mean_figures
from agent.goals import in_words
from agent.outcome import OutcomeKind
from agent.progress import phase_now, spoken, time_left, typical_phase_s
from agent.propose.history import History
from agent.rungs import cost_words
from agent.store.trial import Kind, Trial
from agent.summary import Arm, StudySummary, changes_from, summarise
from runners import Rung

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

REFRESH_S = 0.25
RESULT_WIDTH = 23
GAP = "   "
INDENT = 15
"""Where the result stands, and what explains it below."""
EVIDENCE_CHARS = 200
PASSED = {Rung.RESOLVE: "arguments resolve", Rung.DUMMY: "passes as a dummy"}
"""What a pass shows at a rung without figures."""


class LiveView:
    """An observer that prints. On a terminal the last lines are alive; elsewhere only closed trials are printed."""

    def __init__(self, console: Console, history: History, name: str) -> None:
        self._console = console
        self._name = name
        self._history = history
        self._running: tuple[Trial, ...] = ()
        self._typical = typical_phase_s(history.trials)
        self._left = time_left(history.trials, history.budget - history.earlier)
        self._drawn = time.monotonic()
        self._live: Live | None = None
        self._summary: tuple[History, StudySummary] | None = None

    @contextmanager
    def shown(self) -> Iterator[LiveView]:
        """Keep the living lines on the terminal."""
        from rich.live import Live

        if not self._console.is_terminal:
            yield self
            return
        with Live(self._status(), console=self._console, auto_refresh=False, transient=True) as live:
            self._live = live
            yield self
            self._live = None

    def trials_opened(self, trials: Sequence[Trial]) -> None:
        """Show what was handed out."""
        self._running += tuple(trials)
        self._draw()

    def trial_closed(self, trial: Trial, history: History) -> None:
        """Print the trial's line and bring the figures up to date."""
        self._running = tuple(other for other in self._running if trial_label(other) != trial_label(trial))
        known = {(found.id, found.state) for found in self._history.atlas.dead_ends}
        self._history = history
        self._typical = typical_phase_s(history.trials)
        self._left = time_left(history.trials, history.budget - history.earlier)
        self._print_trial(trial)
        for found in history.atlas.dead_ends:
            if (found.id, found.state) not in known:
                self._print_dead_end(found)
        self._draw()

    def tick(self) -> None:
        """Redraw the living lines now and then."""
        if time.monotonic() - self._drawn >= REFRESH_S:
            self._draw()

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        if self._live is not None:
            self._live.update(self._status(), refresh=True)

    def _print(self, head: Text, rest: Text) -> None:
        """Print one event; on a terminal its second half wraps beside the first."""
        from rich.table import Table

        if not self._console.is_terminal:
            self._console.print(head.append(rest), soft_wrap=True)
            return
        grid = Table.grid()
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(head, rest)
        self._console.print(grid)

    def _print_trial(self, trial: Trial) -> None:
        from rich.text import Text

        result, colour = _result(trial, self._history)
        head = Text.assemble(
            f"{trial_label(trial):>5} {_kind(trial):<8} ",
            (f"{result:<{RESULT_WIDTH}} ", colour),
            (f"{_seconds(trial):>6}  ", "dim"),
        )
        self._print(head, Text(self._changes(trial)))
        for each in contradictions(trial):
            text = f"{each.parameter}={each.requested} ran as {each.resolved}: {each.why}"
            self._print(Text(" " * INDENT), Text(_cut(text), "yellow"))
        if evidence := _evidence(trial):
            self._print(Text(" " * INDENT), Text(evidence, "dim"))

    def _print_dead_end(self, found: DeadEnd) -> None:
        from rich.text import Text

        self._print(Text(" " * INDENT), Text(f"dead end {found.id} ({found.state.value}): {found}", "yellow"))

    def _status(self) -> Text:
        from rich.text import Text

        if self._summary is None or self._summary[0] is not self._history:  # drawn far more often than it changes
            self._summary = (self._history, summarise(self._history, self._name))
        summary = self._summary[1]
        lines = [self._now(), *_figures(summary, self._left)]
        return Text("\n".join(lines), style="cyan", overflow="ellipsis", no_wrap=True)

    def _now(self) -> str:
        if not self._running:
            return "choosing what to run next"
        trial = self._running[0]
        more = f"and {len(self._running) - 1} more" if len(self._running) > 1 else ""
        what = f"{trial.work.stage}: {self._changes(trial)}"
        phase = phase_now(trial, self._typical, time.time())
        elapsed = spoken((datetime.now(UTC) - trial.started_at).total_seconds())
        where = str(phase) if phase is not None else ""
        return GAP.join(
            filter(None, (f"{trial_label(trial)} {more}".rstrip(), f"{trial.work.rung.value} {elapsed}", where, what))
        )

    def _changes(self, trial: Trial) -> str:
        return changes_from(self._history.default, trial.work.resolved)


def _figures(summary: StudySummary, left: str) -> Iterator[str]:
    """Yield how far the study is, what is best, and how the map grows: each short enough for a narrow terminal."""
    node = f"modelled node {summary.modelled}" if summary.modelled else ""
    yield GAP.join(filter(None, (f"{summary.spent}/{summary.budget} launches", left, node)))
    best = f"best {_arm(summary, summary.best)}"
    if summary.best is not None:
        gain = f" {summary.gain:.2f}×" if summary.gain is not None else ""
        best += f"{gain}{GAP}{summary.changes(summary.best.assignment)}"
    yield f"baseline {_arm(summary, summary.baseline)}{GAP}{best}"
    confirmed, every = len(summary.atlas.confirmed), len(summary.atlas.dead_ends)
    below = cost_words(dict(summary.rungs))
    yield f"dead ends {confirmed} of {every} confirmed" + (f"{GAP}below the top: {below}" if below else "")


def _arm(summary: StudySummary, arm: Arm | None) -> str:
    return in_words(arm.mean, mean_figures(arm.trials), summary.goals) if arm is not None else "none"


def _kind(trial: Trial) -> str:
    return trial.work.rung.value if trial.work.rung in PASSED else trial.work.kind.value


def _result(trial: Trial, history: History) -> tuple[str, str]:
    """Return what came of a trial, and its colour."""
    outcome = trial.outcome
    if outcome is None or outcome.kind is OutcomeKind.INTERRUPTED:
        return "interrupted", "magenta"
    if outcome.kind is OutcomeKind.NOT_PROBED:
        return "not probed", "yellow"
    if outcome.failure is not None:
        return outcome.failure.reason.value, "bold red"
    if outcome.kind is OutcomeKind.SLOWER or outcome.value is None:
        about = f": about {outcome.value:.1f} tok/s, {trial.saved_s:.0f} s saved" if outcome.value else ""
        return f"stopped, clearly slower{about}", "yellow"
    if trial.work.rung in PASSED:
        return PASSED[trial.work.rung], "green"
    if trial.work.kind is Kind.PROBE:
        return f"{outcome.value:>6.0f} µs a verify pass", "green"
    baseline = history.baseline_key
    goals = history.settings.goals
    if len(goals) > 1:
        return in_words(outcome.value, tuple(outcome.figures.values()), goals), "green"
    gain = f" {outcome.value / history.mean(baseline):.2f}×" if baseline is not None else ""
    return f"{outcome.value:>8.1f} {goals[0].short_unit}{gain}", "green"


def _evidence(trial: Trial) -> str:
    """Return the line that tells why a trial failed, or why it was interrupted."""
    outcome = trial.outcome
    if outcome is None or outcome.kind is OutcomeKind.INTERRUPTED:
        return outcome.note if outcome else ""
    if outcome.failure is None:
        return _cut(outcome.note) if outcome.kind is OutcomeKind.NOT_PROBED else ""
    line = outcome.failure.decisive.text.strip() if outcome.failure.decisive else "no line tells why"
    return _cut(line)


def _cut(line: str) -> str:
    return line if len(line) <= EVIDENCE_CHARS else f"{line[:EVIDENCE_CHARS]}…"


def _seconds(trial: Trial) -> str:
    seconds = trial.record.wall_s if trial.record else 0.0
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds:.0f} s"
