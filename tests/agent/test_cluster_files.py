"""The files beside the page about clusters: Slurm's and Kubernetes' own checks."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml

FOLDER = Path(__file__).parents[2] / "agent" / "clusters"
SLURM = FOLDER / "slurm.sh"


def documents(name: str) -> list[dict[str, Any]]:
    """Return the documents of a YAML file."""
    return list(yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")))


def checked(document: dict[str, Any]) -> None:
    """Check against the schema of the Kubernetes API, strictly: an unknown key is an error."""
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def container_of(template: dict[str, Any]) -> dict[str, Any]:
    """Return the only container of a pod."""
    (container,) = template["spec"]["containers"]
    assert isinstance(container, dict)
    return container


def test_the_shell_reads_the_slurm_script() -> None:
    read = subprocess.run(["bash", "-n", str(SLURM)], capture_output=True, text=True, check=False)
    assert (read.returncode, read.stderr) == (0, "")


def test_the_directives_of_the_slurm_script_stand_where_slurm_reads_them() -> None:
    """`sbatch` stops reading at the first line that is neither empty nor a comment."""
    lines = SLURM.read_text(encoding="utf-8").splitlines()
    first = next(index for index, line in enumerate(lines) if line and not line.startswith("#"))
    directives = [index for index, line in enumerate(lines) if line.startswith("#SBATCH")]
    assert directives
    assert max(directives) < first


def test_the_job_has_all_of_its_nodes_and_outlives_one() -> None:
    """Slurm's defaults are a share of the memory, and the end of the job with its first node that fails."""
    found = set(re.findall(r"^#SBATCH --([a-z-]+=?\S*)", SLURM.read_text(encoding="utf-8"), re.MULTILINE))
    assert {"exclusive", "mem=0", "no-kill", "requeue", "gpus-per-node=8", "signal=B:TERM@300"} <= found


def test_kubernetes_takes_the_job_and_its_volume() -> None:
    kinds = {document["kind"]: document for document in documents("kubernetes-job.yaml")}
    assert set(kinds) == {"PersistentVolumeClaim", "Job"}
    for document in kinds.values():
        checked(document)


def test_kubernetes_takes_the_pods_of_the_ray_cluster() -> None:
    (cluster,) = documents("kuberay.yaml")
    groups = [cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]]
    for number, group in enumerate(groups):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"pod-{number}"}, **group["template"]}
        checked(pod)


KEYS = {
    "cluster": {"rayVersion", "headGroupSpec", "workerGroupSpecs"},
    "head": {"rayStartParams", "template"},
    "worker": {"groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template"},
}
"""Those of a RayCluster that are used here; others are dropped without a word. Source: ray.io/v1 of KubeRay 1.3."""


def test_the_operator_knows_every_key_of_the_cluster() -> None:
    """And every option of `ray start` is text, one that this Ray has."""
    from ray.scripts.scripts import start

    (cluster,) = documents("kuberay.yaml")
    spec = cluster["spec"]
    assert cluster["apiVersion"] == "ray.io/v1"
    assert set(spec) == KEYS["cluster"]
    assert set(spec["headGroupSpec"]) == KEYS["head"]
    options = {option for parameter in start.params for option in parameter.opts}
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        assert set(group) in (KEYS["head"], KEYS["worker"])
        assert {f"--{name}" for name in group["rayStartParams"]} <= options
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())


def test_the_job_talks_to_the_cluster_beside_it() -> None:
    """The operator calls the head's service after the cluster; both sides need the same token and the same models."""
    (cluster,) = documents("kuberay.yaml")
    job = next(each for each in documents("kubernetes-job.yaml") if each["kind"] == "Job")
    agent, worker = (container_of(each["template"]) for each in (job["spec"], cluster["spec"]["workerGroupSpecs"][0]))
    given, known = ({each["name"]: each for each in side["env"]} for side in (agent, worker))
    assert given["HEAD"]["value"] == f"{cluster['metadata']['name']}-head-svc:6379"
    assert given["RAY_AUTH_TOKEN"] == known["RAY_AUTH_TOKEN"]
    assert given["RAY_AUTH_MODE"] == known["RAY_AUTH_MODE"]
    assert agent["image"] == worker["image"]
    mounts = [{each["mountPath"] for each in side["volumeMounts"]} for side in (agent, worker)]
    assert "/models" in mounts[0] & mounts[1]
