"""From a seed to one spoilt input: the files it takes, the words of the command, the variables."""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.support.bad_input import mutations, valid

NODE, COMMAND = "node.yaml", "command.txt"
KINDS = ("study", "space", "node", "variant", "table", "csv", "rules", "prompts", "command", "options", "environment")
WEIGHTS = (22, 18, 16, 4, 8, 5, 9, 5, 3, 7, 3)
READING = (
    ["status"],
    ["best"],
    ["deadends"],
    ["explain"],
    ["sync"],
    ["resume"],
    ["try"],
    ["classify"],
    ["doctor", "--tp"],
)
VARIABLES = ("AGENT_HOME", "MLFLOW_TRACKING_URI", "COLUMNS", "LINES", "TMPDIR", "HOME", "NO_COLOR", "TERM", "LANG")
OPTIONS = (
    *("--budget", "--time-budget", "--engine", "--model", "--draft", "--engine-python", "--base-cmd", "--node"),
    *("--space", "--spec", "--name", "--tp", "--device", "--concurrency", "--prompt-tokens", "--output-tokens"),
    *("--requests", "--seed", "--pin", "--exclude", "--option", "--env", "--storage", "--tracking-uri"),
    *("--trials-per-node", "--home"),
)
"""Options of `agent search`; --ray-address is left out, since it asks the network."""


@dataclass(frozen=True)
class Case:
    """One spoilt input in a folder of its own."""

    kind: str
    seed: int
    words: tuple[str, ...]
    """Words of the command; empty for datasets and base commands, which go to their readers."""
    variables: Mapping[str, str] = field(default_factory=dict)


def make_case(seed: int, folder: Path, kind: str | None = None) -> Case:
    """Return the case of a seed with its files written into an empty folder."""
    rng = random.Random(seed)
    kind = kind or rng.choices(KINDS, WEIGHTS)[0]
    dry = ("search", "--dry-run", "--home", str(folder / "home"))
    replay = (*dry, "--engine", "replay")
    path = folder / {"table": "table.jsonl", "csv": "table.csv", "prompts": "prompts.jsonl"}.get(kind, f"{kind}.yaml")
    if kind in ("study", "options", "environment"):
        write_valid_node(folder)
    if kind == "study":
        spoil(kind, path, rng)
        return Case(kind, seed, (*replay, "--node", str(folder / NODE), "--spec", str(path)))
    if kind == "space":
        spoil(kind, path, rng)
        node = {name: value for name, value in valid.node().items() if name not in ("failures", "no_ops")}
        performance = {name: node["performance"][name] for name in ("compute", "communication")}
        node |= {"space": path.name, "performance": performance}
        (folder / NODE).write_text(to_yaml(node), encoding="utf-8")
        return Case(kind, seed, (*replay, "--node", str(folder / NODE)))
    if kind == "variant":
        (folder / "base.yaml").write_text(to_yaml(valid.node()), encoding="utf-8")
    if kind in ("node", "variant", "table", "csv"):
        spoil(kind, path, rng)
        return Case(kind, seed, (*replay, "--node", str(path)))
    if kind == "rules":
        spoil(kind, path, rng)
        (folder / "engine.log").write_text("the experts went on strike\n", encoding="utf-8")
        return Case(kind, seed, ("classify", "--rules", str(path), str(folder / "engine.log")))
    if kind == "prompts":
        spoil(kind, path, rng)
        return Case(kind, seed, ())
    return _of_words(kind, seed, folder, rng)


def _of_words(kind: str, seed: int, folder: Path, rng: random.Random) -> Case:
    dry = ("search", "--dry-run", "--home", str(folder / "home"))
    replay = (*dry, "--engine", "replay", "--node", str(folder / NODE))
    if kind == "command":
        (folder / COMMAND).write_text(_spoilt_command(rng), encoding="utf-8", errors="surrogateescape")
        return Case(kind, seed, ())
    if kind == "environment":
        at_home = tuple(word for word in replay if word not in ("--home", str(folder / "home")))
        nasty = {rng.choice(VARIABLES): _argument(rng) for _ in range(rng.randint(1, 2))}
        return Case(kind, seed, at_home, {"AGENT_HOME": str(folder / "home")} | nasty)
    if rng.random() < 0.3:
        words = [*rng.choice(READING), *(_argument(rng) for _ in range(rng.randint(0, 2)))]
        known = [] if words[0] in ("classify", "doctor") else ["--home", str(folder / "home")]
        return Case(kind, seed, (*words, *known))
    given: list[str] = []
    for _ in range(rng.randint(1, 3)):
        given += [rng.choice(OPTIONS), _argument(rng)]
    return Case(kind, seed, (*replay, *given))


def _argument(rng: random.Random) -> str:
    """Return a word as a program may get it: never with a NUL, and with bytes that are no text as Python has them."""
    nasty = [str(value) for value in mutations.NASTY if isinstance(value, str | int | float)]
    names = ["draft=3", "draft=99", "draft", "drft=1", "backend=", "=a", "backend=a=b", "1,8", "1,,8", "-5", "--", "#1"]
    more = ["/", "/dev/null", "/proc", "/dev/zero", "\udcff\udcfe", "sqlite:///", "sqlite:////x/y.db", "http://[", "p3"]
    return rng.choice([*nasty, *names, *more]).replace("\0", "").replace("\ud800", "\udc80")


def _spoilt_command(rng: random.Random) -> str:
    words = [*shlex.split(valid.COMMAND), *(_argument(rng) for _ in range(rng.randint(0, 2)))]
    text = rng.choice([valid.COMMAND, shlex.join(rng.sample(words, rng.randint(0, len(words))))])
    for _ in range(rng.randint(0, 2)):
        text = mutations.sprinkled(text, rng)
    return text.replace("\0", "")


def spoil(kind: str, path: Path, rng: random.Random) -> None:
    """Write a spoilt document of a kind."""
    data: Any = None if kind == "csv" else valid.DOCUMENTS[kind]()
    how = rng.random()
    if data is not None and how < 0.72:
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            data = rng.choice(mutations.DATA)(data, rng)
    text = valid.CSV if data is None and kind == "csv" else _text(kind, data)
    if kind == "csv" or how >= 0.62:
        for _ in range(rng.choice([1, 1, 2])):
            text = rng.choice(mutations.TEXT)(text, rng)
    if how > 0.985:
        text = rng.choice(mutations.RARE_TEXT)(text, rng)
    if 0.94 < how < 0.97:
        mutations.encoded(text.encode("utf-8", "replace").decode(), path, rng)
    elif 0.97 < how < 0.985:
        mutations.misplaced(path, rng)
    else:
        path.write_bytes(text.encode("utf-8", "surrogatepass"))


def _text(kind: str, data: Any) -> str:
    if kind in ("table", "prompts"):
        return "".join(json.dumps(line) + "\n" for line in (data if isinstance(data, list) else [data]))
    return to_yaml(data)


def to_yaml(data: Any) -> str:
    """Return the data as YAML with short strings quoted where needed, and every scalar on a line of its own."""
    return yaml.dump(data, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=10_000)


class _Plain(yaml.SafeDumper):
    """Writes what is shared twice, without anchors."""

    def ignore_aliases(self, data: object) -> bool:
        """Never."""
        return True


def write_valid_node(folder: Path) -> None:
    """Write the node that the other kinds are replayed on."""
    (folder / NODE).write_text(to_yaml(valid.node()), encoding="utf-8")
