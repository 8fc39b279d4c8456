"""kill -9 of a process with a coordinator in it: what was acknowledged is there, and the round goes
on as it would have.
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from coordinators import open_coordinator, open_session, state
from small import Points

HERE = Path(__file__).parent
FAMILIES = ("galaxy(pending=revealed)", "confidence")
CHILD = """
import sys
sys.path[:0] = [sys.argv[2], sys.argv[3]]
from test_killed import open_again
from coordinators import truth
import threading, time
coordinator = open_again(sys.argv[1])
coordinator.start()
def work(who):
    while coordinator.session.run_state.answered() < 150:
        for item in coordinator.next(who, 2).items[:1] or [time.sleep(0.002)]:
            if item is not None:
                coordinator.answer(who, item.id, truth(coordinator, item.id))
                print(f"told {item.id} {who}\\n", end="", flush=True)
people = [threading.Thread(target=work, args=(who,)) for who in ("ann", "bob")]
for one in people: one.start()
for one in people: one.join()
print("done", flush=True)
"""


def open_again(path):
    return open_coordinator(
        path, Points(300), strategies=FAMILIES, coordinator={"overlap": 2, "overlap_share": 0.1}
    )


def test_kill_at_random_moments(tmp_path):
    path = tmp_path / "a.db"
    chance = random.Random(1)
    acknowledged = {}
    kills = 0
    done = False
    for _ in range(12):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(path), str(HERE), str(HERE.parent / "run")],
            stdout=subprocess.PIPE,
            text=True,
        )
        lines = chance.randint(5, 60)
        for line in child.stdout:
            word, *rest = line.split()
            done = word == "done"
            if word == "told":
                acknowledged.setdefault(rest[0], set()).add(rest[1])
            lines -= 1
            if lines == 0 and not done:
                time.sleep(chance.random() * 0.02)
                child.send_signal(signal.SIGKILL)
                kills += 1
                for late in child.stdout:
                    if late.startswith("told") and late.endswith("\n"):
                        acknowledged.setdefault(late.split()[1], set()).add(late.split()[2])
                break
        child.wait()
        if done or kills == 3:
            break
    coordinator = open_again(path)
    run_state = coordinator.session.run_state
    for one, people in acknowledged.items():
        item = coordinator.item(one)
        assert people <= {v.by for v in item.votes} or item.by in people
    assert run_state.answered() >= len(acknowledged) // 2
    assert kills >= 3
    # the round that was open goes on with the same picks, however often it is opened again
    for end in ("", "-wal", ".head"):
        if (tmp_path / f"a.db{end}").exists():
            shutil.copyfile(tmp_path / f"a.db{end}", tmp_path / f"b.db{end}")
    other = open_session(tmp_path / "b.db", Points(300), strategies=FAMILIES)
    assert state(other.run_state) == state(run_state)
    if not other.batch_is_asked():
        other.resume_round()
        coordinator.session.resume_round()
        assert other.take(4) == coordinator.session.take(4)
    other.store.close()
    coordinator.close()
