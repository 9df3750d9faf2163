"""The probe server as plain files: ``python standalone.py --requests FILE --results FILE`` under any Python that has
torch (3.10 or newer), such as an engine's own, in which none of our packages is installed.

Nothing is put on its import path, so that no module of ours can stand in the way of one of the engine's.
"""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

NAME = "serving_search_probe"
"""Name of the package that this folder becomes."""


def load_folder(folder: Path) -> ModuleType:
    """Make a folder the package ``NAME`` and return it.

    Raises:
        ImportError: the folder holds no package.
    """
    spec = importlib.util.spec_from_file_location(
        NAME, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder} holds no package")
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
    return module


def main() -> int:
    """Serve probes; returns the exit code of the probe server."""
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != here]
    load_folder(here)
    code: int = importlib.import_module(f"{NAME}.probe").main(sys.argv[1:])
    return code


if __name__ == "__main__":
    sys.exit(main())
