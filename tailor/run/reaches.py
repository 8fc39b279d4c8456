"""What a run would read, write, connect to and run: by its settings, and by links in its folder.

Nothing is opened, imported or connected to find that out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from tailor.bandits import registry as selectors
from tailor.bandits.rewards import registry as rewards
from tailor.errors import InputError
from tailor.pools import registry as pools
from tailor.pools.addresses import check_address, is_address, is_remote
from tailor.registry import Registry
from tailor.run.config import Config
from tailor.run.config_errors import with_place
from tailor.run.model_reaches import model_reaches
from tailor.run.reach import Action, Reach, plugin_reaches
from tailor.storage import is_url
from tailor.strategies import registry as strategies

#: what a run's folder holds besides its settings
STORE = "run.db"
CACHE = "cache"
ENGINE = "engine"
#: folders of a run that programs write to
WRITTEN_FOLDERS = (CACHE, ENGINE, "web")
STUDIO_FOLDER = "label-studio"
#: who may sign in to the page, and what Label Studio must show when it calls
USERS = Path("web") / "users.json"
LABEL_STUDIO = "label-studio.json"


def run_reaches(config: Config) -> list[Reach]:
    """All that opening a run would touch outside its folder.

    Raises InputError for a pool at a kind of address that is never read, and for names that can't
    be read.
    """
    return [*setting_reaches(config), *link_reaches(config.folder, _store(config))]


def setting_reaches(config: Config) -> list[Reach]:
    """What the settings of a run reach. Raises InputError as run_reaches() does."""
    try:
        return [
            *_pool_reaches(config),
            *_model_reaches(config),
            *selection_reaches(config.section("selection")),
            *_engine_reaches(config),
            *_store_reaches(config),
        ]
    except InputError as error:
        message = with_place(error, config, "pool", "model", "selection")
        raise InputError(message) from error


def _pool_reaches(config: Config) -> Iterator[Reach]:
    options = config.section("pool")
    path = options["path"]
    if is_address(path):
        check_address(path)
    if is_remote(path):
        yield Reach(Action.CONNECTS, f"{path}, with the credentials that you have for it")
    elif is_address(path):
        yield Reach(Action.READS, path)
    else:
        yield Reach(Action.READS, str(_resolved(config.folder / path)))
    if "kind" in options:
        yield from plugin_reaches(pools, options["kind"])
    if "cache" in options:
        # Relative to where the command is given, as the pool takes it.
        yield from _written(config, Path(options["cache"]))


def _model_reaches(config: Config) -> list[Reach]:
    options = config.section("model")
    name = options.pop("name")
    return model_reaches(name, options)


def selection_reaches(selection: dict[str, object]) -> list[Reach]:
    """The plugins among a run's arms, selector and reward.

    selection: the keys of [selection], or the settings that a run was begun with
    """
    listed = selection.get("strategies", ())
    if isinstance(listed, str):
        listed = [listed]
    reaches: list[Reach] = []
    if isinstance(listed, Iterable):
        for strategy in listed:
            reaches += _plugins(strategies, strategy)
    reaches += _plugins(selectors, selection.get("selector"))
    reaches += _plugins(rewards, selection.get("reward"))
    return reaches


def _plugins(registry: Registry, text: object) -> list[Reach]:
    if not isinstance(text, str):
        return []
    name, _ = registry.parse(text)
    # The defaults' own name, never a plugin's: to look for those takes a while.
    if name == "auto":
        return []
    return plugin_reaches(registry, name)


def _engine_reaches(config: Config) -> Iterator[Reach]:
    engine = config.section("engine")
    # Without an address it is a cluster of this machine, which listens to nobody else.
    if engine["name"] == "ray" and "address" in engine:
        yield Reach(
            Action.CONNECTS,
            f"the Ray cluster at {engine['address']}, and run what it sends back",
        )


def _store_reaches(config: Config) -> Iterator[Reach]:
    # What the environment names did not come with the run.
    if os.environ.get("TAILOR_STORE"):
        return
    store = _store(config)
    if is_url(store):
        yield Reach(
            Action.CONNECTS,
            f"{url_without_password(store)}, with the database password that you have for it",
        )
    elif not is_address(store):  # others are refused when the store is opened
        yield from _written(config, config.folder / store)


def _store(config: Config) -> str:
    """Where the settings say that the store is."""
    store: str = config.section("run").get("store", STORE)
    return store


def _written(config: Config, path: Path) -> Iterator[Reach]:
    target = _resolved(path)
    if not target.is_relative_to(_resolved(config.folder)):
        yield Reach(Action.WRITES, str(target))


def url_without_password(url: str) -> str:
    """A store's URL for a message: as it was written, so that nothing of it is hidden but
    passwords.

    >>> url_without_password("postgresql://ada:secret@db/birds?hostaddr=10.0.0.1")
    'postgresql://ada:***@db/birds?hostaddr=10.0.0.1'
    """
    unreadable = "postgresql://, at an address that can't be read"
    try:
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return unreadable
    # A raw @ or # in a password moves the rest of it to where it would be shown.
    elsewhere = parts.path + parts.query + parts.fragment
    if "@" in elsewhere or parts.netloc.count("@") > 1 or "#" in url:
        return unreadable
    login, at_sign, host = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    if colon:
        login = f"{user}:***"
    shown_options = []
    for name, value in options:
        if "password" in name.lower():
            value = "***"
        shown_options.append((name, value))
    query = urlencode(shown_options, quote_via=quote, safe="*/:")
    address = f"{parts.scheme}://{login}{at_sign}{host}{parts.path}"
    if query:
        return f"{address}?{query}"
    return address


def link_reaches(folder: Path, store: str = STORE) -> list[Reach]:
    """Symbolic links by which writing to a run's files would write somewhere else: any of them, as
    one that stays within the folder may lead to one that does not.

    store  as [run] names it
    """
    # The folder itself may be a link of the user's.
    home = _resolved(folder)
    if is_address(store):
        store = STORE
    store_file = home / store
    links = [
        # The store has a log and a lock beside it.
        *_links_in(_resolved(store_file.parent), store_file.name),
        *_links_in(home, *WRITTEN_FOLDERS, STUDIO_FOLDER, LABEL_STUDIO),
        # Pictures below it are written anew under their names, not through links.
        *_links_in(home / STUDIO_FOLDER),
    ]
    for name in WRITTEN_FOLDERS:
        for current, _, _ in os.walk(home / name):
            links += _links_in(Path(current))
    reaches = []
    for link in links:
        name = os.path.relpath(link, home)
        reaches.append(Reach(Action.WRITES, f"{_resolved(link)}, where {name} leads"))
    return reaches


def _links_in(folder: Path, *beginnings: str) -> list[Path]:
    """The symbolic links in a folder whose names begin so, hidden or not; all where no beginning is
    given.
    """
    try:
        with os.scandir(folder) as entries:
            names = []
            for entry in entries:
                if entry.is_symlink():
                    names.append(entry.name)
    except OSError:  # it is not there yet, or is another's
        return []
    links = []
    for name in sorted(names):
        if not beginnings or name.lstrip(".").startswith(beginnings):
            links.append(folder / name)
    return links


def user_reaches(folder: Path) -> list[Reach]:
    """Who could sign in to a run's page: whoever made the users' file knows their passwords."""
    if not (folder / USERS).is_file():
        return []
    return [Reach(Action.ADMITS, f"the users in {USERS}, on its page")]


def studio_reaches(folder: Path) -> list[Reach]:
    """Who could send a run answers as Label Studio: whoever made the link knows its secret."""
    if not (folder / LABEL_STUDIO).is_file():
        return []
    return [Reach(Action.ADMITS, f"whoever knows the secret in {LABEL_STUDIO}, as Label Studio")]


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # links in a circle
        return path.absolute()
