"""The machine around the launch: ports, shared memory, disks, and libraries that are not there."""

import signal

from agent.classify.rule import ExitFacts, Priority, Rule
from agent.reasons import Reason

_SHM = r"/dev/shm"  # noqa: S108 -- a pattern, not a place to write to
_SHM_CURE = "Remove stale segments of ended launches in /dev/shm, or enlarge it (docker run --shm-size=16g)."

RULES = (
    Rule(
        code="E001",
        name="port-in-use",
        reason=Reason.PORT_OR_STALE_PROCESS,
        any_of=(r"(?i:address already in use)", r"\bEADDRINUSE\b"),
        cure="End the process that holds the port, and launch again with another one.",
        source="Linux errno 98; torch 2.13 torch/csrc/distributed/c10d/socket.cpp, SocketListenOp",
    ),
    Rule(
        code="E002",
        name="shared-memory-exhausted",
        reason=Reason.PORT_OR_STALE_PROCESS,
        any_of=(
            rf"(?i:failed to extend) {_SHM}/",
            r"Error while attaching to shared memory segment",
            r"Error while creating shared memory segment .*No space left",
            rf"No space left on device.*{_SHM}",
            rf"{_SHM}.*No space left on device",
            r"insufficient shared memory \(shm\)",
        ),
        none_of=(r"- retrying\b",),
        cure=_SHM_CURE,
        source="NCCL 2.18 to 2.30 ncclShmOpen (src/misc/shmutils.cc, later src/os/linux.cc); "
        "torch 2.11 torch/utils/data/_utils/worker.py",
    ),
    Rule(
        code="E003",
        name="bus-error-in-shared-memory",
        reason=Reason.PORT_OR_STALE_PROCESS,
        any_of=(rf"{_SHM}\b",),
        exit_facts=ExitFacts(signals=(int(signal.SIGBUS),)),
        reads_benign=True,
        cure=_SHM_CURE,
        source="Linux 6.8 mm/shmem.c: a write to a page that tmpfs cannot provide raises SIGBUS",
        priority=Priority.GENERAL,
    ),
    Rule(
        code="E008",
        name="semaphore-was-taken-away",
        reason=Reason.PORT_OR_STALE_PROCESS,
        any_of=(r"^FileNotFoundError: \[Errno 2\] No such file or directory$",),
        above=(r"multiprocessing/synchronize\.py",),
        cure="Another program removed a semaphore of this launch (sem.mp-…) as it started: stop what clears the shared "
        "memory; the launch is repeated.",
        source="CPython 3.11 multiprocessing/synchronize.py, SemLock._rebuild; seen with vLLM 0.32",
    ),
    Rule(
        code="E004",
        name="disk-full",
        reason=Reason.DISK_FULL,
        any_of=(r"No space left on device", r"Disk quota exceeded"),
        none_of=(_SHM,),
        cure="Free disk space (artifacts, compile caches, TMPDIR), then resume the study.",
        source="Linux errno 28 and 122",
    ),
    Rule(
        code="E005",
        name="module-missing",
        reason=Reason.MISSING_DEPENDENCY,
        any_of=(r"ModuleNotFoundError: No module named '(?P<module>[A-Za-z0-9_]+)",),
        none_of=(r"(?i:\bignor(?:e|ed|ing)\b)",),
        cure="pip install {module} (the distribution may have another name than the module)",
        source="CPython 3.11 Lib/importlib/_bootstrap.py, _find_and_load_unlocked",
    ),
    Rule(
        code="E006",
        name="shared-library-missing",
        reason=Reason.MISSING_DEPENDENCY,
        any_of=(
            r"[\w.+-]+\.so[\w.]*: cannot open shared object file",
            r"version `GLIBC\w*_[\d.]+' not found",
            r"undefined symbol: \w+",
        ),
        cure="Install the package that holds the library the line names, or a build that fits the installed torch.",
        source="glibc 2.39 elf/dl-load.c and elf/dl-lookup.c",
    ),
    Rule(
        code="E007",
        name="import-failed",
        reason=Reason.MISSING_DEPENDENCY,
        any_of=(r"\bImportError: ", r"PackageNotFoundError: No package metadata was found"),
        none_of=(
            r"cannot open shared object file",
            r"undefined symbol",
            r"circular import",
            r"not found \(required by",
        ),
        cure="Install the version that the engine asks for: pip install --upgrade and the package the line names.",
        source="CPython 3.11 ImportError; Lib/importlib/metadata",
        priority=Priority.GENERAL,
    ),
)
