"""What is taken away is exact, has no secret in it, and is read by shell, Compose and Kubernetes as it was meant."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import UsageError
from agent.export import FORMATS, export
from agent.export.takeaway import Reference, Takeaway, _words, usual_image
from runners import Command

SERVED = Takeaway(
    study="night-run",
    trial=12,
    engine="vllm",
    version="0.32.0",
    argv=(
        ("/home/me/vllm/bin/python",),
        ("-m",),
        ("vllm.entrypoints.openai.api_server",),
        ("--host",),
        ("127.0.0.1",),
        ("--port",),
        ("8000",),
        ("--speculative-config",),
        ('{"method": "eagle3", "num_speculative_tokens": 3}',),
        ("--api-key",),
        (Reference("API_KEY"),),
    ),
    env={"NCCL_ALGO": ("allreduce:tree",), "HF_TOKEN": (Reference("HF_TOKEN"),), "ODD": ("it's $5 a\tday",)},
    assignment={"nccl_algo": "allreduce:tree", "num_speculative_tokens": 3},
    said="101.0 output tokens/s over 4 launches, 1.40 times the baseline without speculation (gain)",
    num_gpus=8,
    mounts=("/models/big",),
    image="vllm/vllm-openai:v0.32.0",
    port=8000,
)
PRINTS = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))"


def started(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script the way a user does."""
    return subprocess.run(
        ["/bin/sh", "-s"], input=script, capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )


@pytest.mark.parametrize("form", FORMATS)
def test_every_form_names_the_secrets_and_holds_none(form: str) -> None:
    command = Command(
        argv=("python", "--api-key", "sk-very-secret", "--url=https://me:hunter22@host/x"),
        env={"HF_TOKEN": "hf_abcdefghijklmnopqrst"},
    )
    env = {"HF_TOKEN": (Reference("HF_TOKEN"),)}
    taken = replace(SERVED, argv=tuple(_words(command)), env=env)
    text = export(taken, form)
    assert "HF_TOKEN" in text
    assert not any(secret in text for secret in ("sk-very-secret", "hunter22", "hf_abc"))


@given(words=st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=4))
def test_the_script_hands_over_every_argument_and_variable_as_it_was(words: list[str]) -> None:
    argv = tuple((word,) if word else () for word in (sys.executable, "-c", PRINTS, *words))
    env = {"ODD": ("it's $5 a\tday",)}
    ran = started(export(replace(SERVED, argv=argv, env=env), "sh"))
    assert ran.returncode == 0, ran.stderr
    arguments, environment = json.loads(ran.stdout)
    assert (arguments, environment["ODD"]) == (words, "it's $5 a\tday")


def test_the_script_takes_secrets_from_the_shell_and_stops_without_them() -> None:
    argv = ((sys.executable,), ("-c",), (PRINTS,), ("--api-key",), (Reference("API_KEY"),))
    script = export(replace(SERVED, argv=argv, env={}), "sh")
    refused = started(script)
    assert refused.returncode != 0
    assert "set API_KEY first" in refused.stderr
    arguments, _ = json.loads(started(script, API_KEY="two words").stdout)
    assert arguments == ["--api-key", "two words"]


def test_compose_serves_on_the_host_loopback_with_the_gpus_and_the_model() -> None:
    service = yaml.safe_load(export(SERVED, "compose"))["services"]["vllm"]
    assert service["entrypoint"][:2] == ["python3", "-m"]
    assert service["entrypoint"][4] == "0.0.0.0"  # noqa: S104
    assert service["entrypoint"][-1] == "${API_KEY:?set API_KEY first}"
    assert service["ports"] == ["127.0.0.1:8000:8000"]
    assert service["volumes"] == ["/models/big:/models/big:ro"]
    assert service["deploy"]["resources"]["reservations"]["devices"][0]["count"] == SERVED.num_gpus
    assert service["environment"]["ODD"] == "it's $$5 a\tday"


def test_kubernetes_takes_secrets_from_a_secret() -> None:
    deployment, service = yaml.safe_load_all(export(SERVED, "k8s"))
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    by_name = {each["name"]: each for each in container["env"]}
    assert by_name["HF_TOKEN"]["valueFrom"]["secretKeyRef"]["name"] == "vllm-night-run-hf-token"
    assert container["command"][-1] == "$(API_KEY)"
    assert list(by_name)[:2] == ["API_KEY", "HF_TOKEN"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == SERVED.num_gpus
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]


def test_kubernetes_itself_would_take_the_file() -> None:
    """Checked against the schema of the Kubernetes API, strictly: an unknown key is an error."""
    for document in yaml.safe_load_all(export(SERVED, "k8s")):
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def test_compose_itself_would_take_the_file(tmp_path: Path) -> None:
    """Checked against the schema of the Compose specification."""
    file = tmp_path / "compose.yaml"
    file.write_text(export(SERVED, "compose"), encoding="utf-8")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(file)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_documents_say_the_same() -> None:
    as_json, as_yaml = json.loads(export(SERVED, "json")), yaml.safe_load(export(SERVED, "yaml"))
    assert as_json == as_yaml
    assert as_json["assignment"] == SERVED.assignment
    assert as_json["secrets"] == ["API_KEY", "HF_TOKEN"]


def test_an_env_file_refuses_what_it_cannot_hold() -> None:
    with pytest.raises(UsageError, match="line break"):
        export(replace(SERVED, env={"ODD": ("two\nlines",)}), "env")
    assert "NCCL_ALGO=allreduce:tree" in export(SERVED, "env").splitlines()


@pytest.mark.parametrize("form", ["compose", "k8s"])
def test_a_container_needs_an_image(form: str) -> None:
    with pytest.raises(UsageError, match="--image"):
        export(replace(SERVED, image=None), form)


@pytest.mark.parametrize(
    ("engine", "version", "image"),
    [
        ("vllm", "0.32.0", "vllm/vllm-openai:v0.32.0"),
        ("sglang", "0.5.6.post2", "lmsysorg/sglang:v0.5.6.post2"),
        ("vllm", "0.32.0+cpu", None),
        ("torch", "torch 2.13.0", None),
    ],
)
def test_the_usual_image_is_that_of_the_version(engine: str, version: str, image: str | None) -> None:
    assert usual_image(engine, version) == image


def test_the_command_line_offers_exactly_the_forms_there_are() -> None:
    from agent.cli.best import FORMS

    assert tuple(FORMATS) == FORMS
