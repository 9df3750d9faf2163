"""WHAT may be tuned: typed parameters, conditions, relations, and the YAML catalogues that declare them."""

from search_spaces.assignment import Assignment, Facts, Scalar, assignment_key, canonical_json, changed_parameters
from search_spaces.condition import Comparison, Condition, Conjunction, matches_all
from search_spaces.errors import SpecificationError, nearest, plain_message
from search_spaces.loader import catalogue, load_space
from search_spaces.parameter import IntRange, Parameter
from search_spaces.relation import Relation
from search_spaces.space import SearchSpace
from search_spaces.yaml_document import YamlDocument

__all__ = [
    "Assignment",
    "Comparison",
    "Condition",
    "Conjunction",
    "Facts",
    "IntRange",
    "Parameter",
    "Relation",
    "Scalar",
    "SearchSpace",
    "SpecificationError",
    "YamlDocument",
    "assignment_key",
    "canonical_json",
    "catalogue",
    "changed_parameters",
    "load_space",
    "matches_all",
    "nearest",
    "plain_message",
]
