"""kill -9 at random moments: nothing acknowledged is lost, and the run goes on as if nothing had
happened.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from test_session import begin, play

HERE = Path(__file__).parent
CHILD = """
import sys
sys.path.insert(0, sys.argv[2])
from small import answer
from test_session import begin
session = begin(sys.argv[1])
for story in session.waiting():
    session.tell({story.id: answer(session.pool, "multi-class", story.id)})
    print("told", story.id, flush=True)
while session.run_state.answered() < 72:
    (story,) = session.ask(1)
    print("asked", story.id, flush=True)
    session.tell({story.id: answer(session.pool, "multi-class", story.id)})
    print("told", story.id, flush=True)
print("done", flush=True)
"""


def test_kill_at_random_moments(tmp_path):
    """One run killed again and again, against one that never was: the same questions, every answer
    kept.
    """
    path = tmp_path / "killed.db"
    chance = random.Random(0)
    acknowledged = set()
    asked = []
    kills = 0
    for _ in range(20):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(path), str(HERE)], stdout=subprocess.PIPE, text=True
        )
        lines = chance.randint(1, 28)
        done = False
        for line in child.stdout:
            word, *rest = line.split()
            done = word == "done"
            if word == "told":
                acknowledged.add(rest[0])
            lines -= 1
            if lines == 0 and not done:
                time.sleep(chance.random() * 0.003)
                child.send_signal(signal.SIGKILL)
                kills += 1
                for late in child.stdout:
                    if late.startswith("told") and late.endswith("\n"):
                        acknowledged.add(late.split()[1])
                break
        child.wait()
        if done:
            break
    assert done
    assert kills >= 5
    session = begin(path)
    known = {
        session.run_state.ids[p] for p in session.run_state.label_table.answers.labels.positions
    }
    assert acknowledged <= known
    picks = session.run_state.label_table.picks
    asked = sorted(picks.positions.tolist(), key=picks.get)
    whole = begin(tmp_path / "whole.db")
    assert [session.run_state.ids[p] for p in asked][:72] == play(whole, 6)
    for name, value in session.run_state.learner.selector.state().items():
        assert (value == whole.run_state.learner.selector.state()[name]).all()
