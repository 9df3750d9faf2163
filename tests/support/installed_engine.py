"""A Python environment that seems to hold an engine: a package with a version and the options of a recorded version.

Nothing of it can be launched; it answers what `agent search --dry-run` and `agent doctor` ask an installation.
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

from tests.support.recorded_options import recorded

PARSER = """
import json
from pathlib import Path

RECORDED = json.loads((Path(__file__).parents[{depth}] / "recorded.json").read_text())

def add(parser):
    for name, (kind, choices) in RECORDED["options"].items():
        if kind == "flag":
            parser.add_argument("--" + name, action="store_true")
        else:
            nargs = {{"list": "+", "optional": "?"}}.get(kind)
            parser.add_argument("--" + name, nargs=nargs, choices=choices or None)
    return parser
"""
SGLANG_ARGS = "class ServerArgs:\n    add_cli_args = staticmethod(add)\n" + Path(__file__).with_name(
    "stub_sglang_arguments.py"
).read_text(encoding="utf-8")
SGLANG_VARIABLES = "Envs = type('Envs', (), dict.fromkeys(RECORDED['variables'], 0))\n"
VLLM_FILES = {
    "utils/argparse_utils.py": "import argparse\nFlexibleArgumentParser = argparse.ArgumentParser\n",
    "entrypoints/openai/cli_args.py": (2, "make_arg_parser = add\n"),
    "envs.py": (0, "environment_variables = RECORDED['variables']\n"),
    "engine/arg_utils.py": Path(__file__).with_name("stub_vllm_arguments.py").read_text(encoding="utf-8"),
    "usage/usage_lib.py": "class UsageContext:\n    OPENAI_API_SERVER = 'server'\n",
}


def install_engine(folder: Path, engine: str, version: str) -> str:
    """Make the environment and return its Python, which is `folder/bin/python`."""
    site, program = folder / "site", folder / "bin" / "python"
    package = site / engine
    known = recorded(engine, version)
    options = {name: (each.kind, each.choices) for name, each in known.options.items() if name != "help"}
    files: dict[str, str | tuple[int, str]] = {"__init__.py": f"__version__ = '{version}'\n", **VLLM_FILES}
    if engine == "sglang":
        files = {"__init__.py": "", "srt/server_args.py": (1, SGLANG_ARGS), "srt/environ.py": (1, SGLANG_VARIABLES)}
    for name, content in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else PARSER.format(depth=content[0]) + content[1]
        path.write_text(text, encoding="utf-8")
    (package / "recorded.json").write_text(
        json.dumps({"options": options, "variables": sorted(known.variables)}), encoding="utf-8"
    )
    add_distribution(site, engine, version)
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nPYTHONPATH={site} exec {sys.executable} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return str(program)


def add_distribution(site: Path, name: str, version: str) -> None:
    """Let a package of this name and version seem to be installed."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (folder / "METADATA").write_text(metadata, encoding="utf-8")


def add_torch(site: Path, version: str, cuda: str) -> None:
    """Let a torch of this version and build seem to be installed."""
    add_distribution(site, "torch", version)
    (site / "torch").mkdir(exist_ok=True)
    (site / "torch" / "__init__.py").touch()
    text = f"""
    __version__ = "{version}"
    cuda: str = "{cuda}"
    """
    (site / "torch" / "version.py").write_text(textwrap.dedent(text), encoding="utf-8")


def make_model(folder: Path, **config: object) -> str:
    """Make a model of which there is only its configuration, and return its path."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)
