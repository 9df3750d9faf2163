"""For containers: a Compose file and a Kubernetes Deployment with its Service.

In a container the engine listens on all addresses of the container and is found under `python3`; the port is published
on the host's loopback address (Compose) or inside the cluster (Service). Nothing else differs from the measured launch.
"""

from __future__ import annotations

import re
from itertools import pairwise

import yaml

from agent.errors import UsageError
from agent.export.takeaway import Reference, Takeaway, Word

SHM_GIB = 16
"""Shared memory of a pod, in GiB: NCCL and the engines' processes talk through it; the usual 64 MiB are too little."""


def as_compose(taken: Takeaway) -> str:
    """Return a Compose file with one service.

    Raises:
        UsageError: no image is known that holds the engine.
    """
    service: dict[str, object] = {
        "image": _image(taken),
        "entrypoint": [_compose_text(word) for word in _in_container(taken)],
        "environment": {name: _compose_text(word) for name, word in taken.env.items()},
        "ipc": "host",
    }
    if taken.port is not None:
        service["ports"] = [f"127.0.0.1:{taken.port}:{taken.port}"]
    if taken.mounts:
        service["volumes"] = [f"{path}:{path}:ro" for path in taken.mounts]
    if taken.num_gpus:
        devices = [{"driver": "nvidia", "count": taken.num_gpus, "capabilities": ["gpu"]}]
        service["deploy"] = {"resources": {"reservations": {"devices": devices}}}
    return _head(taken, "docker compose up") + _dump({"services": {taken.engine: service}})


def as_kubernetes(taken: Takeaway) -> str:
    """Return a Deployment and, where the engine serves, its Service.

    Raises:
        UsageError: no image is known that holds the engine.
    """
    name = _label(f"{taken.engine}-{taken.study}")
    parts = [_deployment(taken, name)]
    if taken.port is not None:
        ports = [{"port": taken.port, "targetPort": taken.port}]
        spec = {"selector": {"app": name}, "ports": ports}
        parts.append({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
    head = _head(taken, "kubectl apply -f")
    for variable in taken.secrets:
        secret = f"{name}-{_label(variable)}"
        head += f"# first: kubectl create secret generic {secret} --from-literal=value=…   ({variable})\n"
    return head + "---\n".join(_dump(part) for part in parts)


def _deployment(taken: Takeaway, name: str) -> dict[str, object]:
    labels = {"app": name}
    pod = {"containers": [_container(taken, name)], "volumes": _volumes(taken)}
    spec = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},  # the GPUs of the old pod are needed for the new one
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def _container(taken: Takeaway, name: str) -> dict[str, object]:
    mounts: list[dict[str, object]] = [{"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108 (a mount point, not a temporary file)
    mounts += [
        {"name": f"model-{index}", "mountPath": path, "readOnly": True} for index, path in enumerate(taken.mounts)
    ]
    container: dict[str, object] = {
        "name": taken.engine,
        "image": _image(taken),
        "command": [_kubernetes_text(word) for word in _in_container(taken)],
        "env": _kubernetes_env(taken, name),
        "volumeMounts": mounts,
    }
    if taken.port is not None:
        container["ports"] = [{"containerPort": taken.port}]
        container["readinessProbe"] = {
            "httpGet": {"path": "/health", "port": taken.port},
            "periodSeconds": 10,
            "failureThreshold": 3,
        }
    if taken.num_gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": taken.num_gpus}}
    return container


def _volumes(taken: Takeaway) -> list[dict[str, object]]:
    shm: dict[str, object] = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{SHM_GIB}Gi"}}
    models: list[dict[str, object]] = [
        {"name": f"model-{index}", "hostPath": {"path": path, "type": "Directory"}}
        for index, path in enumerate(taken.mounts)
    ]
    return [shm, *models]


def _kubernetes_env(taken: Takeaway, name: str) -> list[dict[str, object]]:
    """Secrets first: `$(NAME)` reaches only what stands before it."""
    found: list[dict[str, object]] = []
    for variable in taken.secrets:
        secret = {"name": f"{name}-{_label(variable)}", "key": "value"}
        found.append({"name": variable, "valueFrom": {"secretKeyRef": secret}})
    plain = {key: word for key, word in taken.env.items() if word != (Reference(key),)}
    return found + [{"name": key, "value": _kubernetes_text(word)} for key, word in plain.items()]


def _image(taken: Takeaway) -> str:
    if taken.image is None:
        raise UsageError(
            f"no container image is known for {taken.engine} {taken.version}: name one that holds it with --image"
        )
    return taken.image


def _in_container(taken: Takeaway) -> list[Word]:
    """The command, with the container's Python and an address that the outside of the container can reach."""
    words: list[Word] = [("python3",)]
    for before, word in pairwise(taken.argv):
        words.append(("0.0.0.0",) if before == ("--host",) else word)  # noqa: S104 (published on loopback only)
    return words


def _compose_text(word: Word) -> str:
    return "".join(
        f"${{{part.variable}:?set {part.variable} first}}" if isinstance(part, Reference) else part.replace("$", "$$")
        for part in word
    )


def _kubernetes_text(word: Word) -> str:
    return "".join(f"$({part.variable})" if isinstance(part, Reference) else part.replace("$(", "$$(") for part in word)


def _label(text: str) -> str:
    """Return a text as a DNS label (RFC 1123): at most 63 of lower-case letters, digits and '-'."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:63].strip("-")


def _head(taken: Takeaway, start: str) -> str:
    said = f"# Study {taken.study}, launch #{taken.trial}, {taken.engine} {taken.version}: {taken.said}\n"
    return said + f"# start: {start}\n"


def _dump(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1000)
