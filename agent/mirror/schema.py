"""Names and limits of what is mirrored. Their meaning stands in `mlflow/schema.yaml`; a test ties the two together."""

from __future__ import annotations

STUDY = "agent.study"
TRIAL = "agent.trial"
MIRRORED = "agent.mirrored"
PARENT = "mlflow.parentRunId"
RUN_NAME = "mlflow.runName"
NOTE = "mlflow.note.content"
TABLES = "mlflow.loggedArtifacts"
"""Lists the artifacts that MLflow's own view shows as tables."""
EXPERIMENT_KIND, KIND = "mlflow.experimentKind", "custom_model_development"
"""Says to MLflow's own view that this is about runs, and not about chats and their judges."""

TRIAL_TAGS = frozenset(
    {"kind", "stage", "outcome", "reason", "phase", "rung", "rule", "dead_end", "decisive_line", "blames"}
    | {"assignment", "node", "refutes", "epoch"}
)
STUDY_TAGS = frozenset({"verdict"})
PREFIXES = ("scope.", "fact.", "best.", "count.")
"""Prefixes of tags whose last part is a name of the study's own."""

MAX_NAME = 250
MAX_PARAM = 500
"""Characters of a param's value: what every MLflow server of the last years accepts."""
MAX_TAG = 4900
MAX_LINE = 1000
"""Characters of a decisive line in a tag; the whole line is in the log."""


def is_owned_tag(name: str) -> bool:
    """Return whether the mirror sets tags of this name, and so may take them away again."""
    return name in TRIAL_TAGS or name in STUDY_TAGS or name.startswith(PREFIXES)
