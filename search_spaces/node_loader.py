"""Load a node model: a shipped one by its name, or a file; parsed once for each state of the file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path

from pydantic import ValidationError

from search_spaces.errors import SpecificationError, nearest, plain_message
from search_spaces.files import UnreadableFileError
from search_spaces.loader import load_space, space_of
from search_spaces.node_checks import problems
from search_spaces.node_model import NodeFile, NodeModel, NodeVariant, with_defaults, without_probes
from search_spaces.node_parts import fact_problems
from search_spaces.node_table import RecordedNode, load_table
from search_spaces.space import SearchSpace
from search_spaces.yaml_document import YamlDocument

MODEL_FILES, TABLE_FILES = (".yaml", ".yml"), (".jsonl", ".csv")
MOST_GENERATIONS = 8
"""How many files may stand behind each other by `like`; more is a circle."""


@lru_cache(maxsize=1)
def shipped_nodes() -> tuple[str, ...]:
    """Return the names of the node models that ship with the package."""
    return tuple(sorted(path.stem for path in _folder().glob("*.yaml")))


def node_path(name_or_path: str) -> Path:
    """Return the absolute path of a shipped node or of a file.

    Raises:
        SpecificationError: when there is neither.
    """
    if name_or_path in shipped_nodes():
        return _folder() / f"{name_or_path}.yaml"
    path = Path(name_or_path)
    if path.suffix not in (*MODEL_FILES, *TABLE_FILES):
        raise SpecificationError(
            f"no node model of that name. {nearest(name_or_path, shipped_nodes())} "
            "Or give a file: a model (.yaml) or a recorded table (.jsonl, .csv).",
            key=name_or_path,
        )
    return path.absolute()


def load_replayed(name_or_path: str | Path) -> NodeModel | RecordedNode:
    """Return what the replay engine answers from: a node model, or a recorded table.

    Raises:
        SpecificationError: with file, line and key, for anything that is wrong in the file.
    """
    path = node_path(str(name_or_path))
    return _cached_table(*_state(path)) if path.suffix in TABLE_FILES else load_node(path)


def load_node(name_or_path: str | Path) -> NodeModel:
    """Return the node model of a shipped name or a file.

    Raises:
        SpecificationError: with file, line and key, for anything that is wrong in the file.
    """
    return _cached(*_state(node_path(str(name_or_path))))


def node_of(data: Mapping[str, object]) -> NodeModel:
    """Return the node model of data as a file would hold it, with its space inside.

    Raises:
        SpecificationError: for anything that is wrong.
    """
    try:
        space = SearchSpace.model_validate(data.get("space"))
        file = NodeFile.model_validate({name: value for name, value in data.items() if name != "space"})
    except ValidationError as error:
        first = error.errors()[0]
        raise SpecificationError(plain_message(first["msg"]), key=".".join(map(str, first["loc"]))) from error
    for where, problem in problems(file, space):
        raise SpecificationError(problem, key=".".join(map(str, where)))
    return NodeModel(file, _as_rungs_allow(file, _narrowed(file, space)))


@lru_cache(maxsize=1)
def _folder() -> Path:
    return Path(str(resources.files("search_spaces") / "nodes"))


def _state(path: Path) -> tuple[Path, int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise UnreadableFileError(f"cannot be read: {error.strerror}", path=path) from error
    return path, found.st_mtime_ns, found.st_size


@lru_cache(maxsize=16)
def _cached_table(path: Path, _modified: int, _size: int) -> RecordedNode:
    return load_table(path)


@lru_cache(maxsize=64)
def _cached(path: Path, _modified: int, _size: int) -> NodeModel:
    return _load(path, MOST_GENERATIONS)


def _load(path: Path, generations: int) -> NodeModel:
    document = YamlDocument(path)
    if isinstance(document.data, dict) and "like" in document.data:
        return _variant(document, generations)
    own_space = isinstance(document.data, dict) and isinstance(document.data.get("space"), dict)
    file = (document.without("space") if own_space else document).validate(NodeFile)
    space = space_of(document.part("space")) if own_space else _named_space(document, file)
    for where, problem in problems(file, space):
        raise document.error(problem, *where)
    try:
        narrowed = _narrowed(file, space)
    except SpecificationError as error:
        raise document.error(error.problem, "narrow") from error
    return NodeModel(file, _as_rungs_allow(file, narrowed))


def _variant(document: YamlDocument, generations: int) -> NodeModel:
    variant = document.validate(NodeVariant)
    if generations == 0:
        raise document.error("a circle of 'like', or too many files behind each other", "like")
    beside = document.path.parent / variant.like
    try:
        base = _load(beside if beside.suffix in (".yaml", ".yml") else node_path(variant.like), generations - 1)
    except SpecificationError as error:
        raise _pointing(error, document, "like") from error
    facts = dict(base.file.facts)
    for name, value in variant.facts.items():
        if name not in facts:
            raise document.error(f"'{variant.like}' has no such fact. {nearest(name, facts)}", "facts", name)
        before = facts[name]
        facts[name] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value
    for name, problem in fact_problems(facts):
        raise document.error(problem, "facts", name)
    update = {"node": variant.node, "about": variant.about, "facts": facts}
    return NodeModel(base.file.model_copy(update=update), base.space)


def _named_space(document: YamlDocument, file: NodeFile) -> SearchSpace:
    if file.space is None:
        raise document.error("missing: write the space here, or name one", "space")
    beside = document.path.parent / file.space
    try:
        return load_space(str(beside) if beside.suffix in (".yaml", ".yml") else file.space)
    except SpecificationError as error:
        raise _pointing(error, document, "space") from error


def _pointing(error: SpecificationError, document: YamlDocument, key: str) -> SpecificationError:
    """Return the error of a file that a key names: about the key where there is no such file."""
    is_of_name = error.path is None or isinstance(error, UnreadableFileError)
    where = f"{error.path}: " if error.path is not None else ""
    return document.error(f"{where}{error.problem}", key) if is_of_name else error


def _narrowed(file: NodeFile, space: SearchSpace) -> SearchSpace:
    pins = {name: space.parse_value(name, value) for name, value in file.narrow.pins.items()}
    excludes = {
        name: tuple(space.parse_value(name, value) for value in values) for name, values in file.narrow.excludes.items()
    }
    defaults = {name: space.parse_value(name, value) for name, value in file.narrow.defaults.items()}
    return with_defaults(space, defaults).narrowed(pins, excludes)


def _as_rungs_allow(file: NodeFile, space: SearchSpace) -> SearchSpace:
    return space if "probe" in file.rungs else without_probes(space)
