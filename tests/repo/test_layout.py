"""The repository itself: what lies where, what goes into the wheel, and how long things may get."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("agent", "runners", "search_spaces")
TOP_LEVEL = {
    *(".ci", ".gitignore", "Makefile", "README.md", "constraints.txt", "pyproject.toml"),
    *("agent", "mlflow", "runners", "search_spaces", "tests"),
}
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
LONGEST_FILE, LONGEST_FUNCTION = 300, 60


def tracked() -> list[str]:
    """Return the files that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return listed.stdout.splitlines()


def test_nothing_else_stands_at_the_top_level() -> None:
    """A newcomer sees the three packages, the tests, the tracker's folder and the files that start everything."""
    assert {name.split("/")[0] for name in tracked()} <= TOP_LEVEL


def test_the_tracking_folder_does_not_shadow_mlflow() -> None:
    """From the repository's root, `import mlflow` must find the library and not the folder of that name."""
    code = "import mlflow; print(mlflow.__file__)"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "site-packages" in found.stdout
    assert not list((ROOT / "mlflow").glob("*.py"))


def test_the_wheel_holds_the_three_packages_and_nothing_else(tmp_path: Path) -> None:
    """Neither mlflow/ nor tests/ may become a top-level package of somebody's environment."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
    ]
    subprocess.run([*command, str(ROOT)], check=True, capture_output=True)
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == set(PACKAGES)
    assert "search_spaces/catalogue/torch.yaml" in names
    assert "agent/classify/reasons.md" in names


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_short(path: Path) -> None:
    """Length is the tell of code that nobody wants to be handed."""
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < LONGEST_FUNCTION, node.name


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_public_name_has_a_docstring(path: Path) -> None:
    """A public name without one leaves the reader to guess meaning, units and errors."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert path.name == "__main__.py" or ast.get_docstring(tree) or not tree.body
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), node.name


def test_links_between_the_pages_lead_somewhere() -> None:
    """The README leads to every page beside what it documents."""
    for name in tracked():
        if name.endswith(".md") and (ROOT / name).exists():
            text = (ROOT / name).read_text(encoding="utf-8")
            for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
                if "://" not in target:
                    assert (ROOT / name).parent.joinpath(target).exists(), f"{name}: {target}"
