"""Labels told one by one: they reach the arms within the round, and an interruption changes
nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from digits_experiment import SMALL

from tailor.storage import SqliteStore
from tailor_experiments.comparison.experiment import Contender
from tailor_experiments.comparison.rows import essence
from tailor_experiments.comparison.run import prepare
from tailor_experiments.comparison.trial import Trial

REVEALED = Contender("revealed", "random-meta", ("galaxy(pending=revealed)",), reveal=True)
WAITING = replace(REVEALED, label="waiting", reveal=False)
FEW = replace(SMALL, contenders=(REVEALED, WAITING), batch=20, rounds=1, trials=1)


def picks(out, contender, flip=None):
    """Positions asked in round 0 and in round 1; with `flip` every label but those of these
    positions is another.
    """
    full = prepare(FEW, out)
    trial = Trial(full, next(c for c in full.contenders if c.label == contender), 0, out)
    if flip is not None:
        labels = trial.data.labels.copy()
        others = np.setdiff1d(np.arange(len(labels)), flip)
        labels[others] = np.roll(labels[others], 1, axis=1)
        trial.data = replace(trial.data, labels=labels)
    trial.run()
    run_state = trial.session.run_state
    return run_state.asked_in[:2]


def test_labels_reach_the_arms_within_the_round(tmp_path):
    """With every label after the first batch changed, the next picks change where labels are told
    one by one; where they come after the round, nothing can.
    """
    first, told = picks(tmp_path / "a", "revealed")
    again, flipped = picks(tmp_path / "b", "revealed", flip=first)
    assert (first, told[0]) == (again, flipped[0])
    assert told != flipped
    first, after = picks(tmp_path / "c", "waiting")
    _, unmoved = picks(tmp_path / "d", "waiting", flip=first)
    assert after == unmoved
    assert after != told


class Killed(BaseException):
    pass


@pytest.mark.parametrize("limit", [4, 27, 43, 44, 61, 83])
def test_a_kill_within_a_revealed_round_changes_nothing(limit, tmp_path, monkeypatch):
    """Ended after so many writes: in the first batch, around its end and in the round; then taken
    up again.
    """
    full = prepare(FEW, tmp_path)
    expected = essence(Trial(full, full.contenders[0], 0, tmp_path).run())
    append = SqliteStore.append
    writes = 0

    def write(self, *args):
        nonlocal writes
        number = append(self, *args)
        writes += 1
        if writes == limit:
            raise Killed
        return number

    contender = replace(full.contenders[0], label="ended")
    monkeypatch.setattr(SqliteStore, "append", write)
    with pytest.raises(Killed):
        Trial(full, contender, 0, tmp_path).run()
    monkeypatch.setattr(SqliteStore, "append", append)
    rows = Trial(full, contender, 0, tmp_path).run()
    named = [{**row, "contender": "revealed", "config": expected[0]["config"]} for row in rows]
    assert essence(named) == expected
