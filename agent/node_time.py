"""Where a study's node time went and what spared it more, as small tables for the report: Markdown and HTML alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.outcome import OutcomeKind
from agent.progress import spoken
from agent.rungs import WORDS
from agent.saved import Spared, plural
from agent.summary import StudySummary
from runners import Rung

NOTE = (
    "Saved time is an estimate: a launch that was not made counts as long as launches take here that fail for the same "
    "reason, or else as a launch takes up to the phase in which it would have failed."
)


@dataclass(frozen=True, slots=True)
class Table:
    """Titles of the columns, and the rows below them; the first columns are words, the others are figures."""

    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    num_words: int = 1
    """Columns of words."""

    def markdown(self) -> str:
        """Return it as a Markdown table."""
        rule = [*["---"] * self.num_words, *["---:"] * (len(self.titles) - self.num_words)]
        lines = [self.titles, rule, *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def spent_table(summary: StudySummary) -> Table:
    """Return the node time by rung and by what came of it."""
    rungs = summary.rungs
    there = [kind.value for kind in OutcomeKind if any(kind.value in cost.by_outcome_s for cost in rungs.values())]
    rows = [
        (
            f"{cost.closed} {WORDS[rung]}",
            *(spoken(cost.by_outcome_s[kind]) if kind in cost.by_outcome_s else "" for kind in there),
            spoken(cost.node_s),
        )
        for rung, cost in rungs.items()
    ]
    return Table(("spent on", *(kind.replace("_", " ") for kind in there), "all"), tuple(rows))


def saved_table(summary: StudySummary) -> Table:
    """Return what was not run, what spared it, and the node time it would have taken; no rows where nothing was."""
    saved, rows = summary.saved, []
    if saved.ruled_out:
        numbers = ", ".join(_number(Rung(rung), number) for rung, number in sorted(saved.ruled_out.items()))
        rows.append(("the map of dead ends", f"{numbers} ruled out", spoken(saved.map_s)))
    rows += [_rung_row(each) for each in saved.ladder if each.launches]
    costs = [each for each in saved.ladder if not each.launches and each.checks_s >= 1.0]
    rows += [(f"the {each.rung.value} rung", "no launch", f"-{spoken(each.checks_s)}") for each in costs]
    if saved.early:
        loads = plural(saved.early, "load", "loads")
        rows.append(("ending loads early", f"the rest of {loads} that were clearly slower", spoken(saved.early_s)))
    return Table(("saved by", "not run", "node time"), tuple(rows), num_words=2)


def saved_notes(summary: StudySummary) -> list[str]:
    """Return what a reader has to know about that table."""
    notes = [NOTE, *_found(summary.saved.ladder)]
    return [*notes, "All of these are times of the model."] if summary.modelled else notes


def node_time_markdown(summary: StudySummary) -> str:
    """Return both tables as Markdown, empty for a study in which nothing ran."""
    spent, saved = spent_table(summary), saved_table(summary)
    parts = [spent.markdown()] if spent.rows else []
    parts += [saved.markdown(), *saved_notes(summary)] if saved.rows else []
    return "\n\n".join(parts)


def _rung_row(spared: Spared) -> tuple[str, str, str]:
    what = plural(spared.launches, "launch", "launches")
    took = f"{spoken(spared.launches_s)}, less {spoken(spared.checks_s)} for what was asked there"
    left = spoken(abs(spared.saved_s))
    return f"the {spared.rung.value} rung", f"{what} shown to fail ({took})", f"{'-' * (spared.saved_s < 0)}{left}"


def _found(ladder: Sequence[Spared]) -> list[str]:
    more = [each for each in ladder if each.found]
    if not more:
        return []
    where = ", ".join(f"{each.found} by {WORDS[each.rung]}" for each in more)
    time = spoken(sum(each.found_s for each in more))
    return [
        f"Further assignments were shown to fail although no launch of theirs was due: {where}. As launches they would "
        f"have taken {time}, which is not counted as saved."
    ]


def _number(rung: Rung, number: int) -> str:
    one = {Rung.FULL: "launch", Rung.PROBE: "probe", Rung.DUMMY: "dummy launch"}.get(rung, "resolution")
    return plural(number, one, f"{one}es" if one.endswith("launch") else f"{one}s")
