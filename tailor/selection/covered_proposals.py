"""Propose, then cover: the arms propose more than the round needs, and what covers the pool best is
taken.
"""

from __future__ import annotations

import numpy as np

from tailor.errors import Exhausted, InputError
from tailor.selection.pool_view import Need, PoolView
from tailor.selection.slot_filling import OpenFamily, SlotFiller
from tailor.strategies.base import Cursor
from tailor.strategies.cover_search import CoverSearch
from tailor.strategies.kernel_cover import KernelCover

#: proposals of an arm for each of its slots
PROPOSALS = 4
#: Each family proposes from a random part of what is free, so that the proposals of an arm that
#: ranks the pool do not all lie in one corner of it.
SHARE = 0.4
#: what the cover of a round reads of the view
NEEDS = frozenset({Need.PROBABILITIES, Need.FEATURES})
#: Streams of random numbers beside those of the arms, which have 0 to M - 1.
_PARTS = 1
_COVER = 2
_CREDIT = 3


class CoveredProposals(SlotFiller):
    """Each planned arm proposes four examples for each of its slots, from a random part of what is
    free; of all proposals, the one that adds most to the cover of the pool is taken, again and
    again (KernelCover, as the `herding` family has it).

    An arm that covers the pool itself (herding) does not propose: in its slots it takes from the
    whole pool.

    So the selector decides who proposes and the cover decides what is taken: an arm that proposes
    what is known already, or one thing many times, spoils little. The label of an example is
    credited to one of the arms that proposed it, drawn evenly.

    After the REFINE framework (2025). Labels that come during the round move the cover of later
    rounds; the proposals of this one stand.
    """

    def _open_all(self, families: list[list[int]], open_family: OpenFamily) -> None:
        #: position -> the arms that proposed it
        self._proposers: dict[int, list[int]] = {}
        self._entered = 0  # how many of the ledger's takes the cover has heard of
        self._search: CoverSearch | None = None
        for number, members in enumerate(families):
            strategy = self._arms[members[0]].strategy
            if strategy.covers_pool:
                self._open(
                    members,
                    self._view,
                    self._pulls[members],
                    open_family,
                )
            else:
                self._open_proposing(number, members, open_family)
        self._cover_proposals()

    def _open_proposing(
        self,
        number: int,
        members: list[int],
        open_family: OpenFamily,
    ) -> None:
        """Open the arms of a family over a part of the pool, and let them propose.

        number   of the family
        members  the numbers of its arms
        """
        pulls = self._pulls[members]
        slot_count = int(pulls.sum())
        part = self._part(number, slot_count)
        cursors = self._open(
            members,
            part,
            PROPOSALS * pulls,
            open_family,
        )
        is_own_slot = np.isin(self._plan, members)
        slots = self._plan[is_own_slot]
        self._collect(part, cursors, slots.tolist())

    def _part(self, family: int, slots: int) -> PoolView:
        """The view of a family: a random part of what is free, or all of it where that would be
        too little to choose from.
        """
        rng = self._generator(_PARTS, family)
        free = self._view.ledger.free
        is_drawn = rng.random(len(free)) < SHARE
        drawn = free & is_drawn
        # Of at least twice as many as are proposed, so that the arms have a choice.
        fewest = 2 * PROPOSALS * slots
        if drawn.sum() < fewest:
            drawn = free.copy()
        return self._view.offering(drawn)

    def _collect(
        self,
        part: PoolView,
        cursors: dict[int, Cursor],
        slots: list[int],
    ) -> None:
        """Let the arms of a family propose, in the order of their slots, until all have proposed
        enough or are dry.
        """
        dry: set[int] = set()
        for _ in range(PROPOSALS):
            for arm in slots:
                if arm in dry:
                    continue
                try:
                    position = cursors[arm].take()
                except Exhausted:
                    dry.add(arm)
                    continue
                part.ledger.take(position)
                proposers = self._proposers.setdefault(position, [])
                proposers.append(arm)

    def _cover_proposals(self) -> None:
        """Begin the search among what is proposed and still free."""
        ledger = self._view.ledger
        proposed = np.array(sorted(self._proposers), np.int64)
        is_free = ledger.free[proposed]
        offered = proposed[is_free]
        self._search = None
        self._entered = ledger.count
        if len(offered) == 0:
            return
        rng = self._generator(_COVER, ledger.count)
        cover = KernelCover.draw(self._view, rng)
        candidates = rng.permutation(offered)
        self._search = CoverSearch(cover, candidates)

    def take(self, slot: int) -> tuple[int, int]:
        """(arm, position): of the proposals that are left, the one that adds most to the cover; in
        the slot of an arm that covers the pool itself, its own pick.
        """
        self._hear_of_takes()
        planned = int(self._plan[slot])
        strategy = self._arms[planned].strategy
        if strategy.covers_pool:
            cursor = self.cursors[planned]
            try:
                return planned, cursor.take()
            except Exhausted:
                pass  # the slot goes to what the others proposed
        position = self._best_proposal()
        if position is None:
            return self._stand_in(slot)
        proposers = self._proposers[position]
        rng = self._generator(_CREDIT, slot)
        drawn = rng.integers(len(proposers))
        return proposers[drawn], position

    def _best_proposal(self) -> int | None:
        """The position that adds most to the cover; None where no proposal is left."""
        if self._search is None:
            return None
        position, gain = self._search.best()
        if gain > 0:
            return position
        # The references are covered as well as these proposals can: others are drawn.
        self._cover_proposals()
        if self._search is None:
            return None
        position, _ = self._search.best()
        return position

    def _hear_of_takes(self) -> None:
        """What was taken since, by this round or from outside, covers its surroundings."""
        ledger = self._view.ledger
        new_takes = ledger.taken[self._entered :].copy()
        self._entered = ledger.count
        if self._search is None:
            return
        if len(new_takes):
            self._search.take(new_takes)

    def _generator(self, stream: int, number: int) -> np.random.Generator:
        # The arms' own streams have the numbers of the arms.
        stream_number = len(self._arms) + stream
        seeds = (self._seed, stream_number, number)
        return np.random.default_rng(seeds)


def check_can_cover(view: PoolView) -> None:
    """Raise InputError where the view lacks what a cover is measured by."""
    for need in NEEDS:
        if not view.has(need):
            raise InputError(f"cover needs {need.value}: hand it in, or pass cover=False")
