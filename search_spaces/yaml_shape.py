"""What a YAML file may be made of: plain values, neither aliases nor tags, no deeper than anybody writes.

Checked on the tokens, before anything is built: a few lines of aliases can stand for gigabytes, and the time that the
parser takes grows with the square of the depth.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from search_spaces.errors import SpecificationError

MAX_DEPTH = 64
MAX_TOKENS = 200_000
"""Ten times those of the largest node model that ships."""
_DOWN = (
    yaml.BlockMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.FlowSequenceStartToken,
)
_UP = (yaml.BlockEndToken, yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)
_REFUSED = {
    yaml.AliasToken: "aliases (*name) are not allowed here: write the value out",
    yaml.AnchorToken: "anchors (&name) are not allowed here: write the value out where it is needed",
    yaml.TagToken: "tags (!name) are not allowed here: write a plain value",
}


class PlainLoader(yaml.SafeLoader):
    """Knows texts, numbers, true, false and null. A date stays the text that was written."""

    yaml_implicit_resolvers = {  # noqa: RUF012 (as its base has it)
        first: [pair for pair in pairs if pair[0] not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:merge")]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def check_shape(text: str, path: Path) -> None:
    """Refuse what no specification needs.

    Raises:
        SpecificationError: an alias, an anchor, a tag, too deep, or too much; with its line.
        yaml.YAMLError: this is not YAML.
    """
    depth, line = 0, 1
    try:
        for number, token in enumerate(yaml.scan(text, Loader=PlainLoader)):
            line = token.start_mark.line + 1
            if (why := _REFUSED.get(type(token))) is not None:
                raise SpecificationError(why, path=path, line=line)
            depth += isinstance(token, _DOWN) - isinstance(token, _UP)
            if depth > MAX_DEPTH:
                raise SpecificationError("nested too deeply for a specification file", path=path, line=line)
            if number > MAX_TOKENS:
                raise SpecificationError("more than anybody writes into a specification file", path=path, line=line)
    except SpecificationError:
        raise
    except (ValueError, OverflowError) as error:  # an escape such as "\UFFFFFFFF"
        raise SpecificationError(f"not valid YAML: {error}", path=path, line=line) from error


def unreadable_line(node: yaml.Node) -> int | None:
    """Return the line of the first plain value that stands for nothing, such as a number of 5,000 digits."""
    if isinstance(node, yaml.ScalarNode):
        try:
            PlainLoader("").construct_document(node)
        except (ValueError, OverflowError, yaml.YAMLError):
            return int(node.start_mark.line) + 1
        return None
    children = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
    return next((line for child in children if (line := unreadable_line(child)) is not None), None)
