"""Two agents and one study: one owns it, and a host that is dead or cut off loses it after four missed beats."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.errors import UsageError
from agent.heartbeat import BEAT_S, SILENCE_S, Beat, Heartbeat
from agent.outcome import Outcome, OutcomeKind
from agent.recovery import begin_session, give_up_ownership, own_lease, owner, owner_of, take_ownership
from agent.store.opening import open_storage
from agent.store.study_store import BEAT, OWNER, SESSION, StudyStore
from agent.store.trial import Lease
from runners.cookies import SESSION_VARIABLE
from tests.support.pool_in_here import PoolInHere
from tests.support.stores import manifest, sqlite_store

AWAY = Lease(host="elsewhere", boot_id="another", pid_namespace="pid:[1]", pid=4711, started_ticks=1)


@pytest.fixture
def store(tmp_path: Path) -> StudyStore:
    """A study that an agent on another host owns."""
    store = sqlite_store(tmp_path)
    store.set_attribute(OWNER, AWAY.model_dump(mode="json"))
    return store


def beat(store: StudyStore, number: int, owner: Lease = AWAY, age_s: float = 0.0) -> None:
    """Store a beat."""
    at = datetime.now(UTC) - timedelta(seconds=age_s)
    store.set_attribute(BEAT, Beat(owner=owner, number=number, at=at).model_dump(mode="json"))


class Time:
    """Time that passes only while somebody pauses; the other host may beat meanwhile."""

    def __init__(self, on_second: Callable[[int], None] = lambda _: None) -> None:
        self.seconds, self._on_second = 0, on_second

    def pause(self, seconds: float) -> None:
        """Pass."""
        self.seconds += round(seconds)
        self._on_second(self.seconds)


def test_an_owner_on_another_host_whose_beats_go_on_is_refused_by_name(store: StudyStore) -> None:
    """Found out within the time of one beat, without comparing clocks."""
    beat(store, 7, age_s=100_000.0)
    time = Time(lambda second: beat(store, 8, age_s=100_000.0) if second == round(BEAT_S) else None)
    with pytest.raises(UsageError, match="process 4711 on elsewhere"):
        take_ownership(store, pause=time.pause)
    assert time.seconds == BEAT_S
    assert owner(store) == AWAY


def test_an_owner_on_another_host_whose_beats_stopped_loses_the_study(store: StudyStore) -> None:
    """After four missed beats, however young the last one is by our clock."""
    beat(store, 7)
    time, told = Time(), list[str]()
    assert take_ownership(store, pause=time.pause, tell=told.append) == own_lease()
    assert time.seconds == SILENCE_S == 4 * BEAT_S
    assert "elsewhere" in told[0]


def test_beats_of_an_earlier_owner_say_nothing_about_this_one(store: StudyStore) -> None:
    """An owner that never beat (an older agent) is left to the user's word."""
    beat(store, 7, AWAY.model_copy(update={"pid": 1}))
    with pytest.raises(UsageError, match="--take-over"):
        take_ownership(store, pause=Time().pause)
    assert take_ownership(store, take_over=True) == own_lease()


def test_an_owner_that_is_seen_alive_is_not_taken_over_even_when_asked(store: StudyStore) -> None:
    """What can be seen needs no word of the user."""
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as other:
        from runners.cookies import process_identity

        alive = Lease.model_validate(process_identity(other.pid)._asdict())
        store.set_attribute(OWNER, alive.model_dump(mode="json"))
        with pytest.raises(UsageError, match=str(other.pid)):
            take_ownership(store, take_over=True)
        other.kill()


def test_of_two_that_watched_the_same_silence_one_gets_the_study(store: StudyStore) -> None:
    """The other one finds a new owner under the lock, and is told its name."""
    beat(store, 7)
    faster = AWAY.model_copy(update={"host": "faster", "pid": 5})

    def somebody_else(second: int) -> None:
        if second == SILENCE_S:
            store.set_attribute(OWNER, faster.model_dump(mode="json"))

    with pytest.raises(UsageError, match="process 5 on faster"):
        take_ownership(store, pause=Time(somebody_else).pause)
    assert owner(store) == faster


def test_readers_believe_young_beats_only(store: StudyStore) -> None:
    """They do not wait a minute to say who runs a study."""
    beat(store, 7)
    assert "elsewhere" in (owner_of(store) or "")
    beat(store, 8, age_s=SILENCE_S + 1)
    assert owner_of(store) is None


def test_an_agent_beats_and_notices_that_it_lost_its_study(tmp_path: Path) -> None:
    """It beats no more then, and leaves the new owner's study alone when it ends."""
    store = sqlite_store(tmp_path)
    lease = take_ownership(store)
    heartbeat = Heartbeat(store, lease, every_s=3600.0)
    first = Beat.model_validate(store.get_attribute(BEAT))
    heartbeat.beat()
    second = Beat.model_validate(store.get_attribute(BEAT))
    assert (first.number, second.number, heartbeat.lost_to) == (1, 2, None)
    store.set_attribute(OWNER, AWAY.model_dump(mode="json"))
    heartbeat.beat()
    assert heartbeat.lost_to == "process 4711 on elsewhere"
    assert Beat.model_validate(store.get_attribute(BEAT)) == second
    heartbeat.close()
    give_up_ownership(store, lease)
    assert owner(store) == AWAY


def test_an_agent_that_could_not_beat_for_long_looks_before_it_goes_on(tmp_path: Path) -> None:
    """Its storage was away, and somebody may have counted its silence."""
    store = sqlite_store(tmp_path)
    heartbeat = Heartbeat(store, take_ownership(store), every_s=3600.0)
    store.set_attribute(OWNER, AWAY.model_dump(mode="json"))
    assert heartbeat.taker() is None
    heartbeat._beaten_at -= 3 * 3600.0
    assert heartbeat.taker() == "process 4711 on elsewhere"
    heartbeat.close()


def test_the_thread_beats_by_itself(tmp_path: Path) -> None:
    from tests.support.waiting import wait_until

    store = sqlite_store(tmp_path)
    heartbeat = Heartbeat(store, take_ownership(store), every_s=0.01)
    wait_until(lambda: Beat.model_validate(store.get_attribute(BEAT)).number >= 3)
    heartbeat.close()


def test_what_a_session_left_whose_watchdog_died_too_is_killed_by_its_mark(tmp_path: Path) -> None:
    """And nothing else is."""
    store, mark = sqlite_store(tmp_path), secrets.token_hex(16)
    command = [sys.executable, "-S", "-c", "print(flush=True); input()"]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(command, stdin=pipe, stdout=pipe, env={SESSION_VARIABLE: mark}) as left,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, env={SESSION_VARIABLE: "other"}) as innocent,
    ):
        for process in (left, innocent):
            assert process.stdout is not None and process.stdout.readline() == b"\n"
        begin_session(store, mark)
        assert left.poll() is None
        begin_session(store, "next")
        assert left.wait() < 0
        assert innocent.poll() is None
        innocent.kill()
    assert store.get_attribute(SESSION) == "next"


# The loop of an agent to which such things happen.


class DyingRay(PoolInHere):
    """A pool whose Ray dies under its first task, and again after each restart, a number of times."""

    def __init__(self, runner: object, deaths: int) -> None:
        super().__init__(runner)  # type: ignore[arg-type]
        self.deaths, self.restarts = deaths, 0

    def submit(self, requests):  # type: ignore[no-untyped-def]
        """Die."""
        if self.deaths > self.restarts:
            self.dead_daemon = "raylet"
        return super().submit(requests)

    def wait(self, running, timeout_s):  # type: ignore[no-untyped-def]
        """Nothing ends where nothing runs."""
        return [] if self.dead_daemon else super().wait(running, timeout_s)

    def restart(self) -> None:
        """Come back."""
        self.restarts += 1
        self.dead_daemon = None


def campaign(store: StudyStore, pool: PoolInHere, home: Path, lost_to: Callable[[], str | None] = lambda: None):  # type: ignore[no-untyped-def]
    from agent.campaign import Campaign
    from agent.home import Home
    from agent.interruption import Interruption
    from tests.support.synthetic_engine import SyntheticEngine

    return Campaign(
        store=store,
        runner=SyntheticEngine(),
        pool=pool,  # type: ignore[arg-type]
        home=Home(home),
        lease=own_lease(),
        environment={},
        observers=(),
        interruption=Interruption(),
        lost_to=lost_to,
    )


def small_study(folder: Path) -> StudyStore:
    """Return a study of the torch space with four launches."""
    from search_spaces import load_space

    url = f"sqlite:///{folder / 'torch.db'}"
    whole = manifest().model_copy(update={"space": load_space("torch"), "facts": {"device": "cpu"}})
    store = StudyStore.create(open_storage(url), url, whole)
    store.set_attribute("budget", 4)
    return store


def test_a_ray_that_dies_is_replaced_and_blames_nothing(tmp_path: Path) -> None:
    """The work in flight is queued again, and no attempt of it is used up."""
    from tests.support.synthetic_engine import SyntheticEngine

    store, pool = small_study(tmp_path), DyingRay(SyntheticEngine(), deaths=3)
    stop = campaign(store, pool, tmp_path / "home").run()
    assert not stop.resumable
    assert pool.restarts == 3
    interrupted = [trial for trial in store.trials() if not trial.counts]
    assert len(interrupted) == 3 and not any(trial.is_our_fault for trial in interrupted)
    assert sum(trial.counts for trial in store.trials()) == 4


def test_a_ray_that_never_stays_up_ends_the_search(tmp_path: Path) -> None:
    from tests.support.synthetic_engine import SyntheticEngine

    store, pool = small_study(tmp_path), DyingRay(SyntheticEngine(), deaths=100)
    stop = campaign(store, pool, tmp_path / "home").run()
    assert (stop.resumable, stop.node_unusable) == (True, True)
    assert "raylet" in stop.why
    assert all(trial.is_closed for trial in store.trials())


def test_an_agent_that_lost_its_study_writes_nothing_more(tmp_path: Path) -> None:
    """What it had in flight was closed by the new owner already."""
    from tests.support.synthetic_engine import SyntheticEngine

    store = small_study(tmp_path)

    class Stolen(PoolInHere):
        def wait(self, running, timeout_s):  # type: ignore[no-untyped-def]
            other = StudyStore(open_storage(store.url), store.url, store.name)
            (trial,) = other.trials()
            other.close(trial, Outcome(kind=OutcomeKind.INTERRUPTED, note="taken over"), None)
            agent.lost_to = lambda: "process 5 on faster"
            return []

    agent = campaign(store, Stolen(SyntheticEngine()), tmp_path / "home")
    stop = agent.run()
    assert stop.resumable and "process 5 on faster" in stop.why
    again = StudyStore(open_storage(store.url), store.url, store.name)
    assert [trial.outcome.note for trial in again.trials() if trial.outcome] == ["taken over"]
