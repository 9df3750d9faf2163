"""`agent completion`: commands and options at the press of Tab."""

from __future__ import annotations

import click

HOW = {
    "bash": 'eval "$(agent completion bash)"      # in ~/.bashrc',
    "zsh": 'eval "$(agent completion zsh)"       # in ~/.zshrc',
    "fish": "agent completion fish | source      # in ~/.config/fish/config.fish",
}


@click.command(epilog="Example: " + HOW["bash"])
@click.argument("shell", type=click.Choice(tuple(HOW)))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL, to be read by it at its start."""
    from click.shell_completion import get_completion_class

    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(completion(context.find_root().command, {}, "agent", "_AGENT_COMPLETE").source())
