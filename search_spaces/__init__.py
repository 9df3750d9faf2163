"""WHAT may be tuned: typed parameters, conditions, relations, and the YAML catalogues that declare them."""

from search_spaces.assignment import Assignment, Facts, Scalar, assignment_key, canonical_json, changed_parameters
from search_spaces.errors import SpecificationError, nearest, plain_message
from search_spaces.loader import catalogue, load_space
from search_spaces.parameter import IntRange, Parameter
from search_spaces.relation import Relation
from search_spaces.space import SearchSpace
from search_spaces.switches import Switches
from search_spaces.yaml_document import YamlDocument

__all__ = [
    "Assignment",
    "Facts",
    "IntRange",
    "Parameter",
    "Relation",
    "Scalar",
    "SearchSpace",
    "SpecificationError",
    "Switches",
    "YamlDocument",
    "assignment_key",
    "canonical_json",
    "catalogue",
    "changed_parameters",
    "load_space",
    "nearest",
    "plain_message",
]
