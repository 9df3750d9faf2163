"""Kill anything of a working agent at random instants, resume, and look: is anything lost, doubled or left?

    python -m tests.benchmarks.kill_resume --kills 200
    python -m tests.benchmarks.kill_resume --kills 30 --engine vllm
    python -m tests.benchmarks.kill_resume --kills 60 --double-kills

Victims (tests/support/victims.py): the agent, Ray's daemons and worker, the warden, the engine, the watchdog; Ctrl-C
once and twice, a closed terminal, and a power cut (everything stopped, the state copied, all killed, resumed from the
copy). An agent that lives on is struck again. A study is finished, then checked, then the next one begins.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import click

from agent.errors import NothingWorksError, UsageError
from agent.home import Home
from agent.reading import Reading, read_study
from agent.store.study_store import StudyStore
from runners.cookies import COOKIE_VARIABLE, SESSION_VARIABLE
from tests.benchmarks.kill_courses import Course, courses
from tests.support import victims
from tests.support.study_checks import integrity_problems, problems_of

ROOT = Path(__file__).parents[2]
MARK = "KILL_RESUME_MARK"
"""In the environment of everything this benchmark starts, so that nobody else's processes are counted."""
RAY_GRACE_S = 90.0
"""Ray's own helpers may take this long to notice that their cluster is gone."""
END_S = 60.0
"""How long an agent may take to end by a signal that it can handle."""


@dataclass
class Finding:
    """What is true after all kills and resumes."""

    kills: int = 0
    victims: dict[str, int] = field(default_factory=dict)
    studies: int = 0
    given_up: int = 0
    """Studies that said in peace, and again when they were resumed, that nothing works."""
    launches: int = 0
    probes: int = 0
    interrupted: int = 0
    resumes: int = 0
    exit_codes: dict[str, int] = field(default_factory=dict)
    """How the agents ended: a negative number is the signal that killed one."""
    problems: list[str] = field(default_factory=list)
    """Trials lost or doubled, budgets that are not exact, databases that are not sound, other proposals."""
    processes_left: int = 0
    runs_that_sync_had_to_touch: int = 0
    seconds: float = 0.0


class Victimised:
    """One study after the other, each killed again and again."""

    def __init__(self, course: Course, seed: int, folder: Path) -> None:
        self.course, self.folder = course, folder
        self.found = Finding()
        self._random = random.Random(seed)
        self._sessions: set[str] = set()
        os.environ[MARK] = folder.name

    def study(self, kills: int) -> None:
        """Begin a study, strike it that often, let it end, and check it."""
        home = self.folder / f"study-{self.found.studies}"
        self.found.studies += 1
        left, given_up = kills, 0
        while given_up < 2 and not _finished(home):  # what gave up since it was killed has to go on when it is resumed
            struck, code = self._life(home, left)
            left -= struck
            given_up = given_up + 1 if code == NothingWorksError.exit_code and not struck else 0
            self.found.problems += [f"{home.name}: {each}" for each in integrity_problems(home)]
        self._check(home, is_whole=given_up < 2)
        shutil.rmtree(home)

    def _life(self, home: Path, kills: int) -> tuple[int, int]:
        """Run an agent until it ends or is ended; return how often it was struck, and its exit code."""
        exists = _reading(home) is not None
        self.found.resumes += exists
        command = _command("resume", home) if exists else _command("search", home, *self._options())
        agent = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=self._errors(),
            cwd=ROOT,
            start_new_session=True,
            preexec_fn=_signals_as_usual,
        )
        struck, born = 0, time.monotonic()
        while not _ends_within(agent, self._pause(struck) if kills > struck else None):
            kind, victim = victims.choose(self._random, agent.pid, self.course.weights)
            self._sessions |= _sessions_below(agent.pid)
            self.found.victims[kind] = self.found.victims.get(kind, 0) + 1
            self._note(f"{kind} after {time.monotonic() - born:.1f} s")
            struck += 1
            if kind == "power cut":
                self._cut_power(agent, home)
            else:
                victims.strike(kind, victim, agent)
            if kind in victims.FATAL:
                self._end(agent, kind)
                break
        self.found.kills += struck
        self._note(f"ended with {agent.returncode} after {time.monotonic() - born:.1f} s")
        code = str(agent.returncode)
        self.found.exit_codes[code] = self.found.exit_codes.get(code, 0) + 1
        if agent.returncode == 1:  # no code of ours: a fault, or whatever else nobody foresaw
            said = (self.folder / "stderr.txt").read_text(encoding="utf-8", errors="replace")[-500:]
            self.found.problems.append(f"{home.name}: exit code 1 after {struck} kills: {said}")
        return struck, agent.returncode

    def _pause(self, struck: int) -> float:
        is_short = struck > 0 and self._random.random() < self.course.at_once
        return self._random.uniform(0.0, 1.0) if is_short else self._random.uniform(0.5, self.course.longest_pause_s)

    def _note(self, what: str) -> None:
        with (self.folder / "course.txt").open("a", encoding="utf-8") as file:
            file.write(f"{time.monotonic():.1f} {what}\n")

    def _options(self) -> tuple[str, ...]:
        return ("--budget", str(self.course.budget), "--name", "killed", *self.course.options)

    def _errors(self) -> int:
        return os.open(self.folder / "stderr.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def _end(self, agent: subprocess.Popen[bytes], kind: str) -> None:
        if kind == "ctrl-c twice" and not _ends_within(agent, self._random.uniform(0.05, 1.0)):
            victims.strike(kind, None, agent)
        if not _ends_within(agent, END_S):
            self.found.problems.append(f"the agent did not end within {END_S:.0f} s of: {kind}")
            agent.kill()
            agent.wait()

    def _cut_power(self, agent: subprocess.Popen[bytes], home: Path) -> None:
        """Stop everything, copy the state, kill everything, and go on with the copy in the place of the original."""
        everything = [stat.key for stat in victims.descendants(agent.pid)] + self._ours()
        victims.freeze(everything)
        copy = home.with_name(home.name + "-copy")
        if home.exists():
            victims.copy_state(home, copy)
        victims.kill_all([key for key in {*everything, *self._ours()} if key.pid != agent.pid])
        agent.kill()
        agent.wait()
        if home.exists():
            shutil.rmtree(home)
            copy.rename(home)

    def _ours(self) -> list[victims.ProcessKey]:
        return victims.marked_processes(f"{MARK}={os.environ[MARK]}")

    def _check(self, home: Path, *, is_whole: bool) -> None:
        """Check a study that is over: its budget too, unless it gave up before it was spent."""
        reading = read_study(Home.find(str(home)), None, None)
        self.found.launches += reading.summary.spent
        self.found.probes += reading.summary.num_probes
        self.found.interrupted += reading.summary.outcomes["interrupted"]
        self.found.problems += [
            f"{home.name}: {each}" for each in problems_of(home, self.course.budget if is_whole else None)
        ]
        self.found.given_up += not is_whole
        self.found.runs_that_sync_had_to_touch += _touched_by_sync(home)
        self.found.processes_left += self._processes_left(reading.store)

    def _processes_left(self, store: StudyStore) -> int:
        """Return how many processes of any session are alive, after Ray's own had time to go."""
        entries = [f"{COOKIE_VARIABLE}={trial.cookie}" for trial in (*store.trials(), *store.probes())]
        entries += [f"{SESSION_VARIABLE}={each}" for each in self._sessions]
        deadline = time.monotonic() + RAY_GRACE_S
        while (left := len(self._ours()) + _marked(entries)) and time.monotonic() < deadline:
            time.sleep(0.5)
        return left


def _marked(entries: Sequence[str]) -> int:
    wanted = {entry.encode() for entry in entries}
    found = 0
    for stat in victims.all_stats():
        environment = victims.read_bytes(f"/proc/{stat.pid}/environ") or b""
        found += not stat.is_zombie and bool(wanted & set(environment.split(b"\0")))
    return found


def _sessions_below(agent: int) -> set[str]:
    """Return the marks of the sessions that an agent has begun, from its watchdog's command line."""
    lines = (victims.command_line(stat.pid).split(" ") for stat in victims.descendants(agent))
    return {line[-3] for line in lines if len(line) > 3 and line[-4].endswith("session_watchdog.py")}


def _ends_within(agent: subprocess.Popen[bytes], seconds: float | None) -> bool:
    try:
        agent.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _command(name: str, home: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "agent", name, "--home", str(home), *options]


def _reading(home: Path) -> Reading | None:
    try:
        return read_study(Home.find(str(home)), None, None)
    except UsageError:  # killed before it was stored
        return None


def _finished(home: Path) -> bool:
    reading = _reading(home)
    return reading is not None and reading.summary.spent >= reading.summary.budget


def _touched_by_sync(home: Path) -> int:
    asked = subprocess.run(_command("sync", home, "--json"), capture_output=True, text=True, check=True, cwd=ROOT)
    report = json.loads(asked.stdout)
    return int(report["created"]) + int(report["updated"]) + int(report["removed"])


def run(kills: int, course: Course, seed: int, folder: Path, longest_s: float = float("inf")) -> Finding:
    """Strike studies until there were that many kills (or no time is left to begin one), and return what was found."""
    started = time.monotonic()
    victimised = Victimised(course, seed, folder)
    found = victimised.found
    while found.kills < kills and time.monotonic() - started < longest_s:
        victimised.study(min(course.kills_each, kills - found.kills))
        found.seconds = round(time.monotonic() - started, 1)
        click.echo(json.dumps(asdict(found)), err=True)
    return found


def _signals_as_usual() -> None:
    """Under nohup a closed terminal is ignored, in the background of a shell Ctrl-C; the agents would inherit that."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


@click.command()
@click.option("--kills", default=200, show_default=True)
@click.option("--engine", type=click.Choice(["torch", "vllm", "synthetic"]), default="torch", show_default=True)
@click.option("--python", "engine_python", help="Python of the environment that holds vLLM.")
@click.option("--models", type=click.Path(path_type=Path), help="Folder with the model `tiny` for it.")
@click.option("--seed", default=0, show_default=True)
@click.option("--minutes", default=float("inf"), help="Time after which no further study is begun.")
@click.option("--double-kills", is_flag=True, help="Others than the agent, every second one right after another.")
@click.option("--course", type=click.Path(path_type=Path), help="File for what was killed when, and how agents ended.")
def main(
    kills: int,
    engine: str,
    engine_python: str | None,
    models: Path | None,
    seed: int,
    minutes: float,
    double_kills: bool,
    course: Path | None,
) -> None:
    """Print what is left of studies after that many kills; exit code 1 when anything is wrong."""
    plan = courses(engine, models)
    if engine_python is not None:
        plan = replace(plan, options=(*plan.options, "--engine-python", engine_python))
    if double_kills:
        plan = replace(plan, weights=victims.OTHERS, at_once=0.5)
    with tempfile.TemporaryDirectory(prefix="kill-resume-") as folder:
        found = run(kills, plan, seed, Path(folder), 60 * minutes)
        if course is not None:
            shutil.copy(Path(folder, "course.txt"), course)
    click.echo(json.dumps(asdict(found), indent=2))
    sys.exit(1 if found.problems or found.processes_left or found.runs_that_sync_had_to_touch else 0)


if __name__ == "__main__":
    main()
