"""Classes that were changed when the connection broke: labels and model follow, whether the change
arrived or not.
"""

from __future__ import annotations

import pytest
from small import Centroids, Points, answer, settings

from tailor.run.session import Session
from tailor.storage import StoreUnreachable, open_store


@pytest.mark.parametrize("arrived", [True, False])
def test_the_model_follows(postgres, wire, arrived):
    pool = Points()
    chosen = settings(holdout=0.0)
    with open_store(wire.url()) as store:
        session = Session(
            store,
            pool,
            Centroids(chosen.task, pool),
            chosen,
            remodel=lambda task: Centroids(task, pool),
        )
        session.tell({one: answer(pool, "multi-class", one) for one in session.ask().ids})
        if arrived:
            real = store.append

            def once(
                kind, body, data=None
            ):  # the line is cut behind the request, and there again at once
                wire.word = b"classes"
                store.append = real
                try:
                    return real(kind, body, data)
                finally:
                    wire.word = None
                    wire.passed = False

            store.append = once
        else:
            postgres.execute(
                "SELECT pg_terminate_backend(%s)", store._session.connection.info.backend_pid
            )
        with pytest.raises(StoreUnreachable):
            session.add_class("d")
        assert (
            session.model.task.classes
            == session.run_state.task.classes
            == tuple("abcd" if arrived else "abc")
        )
        assert session.model_runner.model is session.model
        assert session.model_runner.is_present.all()
        if not arrived:
            session.add_class("d")
        session.tell({session.ask(1)[0].id: "d"})
        assert session.run_state.counts()["d"] == 1
