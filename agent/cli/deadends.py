"""`agent deadends`: the map, and the user's two wishes about it: check one again, forget one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent.cli.options import home_option, json_option, storage_option

if TYPE_CHECKING:
    from agent.reading import Reading

FORGET = "forget"
EVERY = "*"


@click.command(epilog="Example: agent deadends --all; agent deadends forget D3b2668")
@click.argument("words", nargs=-1, metavar=f"[STUDY | {FORGET} ID…]")
@click.option("--all", "show_all", is_flag=True, help="Show suspected, flaky and refuted ones too.")
@click.option(
    "--recheck",
    is_flag=False,
    flag_value=EVERY,
    metavar="[ID]",
    help="Check a dead end again, or all confirmed and stale ones: the next `agent resume` does it.",
)
@click.option("--undo", is_flag=True, help=f"With {FORGET}: let the dead end block again.")
@click.option("--study", "named", help="Study, where the words name something else.  [default: the last one]")
@json_option
@storage_option
@home_option
def command(
    words: tuple[str, ...],
    show_all: bool,
    recheck: str | None,
    undo: bool,
    named: str | None,
    as_json: bool,
    storage: str | None,
    home: str | None,
) -> None:
    """Show what cannot work on the node of STUDY (by default the last one): conditions, reason, evidence, cure.

    `agent deadends forget ID` takes a dead end off the map, together with the trials that it rests on: it no longer
    blocks, until trials to come find it again. `--undo` takes that back.
    """
    from agent.home import Home
    from agent.reading import read_study

    is_forgetting = words[:1] == (FORGET,)
    ids = words[1:] if is_forgetting else ()
    if is_forgetting and not ids:
        raise click.UsageError(f"{FORGET} needs the ID of a dead end, as `agent deadends` shows it")
    if undo and not is_forgetting:
        raise click.UsageError(f"--undo goes with `agent deadends {FORGET} ID`")
    if not is_forgetting and len(words) > 1:
        raise click.UsageError(f"STUDY: one at a time, not {len(words)}: {' '.join(words)}")
    study = named or (None if is_forgetting else next(iter(words), None))
    reading = read_study(Home.find(home), study, storage)
    if is_forgetting:
        _forget(reading, ids, undo)
    elif recheck is not None:
        _recheck(reading, recheck)
    elif as_json:
        _print_json(reading)
    else:
        _print(reading, show_all)


def _forget(reading: Reading, ids: tuple[str, ...], undo: bool) -> None:
    from agent.map_wishes import forget, remember

    for line in (remember if undo else forget)(reading, ids):
        click.echo(line)


def _recheck(reading: Reading, wanted: str) -> None:
    from agent.map_wishes import recheck

    for line in recheck(reading, None if wanted == EVERY else wanted):
        click.echo(line)


def _print_json(reading: Reading) -> None:
    import json

    from agent.saved import map_saved_s, times_of
    from agent.wishes import read_counts

    history, ruled_out = reading.history, read_counts(reading.store)
    times = times_of(history)
    content = []
    for found in history.atlas.dead_ends:
        counted = ruled_out.get(found.id, {})
        disagreeing = [each for each in history.atlas.contradictions if each.reason is found.reason]
        more: dict[str, object] = {"ruled_out": counted, "saved_s": map_saved_s(found, counted, times)}
        more["contradictions"] = [each.model_dump(mode="json") for each in disagreeing]
        content.append(found.model_dump(mode="json") | more)
    click.echo(json.dumps(content, indent=2, ensure_ascii=False))


def _print(reading: Reading, show_all: bool) -> None:
    from agent.cli.blocks import print_dead_ends
    from agent.cli.map_table import SHOWN, print_map
    from agent.cli.screen import make_console

    console, dead_ends = make_console(), reading.history.atlas.dead_ends
    if show_all:
        for each in reading.history.atlas.contradictions:
            console.print(f"rungs disagree: {each}", soft_wrap=True)
    if not dead_ends:
        console.print("No dead ends: everything that was tried works here.")
        return
    shown = [found for found in dead_ends if show_all or found.state in SHOWN]
    print_map(reading, shown, console)
    print_dead_ends(shown, console)
