"""What no line of the product may do: a shell, code from data, pickles, a port that strangers reach."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = sorted(path for package in ("agent", "runners", "search_spaces") for path in (ROOT / package).rglob("*.py"))
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "/bin/sh", "/bin/bash", "/usr/bin/env"})
CALLS = {
    "a shell": {"system", "popen", "getoutput", "getstatusoutput", "create_subprocess_shell", "spawnlp", "spawnvp"},
    "code from data": {"eval", "exec", "__import__"},
    "a race for a name": {"mktemp"},
}
MODULES = {"a pickle": {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "jsonpickle"}}
UNSAFE_YAML = {"load", "load_all", "full_load", "unsafe_load", "UnsafeLoader", "FullLoader", "Loader"}
EVERYWHERE = frozenset({"0.0.0.0", "::", "[::]"})  # noqa: S104 (what is looked for)

IN_A_CONTAINER = "agent/export/containers.py"
"""Writes down what listens inside of a container; the host publishes it on its loopback address only."""


def findings(source: str) -> list[str]:
    """Return what a module does that it must not, each with its line."""
    return [f"{line}: {what}" for node in ast.walk(ast.parse(source)) for line, what in _of_node(node)]


def _of_node(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        for what, names in CALLS.items():
            if name in names:
                yield node.lineno, f"{what}: {name}"
        for keyword in node.keywords:
            if keyword.arg == "shell":
                yield node.lineno, "a shell: shell="
    elif isinstance(node, ast.Import | ast.ImportFrom):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        for what, names in MODULES.items():
            yield from ((node.lineno, f"{what}: {name}") for name in modules if name.partition(".")[0] in names)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "yaml":
        if node.attr in UNSAFE_YAML:
            yield node.lineno, f"code from data: yaml.{node.attr}"
    elif isinstance(node, ast.List | ast.Tuple):
        words = [item.value for item in node.elts if isinstance(item, ast.Constant)]
        if len(words) > 1 and words[0] in SHELLS and "-c" in words:
            yield node.lineno, f"a shell: {words[0]} -c"
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in EVERYWHERE:
        yield node.lineno, f"a port for everybody: {node.value}"


@pytest.mark.parametrize("path", PRODUCT, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_product_does_none_of_it(path: Path) -> None:
    """Commands are lists of words, data is data, and servers keep to the loopback interface."""
    found = findings(path.read_text(encoding="utf-8"))
    if path.relative_to(ROOT).as_posix() == IN_A_CONTAINER:
        found = [each for each in found if "a port for everybody" not in each]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "subprocess.run('ls', shell=True)",
        "os.system('ls')",
        "asyncio.create_subprocess_shell('ls')",
        "run(['bash', '-c', text])",
        "eval(text)",
        "import pickle",
        "from cloudpickle import loads",
        "yaml.load(text, Loader=yaml.Loader)",
        "yaml.full_load(text)",
        "HOST = '0.0.0.0'",
        "tempfile.mktemp()",
    ],
)
def test_each_of_it_would_be_found(source: str) -> None:
    """A look that finds nothing proves nothing."""
    assert findings(source)
