"""The files beside the page about clusters: Slurm's and Kubernetes' own checks, and words that the agent knows."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import click
import kubernetes_validate
import pytest
import yaml

from agent.cli.main import main

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


@pytest.mark.parametrize("name", ["slurm.sh", "kubernetes-job.yaml"])
def test_every_option_of_a_command_is_one_that_the_agent_has(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8").replace('"${where[@]}"', "--ray-address x --storage x")
    commands = re.findall(r"\bagent (search|resume|status)\b([^\n|>&]*)", "\n".join(_code(text)))
    assert {command for command, _ in commands} == {"search", "resume", "status"}
    for command, words in commands:
        assert isinstance(main, click.Group)
        found = main.get_command(click.Context(main), command)
        assert found is not None
        options = {option for parameter in found.params for option in parameter.opts}
        assert set(re.findall(r"--[a-z-]+", words)) <= options


def _code(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.lstrip().startswith("#")]
