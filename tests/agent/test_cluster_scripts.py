"""The scripts beside the page about clusters, run with stand-ins for Slurm and Ray that note what they are told."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from agent.cli.main import main
from tests.support.waiting import wait_until

FOLDER = Path(__file__).parents[2] / "agent" / "clusters"
STANDS_IN = """#!/bin/bash
name=$(basename "$0")
printf '%s' "$name" >> "$CALLS"; printf ' %q' "$@" >> "$CALLS"; echo >> "$CALLS"
"""
PROGRAMS = {
    "scontrol": "printf 'gpu-1\\ngpu-2\\ngpu-3\\n'",
    "getent": "printf '127.0.1.1 STREAM gpu-1\\n10.0.0.1 STREAM gpu-1\\n'",
    "srun": 'printf "token %s %s\\n" "$RAY_AUTH_MODE" "$RAY_AUTH_TOKEN" >> "$CALLS"; exit "${SRUN_CODE:-0}"',
    "ray": "[[ $1 != status || -z ${SRUN_CODE:-} ]]",
    "agent": """
case $1 in
    status) exit "$STATUS_CODE" ;;
esac
if [[ -n ${AGENT_LASTS:-} ]]; then
    trap 'exit 130' TERM
    echo ready >> "$CALLS"
    for _ in {1..600}; do sleep 0.1; done
fi
""",
}


@dataclass
class Cluster:
    """A machine on which Slurm and Ray are stand-ins."""

    folder: Path
    environment: dict[str, str]

    @property
    def calls(self) -> list[str]:
        """The commands so far, a line each."""
        path = self.folder / "calls"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def called(self, beginning: str) -> list[list[str]]:
        """Return the words of each command that begins like this; those for the agent are ones that it takes."""
        found = [shlex.split(line) for line in self.calls if line.startswith(beginning)]
        for name, *words in found:
            if name == "agent":
                _parsed(words)
        return found

    def start(self, *command: str, **variables: str) -> subprocess.Popen[str]:
        """Start a script."""
        environment = {**self.environment, **variables}
        return subprocess.Popen(command, env=environment, cwd=self.folder, stderr=subprocess.PIPE, text=True)

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a script to its end."""
        process = self.start(*command, **variables)
        _, said = process.communicate(timeout=60)
        return subprocess.CompletedProcess(command, process.returncode, "", said)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """A job of three nodes."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, body in PROGRAMS.items():
        (programs / name).write_text(f"{STANDS_IN}{body}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    slurm = {"SLURM_JOB_ID": "7", "SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_JOB_NODELIST": "gpu-[1-3]"}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return Cluster(tmp_path, {"PATH": path, "CALLS": str(tmp_path / "calls"), "STATUS_CODE": "2", **slurm})


def _parsed(words: list[str]) -> None:
    """Raise click's UsageError where the agent has no such command or option."""
    assert isinstance(main, click.Group)
    command = main.get_command(click.Context(main), words[0])
    assert command is not None
    command.make_parser(click.Context(command)).parse_args(words[1:])


SLURM = ("bash", str(FOLDER / "slurm.sh"))


def test_every_node_of_the_job_starts_ray_and_the_first_one_searches(cluster: Cluster) -> None:
    """On an address that the others reach, with one token that is drawn for the job, and with the user's words."""
    ended = cluster.run(*SLURM, "--tp", "8", "--space", "my space.yaml", STUDY="night", RUN="--trials-per-node 2")
    assert (ended.returncode, ended.stderr) == (0, "")
    wait_until(lambda: len(cluster.called("token")) == 3)
    starts = cluster.called("srun")
    nodes = [next(word for word in each if word.startswith("--nodelist")) for each in starts]
    assert nodes[0] == "--nodelist=gpu-1"
    assert sorted(nodes[1:]) == ["--nodelist=gpu-2", "--nodelist=gpu-3"]  # these start at the same time
    assert "--head" in starts[0] and "--node-ip-address=10.0.0.1" in starts[0] and "--port=6379" in starts[0]
    assert all("--address=10.0.0.1:6379" in each and "--head" not in each for each in starts[1:])
    (token,) = {tuple(each) for each in cluster.called("token")}
    assert token[1] == "token" and len(token[2]) == 64
    (search,) = cluster.called("agent search")
    where = "--ray-address 10.0.0.1:6379 --trials-per-node 2"
    assert search[2:] == [*shlex.split(f"--name night {where} --tp 8 --space"), "my space.yaml"]


@pytest.mark.parametrize("known", [0, 5])
def test_a_study_that_is_there_goes_on_and_one_that_cannot_be_looked_for_does_not_begin(
    cluster: Cluster, known: int
) -> None:
    """With its storage; an outage of the database must not begin a second study."""
    ended = cluster.run(*SLURM, "--tp", "8", STATUS_CODE=str(known), STORAGE="postgresql://me@db/studies")
    assert ended.returncode == known
    assert cluster.called("agent search") == []
    words = "agent resume slurm-7 --storage postgresql://me@db/studies --ray-address 10.0.0.1:6379"
    assert cluster.called("agent resume") == ([shlex.split(words)] if known == 0 else [])


def test_a_head_that_does_not_start_ends_the_job(cluster: Cluster) -> None:
    """Instead of holding the nodes until their time is up."""
    ended = cluster.run(*SLURM, SRUN_CODE="1")
    assert ended.returncode == 4
    assert "gpu-1" in ended.stderr
    assert cluster.called("agent") == []


def test_the_end_of_the_job_s_time_ends_the_search_cleanly(cluster: Cluster) -> None:
    """Slurm tells the shell alone."""
    process = cluster.start(*SLURM, AGENT_LASTS="1")
    wait_until(lambda: "ready" in cluster.calls)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 130


def job_script() -> tuple[list[str], dict[str, str]]:
    """Return the command of the agent's container and its plain variables."""
    found = yaml.safe_load_all((FOLDER / "kubernetes-job.yaml").read_text(encoding="utf-8"))
    job: dict[str, Any] = next(each for each in found if each["kind"] == "Job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    variables = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    return [*container["command"], *container["args"]], variables


@pytest.mark.parametrize(("known", "follows"), [(2, "search --name night-run"), (0, "resume night-run"), (5, "")])
def test_the_job_begins_its_study_or_goes_on_with_it(cluster: Cluster, known: int, follows: str) -> None:
    """As a node that offers nothing; while the database is away, neither: the next pod looks again."""
    command, variables = job_script()
    ended = cluster.run(*command, **{**variables, "STATUS_CODE": str(known)})
    assert (ended.returncode, ended.stderr) == (5 if known == 5 else 0, "")
    (joined,) = cluster.called("ray")
    assert "--address search-head-svc:6379 --num-cpus 0 --num-gpus 0" in " ".join(joined)
    (looked, *done) = cluster.called("agent")
    assert looked == shlex.split("agent status night-run --storage postgresql://agent@database/studies")
    where = "--ray-address search-head-svc:6379 --storage postgresql://agent@database/studies"
    assert [" ".join(each).startswith(f"agent {follows} {where}") for each in done] == [True] * bool(follows)


def test_the_job_is_not_tried_again_where_that_would_end_the_same_way() -> None:
    """By the agent's own codes for wrong input and for a node on which nothing works."""
    from agent.errors import NothingWorksError, UsageError

    found = yaml.safe_load_all((FOLDER / "kubernetes-job.yaml").read_text(encoding="utf-8"))
    spec = next(each for each in found if each["kind"] == "Job")["spec"]
    fails, ignored = spec["podFailurePolicy"]["rules"]
    assert fails["onExitCodes"]["values"] == [UsageError.exit_code, NothingWorksError.exit_code]
    assert fails["onExitCodes"]["containerName"] == spec["template"]["spec"]["containers"][0]["name"]
    assert ignored["action"] == "Ignore" and spec["template"]["spec"]["restartPolicy"] == "Never"
