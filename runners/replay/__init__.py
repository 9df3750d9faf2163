"""The replay engine: launches that are computed from a node model, in simulated time. Everything says so."""

from runners.replay.answer import Answer, answer

__all__ = ["Answer", "answer"]
