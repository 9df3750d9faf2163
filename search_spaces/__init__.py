"""WHAT may be tuned: typed parameters, conditions, relations, YAML catalogues of them, and modelled nodes."""

from search_spaces.assignment import Assignment, Facts, Scalar, assignment_key, canonical_json, changed_parameters
from search_spaces.condition import Comparison, Condition, Conjunction, matches_all
from search_spaces.errors import SpecificationError, nearest, plain_message
from search_spaces.files import UnreadableFileError, read_text
from search_spaces.loader import catalogue, load_space
from search_spaces.node_best import Best, best
from search_spaces.node_loader import load_node, load_replayed, node_path, shipped_nodes
from search_spaces.node_model import NodeModel, cause, true_value
from search_spaces.node_table import RecordedNode
from search_spaces.parameter import IntRange, Parameter
from search_spaces.relation import Relation
from search_spaces.space import SearchSpace
from search_spaces.switches import Switches
from search_spaces.table_files import json_lines, parsed
from search_spaces.yaml_document import YamlDocument

__all__ = [
    "Assignment",
    "Best",
    "Comparison",
    "Condition",
    "Conjunction",
    "Facts",
    "IntRange",
    "NodeModel",
    "Parameter",
    "RecordedNode",
    "Relation",
    "Scalar",
    "SearchSpace",
    "SpecificationError",
    "Switches",
    "UnreadableFileError",
    "YamlDocument",
    "assignment_key",
    "best",
    "canonical_json",
    "catalogue",
    "cause",
    "changed_parameters",
    "json_lines",
    "load_node",
    "load_replayed",
    "load_space",
    "matches_all",
    "nearest",
    "node_path",
    "parsed",
    "plain_message",
    "read_text",
    "shipped_nodes",
    "true_value",
]
