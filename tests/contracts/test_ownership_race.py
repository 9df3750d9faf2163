"""Several agents start at the same moment: exactly one gets the study, whatever the storage."""

from __future__ import annotations

import subprocess
import sys

from agent.recovery import owner
from agent.store.opening import open_storage
from agent.store.study_store import StudyStore
from tests.support.command_line import environment
from tests.support.stores import manifest

CONTENDERS = 4
PROGRAM = """
import sys
from agent.errors import UsageError
from agent.recovery import take_ownership
from agent.store.opening import open_storage
from agent.store.study_store import StudyStore
store = StudyStore(open_storage(sys.argv[1]), sys.argv[1], "study")
print("ready", flush=True)
sys.stdin.readline()
try:
    print("owner", take_ownership(store).pid, flush=True)
except UsageError as error:
    print("refused", error, flush=True)
sys.stdin.readline()
"""


def test_of_several_that_start_at_once_one_owns_the_study_and_the_others_are_told_its_name(url: str) -> None:
    """All of them live on until the end, so that none is refused for being dead, and none wins because of it."""
    store = StudyStore.create(open_storage(url), url, manifest())
    pipe, words = subprocess.PIPE, [sys.executable, "-c", PROGRAM, url]
    contenders = [
        subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, bufsize=1, env=environment())
        for _ in range(CONTENDERS)
    ]
    try:
        assert [each.stdout.readline() for each in contenders if each.stdout] == ["ready\n"] * CONTENDERS
        for each in contenders:
            assert each.stdin is not None
            each.stdin.write("go\n")
        answers = {each.pid: each.stdout.readline().split() for each in contenders if each.stdout}
        (winner,) = [pid for pid, answer in answers.items() if answer[0] == "owner"]
        found = owner(store)
        assert found is not None and found.pid == winner
        assert all(str(winner) in answer for pid, answer in answers.items() if pid != winner)
    finally:
        for each in contenders:
            each.kill()
            each.communicate()
