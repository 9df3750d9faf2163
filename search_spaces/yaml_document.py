"""YAML → strict model, with the file, the line and the key of whatever is wrong."""

from __future__ import annotations

import copy
import json
import math
import re
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from search_spaces.errors import SpecificationError, nearest, plain_message
from search_spaces.files import read_text
from search_spaces.yaml_shape import PlainLoader, check_shape, unreadable_line

Model = TypeVar("Model", bound=BaseModel)
Location = tuple[str | int, ...]
MAX_BYTES = 2**20  # nobody writes a megabyte of YAML by hand; a larger file is a mistake or an attack
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")


class YamlDocument:
    """A parsed YAML file together with the line on which each key stands."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[Location, int] = {}
        self.place: Location = ()
        """Where in its file this part stands; errors name keys from the top of the file."""
        self.data = self._parse(read_text(path, MAX_BYTES))

    def part(self, *location: str | int) -> YamlDocument:
        """Return what stands at `location` as a document of its own, whose errors still point into this file."""
        found = copy.copy(self)
        for step in location:
            found.data = found.data[step]  # type: ignore[index]
        size = len(location)
        found.lines = {where[size:]: line for where, line in self.lines.items() if where[:size] == location}
        found.place = (*self.place, *location)
        return found

    def without(self, key: str) -> YamlDocument:
        """Return the document without one key of its top level."""
        found = copy.copy(self)
        if isinstance(self.data, dict):
            found.data = {name: value for name, value in self.data.items() if name != key}
        return found

    def _parse(self, text: str) -> object:
        try:
            check_shape(text, self.path)
            root = yaml.compose(text, Loader=PlainLoader)
            if root is None:
                raise SpecificationError("the file is empty", path=self.path, line=1)
            self._note_lines(root, ())
            data = self._construct(root)
            self._check_numbers(data, ())
            return data
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            raise SpecificationError(
                "not valid YAML: a character that no text has", path=self.path, line=line
            ) from error
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            problem = " ".join(str(getattr(error, "problem", None) or error).split())
            raise SpecificationError(
                f"not valid YAML: {problem}", path=self.path, line=mark.line + 1 if mark else 1
            ) from error

    def _construct(self, root: yaml.Node) -> object:
        try:
            return PlainLoader("").construct_document(root)
        except yaml.YAMLError:
            raise
        except (ValueError, OverflowError) as error:  # for example a number of 5,000 digits
            line = unreadable_line(root)
            raise SpecificationError(f"a value cannot be read: {error}", path=self.path, line=line) from error

    def _check_numbers(self, data: object, location: Location) -> None:
        """Nothing here is measured or limited in infinities, and what is computed of one fails far from its line."""
        if isinstance(data, float) and not math.isfinite(data):
            raise self.error("must be a finite number", *location)
        items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
        for name, value in items:
            self._check_numbers(value, (*location, name))

    def _note_lines(self, node: yaml.Node, location: Location) -> None:
        self.lines.setdefault(location, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            self._note_mapping(node, location)
        elif isinstance(node, yaml.ScalarNode) and _NO_TEXT.search(node.value):
            raise self.error("a character that no text has: NUL, or half of one", *location)
        elif isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self._note_lines(item, (*location, index))

    def _note_mapping(self, node: yaml.MappingNode, location: Location) -> None:
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                line = key.start_mark.line + 1
                raise SpecificationError("a key must be one word", path=self.path, line=line)
            name = key.value
            if name in seen:  # YAML would silently keep the last one
                raise SpecificationError(
                    "the key stands here twice", path=self.path, line=key.start_mark.line + 1, key=name
                )
            seen.add(name)
            self.lines[(*location, name)] = key.start_mark.line + 1
            self._note_lines(value, (*location, name))

    def error(self, problem: str, *location: str | int) -> SpecificationError:
        """Return an error that points to `location` or to its closest ancestor that stands in the file."""
        where = location
        while where and where not in self.lines:
            where = where[:-1]
        key = ".".join(str(part) for part in (*self.place, *location))
        return SpecificationError(problem, path=self.path, line=self.lines.get(where), key=key)

    def validate(self, model: type[Model]) -> Model:
        """Return the document as a `model`.

        Raises:
            SpecificationError: for the first thing that does not fit, with its line (and the nearest valid key).
        """
        if not isinstance(self.data, dict):
            raise SpecificationError(
                f"expected a mapping of keys {'here' if self.place else 'at the top level'}",
                path=self.path,
                line=self.lines.get((), 1),
                key=".".join(map(str, self.place)),
            )
        try:  # as JSON: strict, so that no number is taken for true, and a list of YAML is a tuple all the same
            return model.model_validate_json(json.dumps(self.data), strict=True)
        except ValidationError as error:
            errors = error.errors()
            # A misspelt key is the cause of the missing one beside it, so it is named first.
            first = next((entry for entry in errors if entry["type"] == "extra_forbidden"), errors[0])
            problem = self._describe(first["type"], first["msg"], first["loc"], model)
            raise self.error(problem, *first["loc"]) from error

    def _describe(self, kind: str, message: str, location: Location, model: type[BaseModel]) -> str:
        if kind != "extra_forbidden":
            return plain_message(message)
        return f"unknown key. {nearest(str(location[-1]), _valid_keys(model, location[:-1]))}"


def _valid_keys(model: type[BaseModel], location: Location) -> list[str]:
    """Return the keys valid at `location`, walking the models' annotations as far as they are plain."""
    for part in location:
        field = model.model_fields.get(str(part))
        nested = _nested_model(field.annotation) if field else None
        if nested is not None:
            model = nested
    return [field.alias or name for name, field in model.model_fields.items()]


def _nested_model(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        found = _nested_model(argument)
        if found is not None:
            return found
    return None
