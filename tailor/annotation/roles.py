"""Who may do what: one table of roles and their rights."""

from __future__ import annotations

from enum import StrEnum

from tailor.common.checks import check_text
from tailor.errors import InputError, UnknownName


class Right(StrEnum):
    """Something that not everybody may do."""

    LABEL = "label what one is asked, and correct one's own answers"
    SETTLE = "settle what people disagree about"
    OVERWRITE = "overwrite others' answers"
    TELL_UNASKED = "tell labels that nobody asked for"
    EXPORT = "export labels"
    SET_GOALS = "set what the run is to reach"
    CHANGE_CLASSES = "change the classes"
    MANAGE_USERS = "manage users"


OWNER = "owner"
REVIEWER = "reviewer"
ANNOTATOR = "annotator"

_REVIEWS = frozenset({Right.LABEL, Right.SETTLE, Right.OVERWRITE, Right.TELL_UNASKED, Right.EXPORT})

#: role -> what it may do, from the least to the most
ROLES: dict[str, frozenset[Right]] = {
    ANNOTATOR: frozenset({Right.LABEL}),
    REVIEWER: _REVIEWS,
    OWNER: _REVIEWS | {Right.SET_GOALS, Right.CHANGE_CLASSES, Right.MANAGE_USERS},
}

#: what each kind of act (tailor.run.acts) needs, to be done and to be taken back
RIGHT_OF_ACT: dict[str, Right] = {
    "settled": Right.SETTLE,
    "overwrote": Right.OVERWRITE,
    "told unasked": Right.TELL_UNASKED,
    "added": Right.CHANGE_CLASSES,
    "renamed": Right.CHANGE_CLASSES,
    "merged": Right.CHANGE_CLASSES,
}


class NotAllowed(InputError):
    """Someone's role does not have the right. Nothing was changed."""


def check_role(role: str) -> str:
    """Raises InputError or UnknownName where this is no role."""
    check_text(role, "role")
    if role not in ROLES:
        raise UnknownName("role", role, ROLES)
    return role


def may(role: str, right: Right) -> bool:
    """Whether a role has a right. Raises UnknownName where it is no role."""
    return right in ROLES[check_role(role)]


def check_may(role: str, right: Right) -> None:
    """Raises NotAllowed where a role does not have a right."""
    if may(role, right):
        return
    able = []
    for name in ROLES:
        if right in ROLES[name]:
            able.append(name)
    raise NotAllowed(f"to {right.value} takes the role {' or '.join(able)}; yours is {role}")
