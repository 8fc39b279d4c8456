"""Eight people at once: nobody gets another's example, nothing is lost, and the numbers add up."""

from __future__ import annotations

import random
import threading
import time

import pytest
from rooms import TIMEOUT, counted, found, open_room, open_session, state, truth
from small import Points

PEOPLE, ANSWERS = 8, 30


class Crowd:
    def __init__(self, room):
        self.room, self.lock = room, threading.Lock()
        self.held, self.answers, self.trouble = {}, {}, []

    def run(self):
        threads = [threading.Thread(target=self.work, args=(f"p{n}", random.Random(n))) for n in range(PEOPLE)]
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
                handed = self.room.next(who, chance.randint(1, 4))
                with self.lock:
                    for item in handed.items:
                        holder = self.held.setdefault(item.id, who)
                        assert holder == who, f"{item.id} is with {holder} and went to {who}"
                if not handed.items:
                    assert handed.state == "preparing", handed
                    time.sleep(0.005)
                for item in handed.items[: chance.randint(1, 4)]:
                    label = None if chance.random() < 0.1 else truth(self.room, item.id)
                    self.room.answer(who, item.id, label)
                    self.answers[item.id] = (who, label)
                    done += 1
                if chance.random() < 0.1:
                    self.room.overview()
                    self.room.history(who)
        except Exception as error:
            self.trouble.append(error)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    return request.getfixturevalue("postgres").url() if request.param == "postgres" else tmp_path / "a.db"


@pytest.mark.parametrize("families", [("galaxy(pending=revealed)", "confidence"), ("badge", "random")])
def test_eight_people(place, families):
    pool = Points(800)
    with open_room(place, pool, batch=40, families=families) as room:
        crowd = Crowd(room)
        crowd.run()
    journal = room.session.journal
    assert len(crowd.answers) >= PEOPLE * ANSWERS
    for one, (who, label) in crowd.answers.items():
        row = journal.label_of(journal.position[one])
        if label is None:
            assert row is None
            assert journal.is_skipped(journal.position[one])
        else:
            assert [journal.task.classes[k] for k in row.nonzero()[0]] == label
            assert journal.who[journal.position[one]][0] == who
    assert journal.answered() == sum(label is not None for _, label in crowd.answers.values())
    assert found(journal) == counted(journal)
    assert len(journal.rounds) > 1
    again = open_session(place, pool, batch=40, families=families)
    assert state(again.journal) == state(journal)
    again.store.close()
