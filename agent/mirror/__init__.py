"""MLflow as a pure function of the storage: it can be deleted and rebuilt, and never slows a search down."""

from agent.mirror.client import MirrorError
from agent.mirror.mlflow_mirror import MlflowMirror, SyncReport
from agent.mirror.runs import run_of
from agent.mirror.snapshot import MetricPoint, MirroredRun, StudySnapshot
from agent.mirror.study_run import study_run_of
from agent.mirror.tracking import check_tracking_uri, default_artifact_root, default_tracking_uri, ui_command
from agent.mirror.worker import MirrorWorker

__all__ = [
    "MetricPoint",
    "MirrorError",
    "MirrorWorker",
    "MirroredRun",
    "MlflowMirror",
    "StudySnapshot",
    "SyncReport",
    "check_tracking_uri",
    "default_artifact_root",
    "default_tracking_uri",
    "run_of",
    "study_run_of",
    "ui_command",
]
