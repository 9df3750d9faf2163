"""Trials as Ray tasks: resources are asked for, the task owns its process tree, and Ray never runs one twice.

The only module that imports Ray. Its sockets do not keep to the loopback interface (seen on 2.60), and whoever may talk
to them runs code here: a local Ray asks for a token that is drawn for this process, whatever the environment says.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from runners.artifact_return import Returned, at_hand, mark, packed, unpacked
from runners.contract import EngineSettings, RunRecord, TrialRequest
from runners.engine_dialects.node import ranks_of
from runners.pool_answers import Lost as Lost
from runners.pool_answers import PoolError as PoolError
from runners.pool_answers import Running as Running
from runners.pool_answers import failures_of_ray, first_line, loss_of
from runners.ray_address import NAMED_ADDRESSES, HeadWatch, address_problem
from runners.ray_daemons import LifeWatch, RayDaemons, start_watched
from runners.ray_environment import restore_environment, set_environment, token_problem
from runners.ray_nodes import NodeQuestion, RayNode, facts_here, living, resources_of
from runners.registry import make_runner
from runners.session_folder import SessionFolder
from runners.signal_handlers import excepthook_kept, handlers_kept
from runners.slot_binding import bound
from runners.slots import slot_here

OBJECT_STORE_BYTES = 80 * 2**20  # the smallest Ray accepts: only small JSON texts go through it


class RayPool:
    """A Ray cluster as a place to run trials: a local one of its own, or one that is already there."""

    def __init__(
        self,
        address: str | None = None,
        *,
        num_cpus: int | None = None,
        lost: Callable[[str], None] | None = None,
    ) -> None:
        """Nothing is started yet.

        Args:
            address: The cluster to use; None for a local one of its own.
            num_cpus: Processors that the local one offers; None for all.
            lost: Ends the process, in which Ray hangs since something of it died: under the start of a local one, or
                later. Is told what died, in words that follow on "Ray's".
        """
        self.around_start: Callable[[], AbstractContextManager[None]] = nullcontext
        """Entered for each start: Ray ends the process when a daemon dies that it registers with (seen on 2.60)."""
        self._address = address
        self._num_cpus = num_cpus
        self._lost = lost
        self._task: Any = None
        self._folder: SessionFolder | None = None
        self._before: dict[str, str | None] = {}
        self._daemons: RayDaemons | None = None
        self._head: HeadWatch | None = None
        self._watch: LifeWatch | None = None

    def start(self) -> None:
        """Start a local Ray, or connect to the one at the address.

        Raises:
            PoolError: when Ray does not come up.
        """
        if self._address is not None and (problem := address_problem(self._address)):
            raise PoolError(f"Ray at {self._address}: {problem}")
        self._before = set_environment(is_own=self._address is None)
        with excepthook_kept():
            import ray
        if self._address is None and (problem := token_problem(ray)):
            raise PoolError(f"cannot start a local Ray: {problem}")

        # Said once by Ray at every start, about a default that we want.
        logging.getLogger("ray._private.authentication.authentication_token_setup").setLevel(logging.ERROR)
        try:
            with self.around_start(), handlers_kept(), self._watched():
                ray.init(**self._arguments())
        except Exception as error:  # it raises bare ones too: "The current node timed out during startup" (2.60)
            self._remove_folder()
            where = f"Ray at {self._address}" if self._address else "a local Ray"
            raise PoolError(f"cannot start {where}: {first_line(error)}") from error
        if self._address is None:
            self._daemons = RayDaemons()
        else:
            is_named = self._address in NAMED_ADDRESSES
            self._head = HeadWatch(ray.get_runtime_context().gcs_address if is_named else self._address)
        if self._lost is not None:
            self._watch = LifeWatch(self._death(), self._lost)

    def _watched(self) -> AbstractContextManager[None]:
        return nullcontext() if self._address or self._lost is None else start_watched(self._lost)

    def _death(self) -> Callable[[], str | None]:
        """Return the question whether the Ray of now is dead, which stays good while it is stopped."""
        daemons, head = self._daemons, self._head
        if daemons is not None:
            return daemons.dead
        return lambda: "head" if head is not None and head.is_gone() else None

    @property
    def dead_daemon(self) -> str | None:
        """Name of what died without which there is no Ray: a daemon of our own, or a cluster's head; None: nothing."""
        return self._death()()

    def restart(self) -> None:
        """Put a new local Ray in the place of one that died. What ran there is lost.

        Raises:
            PoolError: when Ray does not come up again.
        """
        self.stop()
        self.start()

    def _arguments(self) -> dict[str, object]:
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": True}
        if self._address is not None:
            return {"address": self._address, **quiet}
        self._folder = SessionFolder("agent-ray-")
        return {
            "address": "local",  # whatever RAY_ADDRESS says: that is somebody's cluster
            "include_dashboard": False,
            "num_cpus": self._num_cpus,
            "object_store_memory": OBJECT_STORE_BYTES,
            "_temp_dir": str(self._folder.path),
            **quiet,
        }

    def require(self, settings: EngineSettings) -> None:
        """Raise PoolError when the cluster does not have what one trial of the study needs."""
        import ray

        available = ray.cluster_resources()
        for resource, amount in resources_of(settings).items():
            name = resource.removeprefix("num_").upper().rstrip("S")
            if available.get(name, 0) < amount:
                raise PoolError(
                    f"a trial needs {amount} {name}s and Ray has {available.get(name, 0):g}: "
                    f"choose fewer ranks with --tp, or add nodes"
                )

    def has_room(self, num_in_flight: int, most: int) -> bool:
        """Return whether one more trial may be handed in, where at most so many run at the same time."""
        return num_in_flight < most

    def goes_on_without_a_slot(self) -> bool:
        """Return whether trials may go on after one left something behind: not where it had all of the node."""
        return False

    def submit(self, requests: Sequence[TrialRequest], node: RayNode | None = None) -> Running:
        """Start a batch of requests of one rung as one task and return at once; on a node, where one is named.

        Raises:
            PoolError: Ray does not take it.
        """
        import ray

        if self._task is None:
            self._task = ray.remote(max_retries=0)(execute)
        for request in requests:
            mark(request)
        ranks = max(ranks_of(request.assignment, request.settings) for request in requests)
        texts = [request.model_dump_json() for request in requests]
        with failures_of_ray("to take a trial"):
            task = self._task.options(**resources_of(requests[0].settings, ranks), **_pinned(node))
            return Running(task.remote(texts), tuple(requests), node)

    def nodes(self) -> list[RayNode]:
        """Return the nodes of the cluster that are alive. Raises PoolError when its head does not say."""
        import ray

        with failures_of_ray("to say which nodes it has"):
            return living(ray.nodes())

    def ask(self, node: RayNode, question: NodeQuestion) -> Running:
        """Have a node read its own facts, beside whatever runs there, and return at once. Raises PoolError."""
        import ray

        with failures_of_ray("to ask a node"):
            task = ray.remote(num_cpus=0, max_retries=0)(facts_here).options(**_pinned(node))
            return Running(task.remote(question.model_dump_json()), (), node)

    def facts(self, task: Running) -> dict[str, object] | Lost:
        """Return what a node that was asked said, or how its answer was lost."""
        import ray

        try:
            found: dict[str, object] = json.loads(ray.get(task.reference))
        except ray.exceptions.RayError as error:
            return loss_of(error)
        return found

    @staticmethod
    def needs(settings: EngineSettings) -> dict[str, int]:
        """Return what one trial of a study asks Ray for, by the names of its options."""
        return resources_of(settings)

    def wait(self, running: Sequence[Running], timeout_s: float) -> list[Running]:
        """Return all that have ended once one has, after at most `timeout_s`. Raises PoolError."""
        import ray

        with failures_of_ray("to wait for a trial"):
            ended, others = ray.wait([task.reference for task in running], num_returns=1, timeout=timeout_s)
            if ended and others:  # what is proposed next shall know of each of them
                ended += ray.wait(others, num_returns=len(others), timeout=0)[0]
        return [task for task in running if task.reference in ended]

    def result(self, task: Running) -> list[RunRecord] | Lost:
        """Return the records of an ended task, in the order of its requests, or how it was lost. Raises PoolError."""
        import ray

        with failures_of_ray("to hand over a result"):
            try:
                answers = ray.get(task.reference)
                return [unpacked(each, request, ray.get) for each, request in zip(answers, task.requests, strict=True)]
            except ray.exceptions.RayError as error:
                return loss_of(error)
            except (OSError, ValueError) as error:
                return Lost(f"what came back cannot be kept: {first_line(error)}")

    def cancel(self, task: Running, timeout_s: float) -> None:
        """End a task: first so that it cleans up after its engine; by force when it takes too long.

        By force, its warden still ends everything that the task started. Of a Ray that is dead nothing is asked.

        Raises:
            PoolError: Ray fails over it.
        """
        import ray

        if self.dead_daemon is not None:
            return
        with failures_of_ray("to cancel a trial"):
            ray.cancel(task.reference, force=False)
            if not self.wait([task], timeout_s):
                ray.cancel(task.reference, force=True)

    def forget(self, task: Running) -> None:
        """Give up on a task whose node cannot be reached; nobody waits for its end."""
        import ray

        ray.cancel(task.reference, force=True)

    def stop(self) -> None:
        """Disconnect, and end a local Ray with everything it wrote. Raises PoolError: its processes may be left."""
        import ray

        self._daemons = self._task = self._head = None
        try:
            with failures_of_ray("to end"):
                ray.shutdown()
        finally:
            if self._watch is not None:
                self._watch.close()
                self._watch = None
            self._remove_folder()
            restore_environment(self._before)

    def _remove_folder(self) -> None:
        if self._folder is not None:
            self._folder.remove()
            self._folder = None


def _pinned(node: RayNode | None) -> dict[str, object]:
    """Return the options that hold a task to a node: it fails when the node is gone, and runs nowhere else."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return {} if node is None else {"scheduling_strategy": NodeAffinitySchedulingStrategy(node.id, soft=False)}


def execute(texts: list[str]) -> list[Returned[Any]]:
    """Run in the Ray worker: JSON requests in, JSON records out, with the files that the agent cannot see."""
    import ray

    from runners.contract import Rung

    asked = [_with_gpus(TrialRequest.model_validate_json(text)) for text in texts]
    with at_hand(asked) as requests, bound(requests[0].slot):
        runner = make_runner(requests[0].settings.engine)
        is_probe = requests[0].rung is Rung.PROBE
        records = runner.run_probes(requests) if is_probe else [runner.run(request) for request in requests]
        placed = (record.model_copy(update={"slot": requests[0].slot}) for record in records)
        return [packed(*each, ray.put) for each in zip(asked, requests, placed, strict=True)]


def _with_gpus(request: TrialRequest) -> TrialRequest:
    """Pass on the GPUs that Ray gave this task; everything else of the worker's environment stays behind."""
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES")
    if request.settings.device != "cuda" or gpus is None or request.slot is not None:
        return request
    environment = {**request.environment, "CUDA_VISIBLE_DEVICES": gpus}
    slot = slot_here(gpus) if request.shares_node else None
    return request.model_copy(update={"environment": environment, "slot": slot})
