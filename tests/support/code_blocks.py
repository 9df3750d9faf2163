"""The code blocks of the documentation, and the commands in them."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.command_line import ROOT

NO_PAGES = ("agent/classify/reasons/", "tests/benchmarks/results/")
"""Patterns that a table generates, each with a log that it matches; and records of what was once run."""
FENCE = re.compile(r"^```(.*)$")
INDENTED = re.compile(r"^    +\S")
LIST = re.compile(r"^\s*(?:[-*]|\d+\.) ")
CONTINUED = re.compile(r"^ {2,}\S")


@dataclass(frozen=True)
class Block:
    """One block of a page."""

    page: str
    line: int
    """Where its text begins, counted from 1."""
    language: str
    """What stands behind the fence; empty for a block that is indented or has no language."""
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class ShellCommand:
    """One command of a block: variables that are set for it, program and words."""

    where: str
    words: tuple[str, ...]

    @property
    def program(self) -> str:
        """What is run."""
        return self.words[0]

    def __str__(self) -> str:
        return f"{self.where} {shlex.join(self.words)}"


def pages() -> list[str]:
    """Return the pages whose blocks are promises."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return sorted(name for name in listed.stdout.split() if not name.startswith(NO_PAGES) and (ROOT / name).exists())


def blocks(*languages: str) -> list[Block]:
    """Return the blocks of all pages, or those in these languages (`yaml` is any YAML, `yaml node` that kind)."""
    found = [block for page in pages() for block in _blocks_of(page)]
    return [each for each in found if not languages or {each.language, each.language.split(" ")[0]} & set(languages)]


def _blocks_of(page: str) -> Iterator[Block]:
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    start, language, is_list = 0, "", False
    for number, line in enumerate(lines, 1):
        fence = FENCE.match(line)
        if fence is not None and start:
            yield Block(page, start, language, "\n".join(lines[start - 1 : number - 1]) + "\n")
            start = 0
        elif fence is not None:
            start, language = number + 1, fence[1].strip()
        elif not start and INDENTED.match(line) and not lines[number - 2].strip() and not is_list:
            yield Block(page, number, "", line)
        elif line.strip() and not line.startswith(" "):
            is_list = bool(LIST.match(line))


def commands() -> list[ShellCommand]:
    """Return every command of the shell blocks, pipes and conjunctions taken apart, without redirections."""
    return [
        command
        for block in blocks("sh", "console")
        for line in _lines(block)
        for command in _commands_of(line, str(block))
    ]


def _lines(block: Block) -> Iterator[str]:
    """Yield the command lines: all of them in `sh`, those behind a prompt in `console`, continued ones joined."""
    if block.language == "sh":
        yield from (line for line in block.text.splitlines() if line.strip())
        return
    prompted = re.compile(r"^\$ (.*(?:\n {2,}\S.*)*)", re.MULTILINE)
    yield from (" ".join(match.split()) for match in prompted.findall(block.text.partition("\n\n")[0]))


def _commands_of(line: str, where: str) -> Iterator[ShellCommand]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&>")
    lexer.whitespace_split = True
    words: list[str] = []
    tokens = iter([*lexer, "&&"])
    for token in tokens:
        if token == ">":  # noqa: S105 (of a command line)
            next(tokens)
        elif token in ("&&", "|"):
            while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
                del words[0]
            if words:
                yield ShellCommand(where, tuple(words))
            words = []
        else:
            words.append(token)


INLINE = re.compile(r"`(agent [a-z][^`]*)`")
PLACEHOLDER = re.compile(r"\[[^]]*\]|…|\\\|\S*")


def inline_commands() -> list[ShellCommand]:
    """Return the commands in the sentences of the pages, each spelling once, placeholders in brackets left out."""
    found: dict[str, ShellCommand] = {}
    for page in pages():
        for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
            for text in INLINE.findall(line):
                said = PLACEHOLDER.sub("", text).replace(" N", " 1")
                words = tuple(shlex.split(said))
                found.setdefault(text, ShellCommand(f"{page}:{number}", words))
    return list(found.values())
