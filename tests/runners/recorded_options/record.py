"""Reads the options that versions of an engine accept out of their source, without importing it (AST only).

    python record.py sglang 0.5.6=WHEEL 0.5.7=FOLDER … > sglang.txt

A line is `FIRST..LAST --option kind [choices]`, with kind flag, value or list, or `FIRST..LAST VARIABLE`. Choices are
kept for the options whose lists grew from version to version, variables where they are about collectives.
"""

from __future__ import annotations

import ast
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

WITH_CHOICES = {
    "--moe-a2a-backend",
    "--flashinfer-allreduce-fusion-backend",
    "--speculative-algorithm",
    "--cuda-graph-backend-decode",
    "--cuda-graph-backend-prefill",
    "--all2all-backend",
}
FILES = {
    "sglang": ("sglang/srt/server_args.py", "sglang/srt/arg_groups/choices.py", "sglang/srt/arg_groups/fields/*.py"),
    "vllm": ("vllm/engine/arg_utils.py", "vllm/entrypoints/**/cli_args.py", "vllm/config/*.py"),
}
VARIABLES = {"sglang": "sglang/srt/environ.py", "vllm": "vllm/envs.py"}
ABOUT_COLLECTIVES = re.compile("ALL_?REDUCE|NCCL|SYMM|SIMULATE")
FLAG_ACTIONS = ("store_true", "store_false", "store_const", "BooleanOptionalAction", "StoreTrue", "StoreConst")


class Source:
    """The parsed files of an engine: its constants, and the options they declare."""

    def __init__(self, engine: str, root: Path) -> None:
        self.engine = engine
        self.options: dict[str, tuple[str, str]] = {}
        self.constants: dict[str, ast.expr] = {}
        self.fields: dict[str, str] = {}
        trees = [ast.parse(path.read_text()) for pattern in FILES[engine] for path in sorted(root.glob(pattern))]
        for tree in trees:
            self._note_constants(tree)
        for tree in trees:
            self._note_fields(tree)
        for tree in trees:
            self._note_calls(tree)
        variables = root / VARIABLES[engine]
        self.variables = sorted(_variables(ast.parse(variables.read_text()))) if variables.exists() else []

    def _note_constants(self, tree: ast.Module) -> None:
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.constants[node.targets[0].id] = node.value

    def _note_fields(self, tree: ast.Module) -> None:
        for owner in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            for node in owner.body:
                if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
                    continue
                hint = ast.unparse(node.annotation)
                self.fields.setdefault(node.target.id, hint)
                if hint.startswith("A["):
                    self._note_annotated(node.target.id, node.annotation)
                elif owner.name in {"BaseFrontendArgs", "FrontendArgs"}:
                    self._add(["--" + node.target.id.replace("_", "-")], _kind_of(hint), "", pair=hint == "bool")

    def _note_annotated(self, name: str, annotation: ast.expr) -> None:
        hint, spec = annotation.slice.elts[0], annotation.slice.elts[1]  # type: ignore[attr-defined]
        given = {key.arg: key.value for key in spec.keywords} if isinstance(spec, ast.Call) else {}
        if "no_cli" in given:
            return
        names = [ast.literal_eval(given["cli_name"])] if "cli_name" in given else ["--" + name.replace("_", "-")]
        names += ast.literal_eval(given["aliases"]) if "aliases" in given else []
        kind = self._kind(given) or _kind_of(ast.unparse(hint))
        choices = self._choices(given.get("choices", hint if "Literal" in ast.unparse(hint) else None))
        self._add(names, kind, choices, pair=_has_opposite(given))

    def _note_calls(self, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            names = [item.value for item in node.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]
            names = [name for name in names if name.startswith("--")]
            if node.func.attr != "add_argument" or not names:
                continue
            given = {key.arg: key.value for key in node.keywords if key.arg}
            hint = self.fields.get(names[0][2:].replace("-", "_"), "str")
            pair = _has_opposite(given) or (self.engine == "vllm" and not given and hint.startswith("bool"))
            kind = self._kind(given) or ("value" if given or self.engine == "sglang" else _kind_of(hint))
            choices = given.get("choices") or self.constants.get(hint.split(" |")[0])
            self._add(names, kind, self._choices(choices), pair=pair)

    def _kind(self, given: dict[str | None, ast.expr]) -> str | None:
        action = ast.unparse(given["action"]) if "action" in given else ""
        if any(word in action for word in FLAG_ACTIONS):
            return "flag"
        nargs = ast.unparse(given["nargs"]).strip("'\"") if "nargs" in given else ""
        return "list" if nargs in ("+", "*") else None

    def _choices(self, node: ast.expr | None) -> str:
        while isinstance(node, ast.Name) and node.id in self.constants:
            node = self.constants[node.id]
        found = [item.value for item in ast.walk(node) if isinstance(item, ast.Constant)] if node is not None else []
        return ",".join(str(value) for value in found if isinstance(value, str))

    def _add(self, names: list[str], kind: str, choices: str, *, pair: bool = False) -> None:
        for name in names:
            self.options[name] = (kind, choices if name in WITH_CHOICES else "")
            if pair:
                self.options["--no-" + name[2:]] = ("flag", "")


def _has_opposite(given: dict[str | None, ast.expr]) -> bool:
    return "action" in given and "BooleanOptionalAction" in ast.unparse(given["action"])


def _kind_of(hint: str) -> str:
    if hint.startswith(("bool", "Optional[bool]")):
        return "flag"
    return "list" if hint.startswith(("list", "List", "Optional[List", "Optional[list")) else "value"


def _variables(tree: ast.Module) -> set[str]:
    return {name for name in _declared_variables(tree) if ABOUT_COLLECTIVES.search(name)}


def _declared_variables(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == "Envs":
            yield from (item.targets[0].id for item in node.body if isinstance(item, ast.Assign))  # type: ignore[attr-defined]
        if isinstance(node, ast.Dict):
            keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
            yield from (key for key in keys if isinstance(key, str) and key.isupper() and "_" in key)


def lines_of(engine: str, where: Path) -> list[str]:
    """Return the lines of one version, in a wheel or an unpacked folder."""
    with tempfile.TemporaryDirectory() as folder:
        if where.is_file():
            with zipfile.ZipFile(where) as wheel:
                wheel.extractall(folder, [name for name in wheel.namelist() if name.endswith(".py")])
        source = Source(engine, Path(folder) if where.is_file() else where)
    options = [f"{name} {kind} {choices}".rstrip() for name, (kind, choices) in source.options.items()]
    return [*options, *source.variables]


def main() -> None:
    """Print the table of the versions given as VERSION=PATH, oldest first."""
    engine, sources = sys.argv[1], dict(argument.split("=", 1) for argument in sys.argv[2:])
    versions = list(sources)
    seen: dict[str, list[int]] = {}
    for index, where in enumerate(sources.values()):
        for line in lines_of(engine, Path(where)):
            seen.setdefault(line, []).append(index)
    print("versions", *versions)
    for line, indices in sorted(seen.items()):
        starts = [index for index in indices if index - 1 not in indices]
        ends = [index for index in indices if index + 1 not in indices]
        for start, end in zip(starts, ends, strict=True):
            print(f"{versions[start]}..{versions[end]} {line}")


if __name__ == "__main__":
    main()
