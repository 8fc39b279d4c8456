"""Eight people at once: nobody gets another's example, nothing is lost, and the numbers add up."""

from __future__ import annotations

import random
import threading
import time

import pytest
from coordinators import TIMEOUT, counted, found, open_coordinator, open_session, state, truth
from small import Points

PEOPLE, ANSWERS = 8, 30


class Crowd:
    def __init__(self, coordinator):
        self.coordinator = coordinator
        self.lock = threading.Lock()
        self.held = {}
        self.answers = {}
        self.trouble = []

    def run(self):
        threads = [
            threading.Thread(target=self.work, args=(f"p{n}", random.Random(n)))
            for n in range(PEOPLE)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * TIMEOUT)
        assert not self.trouble, self.trouble
        assert not any(thread.is_alive() for thread in threads)

    def work(self, who, chance):
        try:
            done = 0
            while done < ANSWERS:
                handed = self.coordinator.next(who, chance.randint(1, 4))
                with self.lock:
                    for item in handed.items:
                        holder = self.held.setdefault(item.id, who)
                        assert holder == who, f"{item.id} is with {holder} and went to {who}"
                if not handed.items:
                    assert handed.state == "preparing", handed
                    time.sleep(0.005)
                for item in handed.items[: chance.randint(1, 4)]:
                    label = None if chance.random() < 0.1 else truth(self.coordinator, item.id)
                    self.coordinator.answer(who, item.id, label)
                    self.answers[item.id] = (who, label)
                    done += 1
                if chance.random() < 0.1:
                    self.coordinator.overview()
                    self.coordinator.history(who)
        except Exception as error:
            self.trouble.append(error)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    return (
        request.getfixturevalue("postgres").url()
        if request.param == "postgres"
        else tmp_path / "a.db"
    )


@pytest.mark.parametrize(
    "strategies", [("galaxy(pending=revealed)", "confidence"), ("badge", "random")]
)
def test_eight_people(place, strategies):
    pool = Points(800)
    with open_coordinator(place, pool, batch=40, strategies=strategies) as coordinator:
        crowd = Crowd(coordinator)
        crowd.run()
    run_state = coordinator.session.run_state
    assert len(crowd.answers) >= PEOPLE * ANSWERS
    for one, (who, label) in crowd.answers.items():
        row = run_state.label_of(run_state.position[one])
        if label is None:
            assert row is None
            assert run_state.is_skipped(run_state.position[one])
        else:
            assert [run_state.task.classes[k] for k in row.nonzero()[0]] == label
            assert run_state.answered_by[run_state.position[one]][0] == who
    assert run_state.answered() == sum(label is not None for _, label in crowd.answers.values())
    assert found(run_state) == counted(run_state)
    assert len(run_state.rounds) > 1
    again = open_session(place, pool, batch=40, strategies=strategies)
    assert state(again.run_state) == state(run_state)
    again.store.close()
