"""The replay engine: launches that are computed from a node model or a table, in simulated time. Everything says so."""

from runners.replay.answer import Answer, answer
from runners.replay.recorded import recorded_answer

__all__ = ["Answer", "answer", "recorded_answer"]
