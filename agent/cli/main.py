"""`agent`: the group of commands. Start-up loads click and nothing else; a command's file is imported when it runs."""

from __future__ import annotations

import errno
import importlib
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

LONGEST_MESSAGE = 1400
WRONG_INPUT = 2
"""As `agent.errors` has it, which is not loaded here; where no command was named, too."""
PACKAGE = "serving-search-agent"
INTERRUPTED = 130
"""As `agent.errors` has it, which is not loaded here."""
DISK_TROUBLE = 5
"""As `agent.errors` has it, which is not loaded here."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
COMMANDS = {
    "search": "search",
    "resume": "resume",
    "status": "status",
    "best": "best",
    "deadends": "deadends",
    "explain": "explain",
    "report": "report",
    "ui": "ui",
    "sync": "sync",
    "try": "try_assignment",
    "pause": "pause",
    "classify": "classify",
    "reclassify": "reclassify",
    "doctor": "doctor",
    "completion": "completion",
    "probe": "probe",
}
SUMMARIES = {
    "search": "Search for the best configuration of a node.",
    "resume": "Go on with an interrupted study, or give it more budget.",
    "status": "Show how far a study is.",
    "best": "Show the best configuration and the command that repeats it.",
    "deadends": "Show what cannot work on this node, and why.",
    "explain": "Explain one trial: why it failed, what it taught, what would help.",
    "report": "Write what was found into one HTML file, and as Markdown.",
    "ui": "Show every trial in MLflow, on this host only.",
    "sync": "Make MLflow equal to the study's storage.",
    "try": "Launch exactly this assignment next.",
    "pause": "Let a running search finish what runs, then leave.",
    "classify": "Say why a launch failed, from its log.",
    "reclassify": "Judge stored failures again, after a rule improved.",
    "doctor": "Say what this node and its engines can use, and what is missing.",
    "completion": "Print the shell's completion script.",
    "probe": "Time every collective that this node offers.",
}


class LazyGroup(click.Group):
    """A group whose commands are imported on demand."""

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        """Read the words of the command line."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # a terminal or file of another encoding may lack "×" and "≥"
                stream.reconfigure(errors="replace")
        with _interruptible(), _full_output():
            return super().make_context(*args, **options)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which a newcomer needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"agent.cli.{COMMANDS[cmd_name]}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the group's own words; without any, say what there is."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(WRONG_INPUT)
        with _printable_usage():
            return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command when there is none of that name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from search_spaces import nearest

            raise click.UsageError(f"No such command '{args[0]}'. {nearest(args[0], COMMANDS)}", ctx) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what is wrong with the input or the node ends as one message and an exit code."""
        with _interruptible(), _full_output():
            return self._invoke(ctx)

    def _invoke(self, ctx: click.Context) -> Any:
        from agent.errors import INTERRUPTED_EXIT_CODE, AgentError, UsageError
        from agent.private_files import private_files

        _check_folder()
        try:
            with private_files(), _printable_usage():
                return super().invoke(ctx)
        except ValueError as error:
            from search_spaces.errors import SpecificationError

            if not isinstance(error, SpecificationError):
                raise
            _fail(_shown(str(error)), UsageError.exit_code)
        except AgentError as error:
            _fail("\n".join(map(_shown, error.lines)), error.exit_code)
        except KeyboardInterrupt:
            _fail("interrupted; nothing that was closed is lost: go on with `agent resume`", INTERRUPTED_EXIT_CODE)


@contextmanager
def _interruptible() -> Iterator[None]:
    """A Ctrl-C before a command can handle it, or a second one meanwhile, has the code of one; click has a 1 for it."""
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


@contextmanager
def _full_output() -> Iterator[None]:
    """Whoever sends the output into a file on a full disk is told so: it is no file of ours, so it has no name here."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL or error.filename is not None:
            raise
        from agent.cli.outlet import send_nowhere

        send_nowhere(sys.stdout)
        _fail(f"the output cannot be written: {error.strerror}", DISK_TROUBLE)


@contextmanager
def _printable_usage() -> Iterator[None]:
    """What somebody typed is shown without what moves a terminal's cursor; click repeats it as it is."""
    try:
        yield
    except click.UsageError as error:
        raise click.UsageError(_shown(error.format_message()), error.ctx) from error


def _check_folder() -> None:
    """Relative paths, and what is started from here, need the folder that a shell stands in."""
    try:
        Path.cwd()
    except OSError as error:
        _fail(f"the present folder cannot be used ({error.strerror}): change to one that is there", WRONG_INPUT)


def _fail(message: str, exit_code: int) -> None:
    with suppress(OSError):  # a closed terminal; the code is still read
        click.echo(f"Error: {message}", err=True)
    sys.exit(exit_code)


def _shown(message: str) -> str:
    from agent.redaction import redact_text
    from search_spaces.errors import printable, shortened

    return shortened(printable(redact_text(message)), LONGEST_MESSAGE)


def _show_version(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if not is_wanted or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        found: str | None = version(PACKAGE)
    except (PackageNotFoundError, KeyError, TypeError):  # the last two where what was installed is damaged
        found = None
    if found is None:
        _fail("the version is not known: this copy is not installed. In its folder, run: pip install -e .", WRONG_INPUT)
    click.echo(f"agent, version {found}")
    ctx.exit()


EPILOG = """\b
Begin with  agent search --engine replay --node pcie8-blackwell-cuda128
            (a modelled node: half a minute), or
            agent search --dry-run, then agent search --budget 40

\b
Exit codes  0 done; 2 wrong input; 3 nothing works here; 4 node unusable;
            5 storage or disk trouble; 130 interrupted.
            After 4, 5 and 130 `agent resume` goes on.
"""


@click.group(
    cls=LazyGroup,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def main() -> None:
    """Search the serving configuration of a GPU node: the best speculative setting, and what cannot work, and why."""
