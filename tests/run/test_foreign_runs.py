"""A run folder from a stranger connects to nothing, runs nothing and writes nothing elsewhere."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading

import parts
import pytest
from hostile import canary, contents, listener, stranger_run  # noqa: F401

import tailor
from tailor.errors import InputError, NotTrusted, TailorError
from tailor.run import config
from tailor.run.project import Project
from tailor.run.reaches import run_reaches
from tailor.run.trust import check_trusted, forget, remember, untrusted
from tailor.storage import open_store

#: settings that reach something, with words of what a user is told; HERE is the listener's address,
#: PRECIOUS a folder of the user's
REACHING = {
    "s3": ({"pool": {"path": "s3://bucket/photos"}}, "connect to s3://bucket/photos"),
    "gs": ({"pool": {"path": "gs://bucket"}}, "connect to gs://bucket"),
    "azure": ({"pool": {"path": "abfs://c@evil.example/x"}}, "connect to abfs://c@evil"),
    "s3 as a table": (
        {"pool": {"path": "s3://b/x.parquet?endpoint_override=HERE", "kind": "parquet"}},
        "endpoint_override",
    ),
    "copies elsewhere": ({"pool": {"cache": "PRECIOUS"}}, "write to"),
    "pool plugin": ({"pool": {"kind": "evil"}}, "run the pool 'evil'"),
    "database": ({"run": {"store": "postgresql://HERE/x"}}, "connect to postgresql://HERE/x"),
    "short scheme": ({"run": {"store": "postgres://HERE/x"}}, "connect to postgres://HERE/x"),
    "another host": (
        {"run": {"store": "postgresql://db.example.org/x?hostaddr=127.0.0.1"}},
        "hostaddr=127.0.0.1",
    ),
    "host as an option": ({"run": {"store": "postgresql:///x?host=evil.example"}}, "evil.example"),
    "several hosts": ({"run": {"store": "postgresql://db,evil.example/x"}}, "evil.example"),
    "password file": (
        {"run": {"store": "postgresql://HERE/x?passfile=/home/me/.pgpass"}},
        "passfile",
    ),
    "service": ({"run": {"store": "postgresql:///?service=production"}}, "service=production"),
    "store elsewhere": ({"run": {"store": "PRECIOUS/letter.txt"}}, "write to"),
    "store above": ({"run": {"store": "../../other.db"}}, "write to"),
    "ray": ({"engine": {"name": "ray", "address": "HERE"}}, "the Ray cluster at HERE"),
    "ray client": (
        {"engine": {"name": "ray", "address": "ray://HERE"}},
        "the Ray cluster at ray://",
    ),
    "ray here": ({"engine": {"name": "ray", "address": "auto"}}, "the Ray cluster at auto"),
    "model plugin": ({"model": {"name": "evil"}}, "run the model 'evil'"),
    "model plugin with options": ({"model": {"name": "evil(a=1)"}}, "run the model 'evil'"),
    "backbone plugin": ({"model": {"backbone": "evil"}}, "run the backbone 'evil'"),
    "backbone in brackets": (
        {"model": {"name": "probe(backbone=evil)"}},
        "run the backbone 'evil'",
    ),
    "timm": ({"model": {"backbone": "timm:resnet50"}}, "the weights of timm:resnet50"),
    "timm in brackets": ({"model": {"backbone": "timm(model=x)"}}, "huggingface.co"),
    "timm from elsewhere": ({"model": {"backbone": "timm:hf-hub:evil/x"}}, "timm:hf-hub:evil/x"),
    "torchvision": ({"model": {"backbone": "torchvision:x"}}, "download.pytorch.org"),
    "resnet": ({"model": {"backbone": "resnet18"}}, "download.pytorch.org"),
    "imagenet": ({"model": {"name": "finetune", "weights": "imagenet"}}, "download.pytorch.org"),
    "features elsewhere": ({"model": {"name": "finetune(cache=PRECIOUS)"}}, "write to"),
    "unlisted classifier": (
        {"model": {"name": "sklearn(estimator=svm.SVC)"}},
        "run sklearn.svm.SVC",
    ),
    "function": (
        {"model": {"name": "sklearn(estimator=datasets.clear_data_home)"}},
        "run sklearn.datasets.clear_data_home",
    ),
    "strategy plugin": (
        {"selection": {"strategies": ["evil"]}},
        "'evil' of the installed package evil-plugin",
    ),
    "strategy among others": (
        {"selection": {"strategies": ["random", "evil(a=b)"]}},
        "'evil' of the installed package evil-plugin",
    ),
    "selector plugin": ({"selection": {"selector": "evil"}}, "run the selector 'evil'"),
    "reward plugin": ({"selection": {"reward": "evil"}}, "run the reward 'evil'"),
}

#: addresses that no trust opens
REFUSED = [
    *(f"{scheme}://HERE/x" for scheme in ("http", "https", "ftp", "sftp", "ssh", "smb", "git")),
    *(
        f"{scheme}://HERE/x"
        for scheme in ("github", "webhdfs", "hdfs", "dask", "jupyter", "libarchive")
    ),
    *(
        f"{scheme}://x"
        for scheme in ("reference", "zip", "tar", "cached", "simplecache", "blockcache")
    ),
    *(f"{scheme}://x" for scheme in ("dir", "generic", "hf", "root", "oci", "S3", "local", "")),
    "reference::http://HERE/evil.json",
    "reference::file://PRECIOUS/letter.txt",
    "reference://::http://HERE/evil.json",
    "simplecache::http://HERE/x.csv",
    "zip://x.csv::http://HERE/x.zip",
    "s3://bucket/x::http://HERE/",
    "file://PRECIOUS::reference://x",
    "filecache::s3://bucket",
    "memory://x::file:///etc",
    " s3://bucket",
    "s3 ://bucket",
]


@pytest.fixture
def fill(listener, canary):  # noqa: F811
    """Puts the listener's address and the user's folder into a setting."""

    def filled(value):
        if isinstance(value, dict):
            return {key: filled(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [filled(entry) for entry in value]
        return value.replace("HERE", listener.address).replace("PRECIOUS", str(canary.precious))

    yield filled
    assert not listener.has_heard(), "someone connected"


def open_every_way(folder):
    """The error of each way to open a run."""
    for open_it in (
        lambda: Project(folder),
        lambda: tailor.open_run(folder),
        lambda: tailor.open_run(folder / "points.npy", run=folder),
    ):
        with pytest.raises(NotTrusted) as caught:
            open_it()
        yield str(caught.value)


@pytest.mark.parametrize("name", REACHING)
def test_what_a_run_reaches_is_refused_and_told(name, fill, tmp_path):
    sections, told = REACHING[name]
    folder = stranger_run(tmp_path / "run", fill(sections))
    for message in open_every_way(folder):
        assert fill(told) in message
        assert f"tailor trust {folder}" in message
    assert sorted(path.name for path in folder.iterdir()) == ["points.npy", "tailor.toml"]


def _combinations():
    """Every choice of one setting a section, harmless ones among them."""
    by_section = {}
    for name, (sections, _) in REACHING.items():
        (section,) = sections
        by_section.setdefault(section, [None]).append(name)
    return [
        tuple(filter(None, names))
        for number, names in enumerate(itertools.product(*by_section.values()))
        # A part of them, spread over all: each takes a few milliseconds.
        if number % 151 == 0
    ]


COMBINATIONS = _combinations()


def test_combinations_are_many():
    assert len(COMBINATIONS) > 100
    assert {name for names in COMBINATIONS for name in names} == set(REACHING)


def test_of_several_that_reach_something_each_is_told(fill, tmp_path):
    for number, names in enumerate(COMBINATIONS):
        sections = {}
        for name in names:
            sections |= fill(REACHING[name][0])
        folder = stranger_run(tmp_path / str(number), sections)
        # As Project does it first of all, and as the test above shows that it does.
        all_reaches = sorted(set(run_reaches(config.read(folder))))
        reaches = [reach for reach in all_reaches if reach.needs_trust]
        if not names:
            assert not reaches
            continue
        with pytest.raises(NotTrusted) as caught:
            check_trusted(folder, reaches)
        for name in names:
            assert fill(REACHING[name][1]) in str(caught.value), names
        # Trusted with all but one, it is still refused; with all of them, nothing is left to ask.
        remember(folder, reaches[1:])
        assert untrusted(folder, reaches) == reaches[:1]
        remember(folder, reaches)
        assert untrusted(folder, reaches) == []


@pytest.mark.parametrize("address", REFUSED)
@pytest.mark.parametrize("kind", [None, "remote"])
def test_other_kinds_of_address_are_refused_even_where_trusted(address, kind, fill, tmp_path):
    pool = {"path": fill(address)}
    if kind:
        pool["kind"] = kind
    folder = stranger_run(tmp_path / "run", {"pool": pool})
    for trust in (False, True):
        with pytest.raises(InputError) as caught:
            Project(folder, trust=trust).pool()
        assert not isinstance(caught.value, NotTrusted)
    with pytest.raises(InputError):
        tailor.pools.open_pool(pool["path"])


@pytest.mark.parametrize(
    "store", ["mysql://HERE/x", "POSTGRESQL://HERE/x", "postgresql+psycopg://HERE/x", "http://HERE"]
)
def test_other_kinds_of_store_are_refused_even_where_trusted(store, fill, tmp_path):
    folder = stranger_run(tmp_path / "run", {"run": {"store": fill(store)}})
    for trust in (False, True):
        with pytest.raises(InputError, match="is no store"):
            Project(folder, trust=trust)


@pytest.mark.parametrize(
    "estimator",
    [
        "datasets.clear_data_home",
        "datasets.get_data_home",
        "datasets.fetch_20newsgroups",
        "show_versions",
        "base.clone",
        "conftest.pytest",
        "tests.test_base.MyEstimator",
        "externals.array_api_compat.numpy.array",
        "utils._show_versions.show_versions",
        "utils.os.getcwd",
        "..os.getcwd",
        "__init__.Warning",
        "base.BaseEstimator",
        "cluster.KMeans",
        "linear_model.Ridge",
        "pipeline.Pipeline",
        "",
        ".",
    ],
)
def test_no_function_of_scikit_learn_is_called_even_where_trusted(estimator, fill, tmp_path):
    folder = stranger_run(tmp_path / "run", {"model": {"name": f"sklearn(estimator={estimator})"}})
    project = Project(folder, trust=True)
    with pytest.raises(InputError):
        project.model(project.pool())


@pytest.mark.parametrize("name", ["run.db", "run.db-wal", "run.db-shm", "run.db.lock"])
@pytest.mark.parametrize("store", [None, "answers.db", "deep/answers.db"])
def test_a_link_beside_the_store_is_not_written_through(name, store, canary, tmp_path):  # noqa: F811
    sections = {"run": {"store": store}} if store else {}
    folder = stranger_run(tmp_path / "run", sections)
    link = folder / (store or "run.db")
    link = link.with_name(link.name + name.removeprefix("run.db"))
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(canary.precious / "letter.txt")
    with pytest.raises(NotTrusted, match=r"letter\.txt"):
        Project(folder)
    if not store:
        (folder / config.FILE).unlink()
        with pytest.raises(NotTrusted, match=r"letter\.txt"):
            tailor.open_run(folder / "points.npy", ["a", "b"], run=folder)
        assert not (folder / config.FILE).exists()


@pytest.mark.parametrize(
    "name",
    [
        "cache",
        "engine",
        "web",
        "cache/x",
        "engine/x/y",
        "web/.users.json.lock",
        "label-studio/texts.jsonl",
    ],
)
def test_a_link_out_of_a_written_folder_is_not_followed(name, canary, tmp_path):  # noqa: F811
    folder = stranger_run(tmp_path / "run")
    link = folder / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(canary.precious)
    with pytest.raises(NotTrusted, match="write to"):
        Project(folder)


def test_a_link_to_a_link_is_not_followed(canary, tmp_path):  # noqa: F811
    folder = stranger_run(tmp_path / ".hidden")
    (folder / "inner").mkdir()
    (folder / "inner" / "rows.bin").symlink_to(canary.precious / "letter.txt")
    (folder / "cache").symlink_to(folder / "inner")
    (tmp_path / "run").symlink_to(folder)
    for path in (folder, tmp_path / "run"):
        with pytest.raises(NotTrusted, match="where cache leads"):
            Project(path)
    # Trusted by one name, it is by the other.
    Project(folder, trust=True)
    Project(tmp_path / "run")


def test_a_pool_behind_a_link_needs_no_trust(tmp_path):
    folder = stranger_run(tmp_path / "run", {"pool": {"path": "linked.npy"}})
    elsewhere = tmp_path / "elsewhere.npy"
    (folder / "points.npy").rename(elsewhere)
    (folder / "linked.npy").symlink_to(elsewhere)
    assert len(Project(folder).pool()) == 12


def test_a_plugin_that_only_the_store_names_is_not_run(canary, tmp_path):  # noqa: F811
    for key, value in {"strategies": ["evil"], "selector": "evil"}.items():
        folder = stranger_run(
            tmp_path / key, {"selection": {key: "auto" if key == "selector" else ["auto"]}}
        )
        settings = {"kind": "multi-class", "classes": ["left", "right"], key: value}
        with open_store(folder / "run.db") as store:
            store.append("opened", {"settings": settings})
        with pytest.raises(NotTrusted, match="evil-plugin"):
            Project(folder)


def test_a_message_shows_no_password_and_obeys_no_control_character(tmp_path):
    store = "postgresql://ada:pa55word@db/x?sslpassword=pa55word&application_name=a%0Ab"
    folder = stranger_run(tmp_path / "run", {"run": {"store": store}})
    with pytest.raises(NotTrusted) as caught:
        Project(folder)
    assert "pa55word" not in str(caught.value)
    assert "postgresql://ada:***@db/x" in str(caught.value)
    for number, trick in enumerate(["\n  - nothing else", "\x1b[2J", "\u202e"]):
        other = stranger_run(tmp_path / str(number), {"pool": {"path": f"s3://bucket{trick}"}})
        with pytest.raises(NotTrusted) as caught:
            Project(other)
        assert trick not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:a@b@h/x",
        "postgresql://u:a#b@h/x",
        "postgresql://u:a/b@h/x",
        "postgresql://[",
    ],
)
def test_an_address_that_might_show_a_password_is_not_repeated(url, tmp_path):
    folder = stranger_run(tmp_path / "run", {"run": {"store": url}})
    with pytest.raises(NotTrusted, match="an address that can't be read"):
        Project(folder)


# ------------------------------------------------------------------ what is trusted


HARMLESS = [
    {},
    {"model": {"name": "sklearn"}},
    {"model": {"name": "sklearn(estimator=ensemble.RandomForestClassifier)"}},
    {"model": {"backbone": "given"}},
    {"selection": {"strategies": ["auto"], "selector": "auto", "reward": "search"}},
    {"selection": {"strategies": ["most-certain"]}},
    {"engine": {"name": "local"}},
    {"engine": {"name": "memory", "address": "auto"}},
    {"run": {"store": "answers.db"}},
]


@pytest.mark.parametrize("sections", HARMLESS)
def test_a_run_that_reaches_nothing_opens_without_a_word(sections, tmp_path, monkeypatch, recwarn):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = Project(stranger_run(tmp_path / "run", sections))
    assert len(project.pool()) == 12
    assert not (tmp_path / "state").exists()
    assert not recwarn


def test_a_run_that_was_begun_here_is_trusted_with_what_was_named(tmp_path, monkeypatch):
    parts.need("addresses")
    folder = stranger_run(tmp_path / "examples")
    address = f"file://{folder / 'points.npy'}"
    store = tmp_path / "elsewhere" / "run.db"
    store.parent.mkdir()
    run = tmp_path / "run"
    with tailor.open_run(address, ["a", "b"], run=run, store=str(store), model="sklearn") as opened:
        opened.ask(1)
    Project(run)
    with tailor.open_run(run):
        pass
    # Moved, it is another run.
    run.rename(tmp_path / "moved")
    with pytest.raises(NotTrusted, match="elsewhere"):
        Project(tmp_path / "moved")


def test_trust_is_remembered_until_the_settings_reach_more(tmp_path):
    folder = stranger_run(tmp_path / "run", {"run": {"store": "../a.db"}})
    with pytest.raises(NotTrusted):
        Project(folder)
    Project(folder, trust=True)
    Project(folder)
    settings = folder / config.FILE
    settings.write_text(settings.read_text().replace("../a.db", "../b.db"))
    with pytest.raises(NotTrusted, match=r"b\.db"):
        tailor.open_run(folder)
    tailor.open_run(folder, trust=True).close()
    settings.write_text(settings.read_text().replace("../b.db", "run.db"))
    Project(folder)
    assert forget(folder)
    assert not forget(folder)
    settings.write_text(settings.read_text().replace('"run.db"', '"../a.db"'))
    with pytest.raises(NotTrusted):
        Project(folder)


def test_a_damaged_record_trusts_nothing(tmp_path, monkeypatch):
    state = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    folder = stranger_run(tmp_path / "run", {"run": {"store": "../a.db"}})
    for damage in ("", "[]", "{}", '{"reaches": [["write to"]]}', '{"reaches": [["fly", "x"]]}'):
        Project(folder, trust=True)
        (record,) = (state / "tailor" / "trusted").iterdir()
        assert record.stat().st_mode & 0o077 == 0
        record.write_text(damage)
        with pytest.raises(NotTrusted):
            Project(folder)


def test_where_nothing_can_be_remembered_trust_holds_for_once(tmp_path, monkeypatch):
    in_the_way = tmp_path / "state"
    in_the_way.write_text("a file")
    monkeypatch.setenv("XDG_STATE_HOME", str(in_the_way))
    folder = stranger_run(tmp_path / "run", {"run": {"store": "../a.db"}})
    with pytest.warns(UserWarning, match="XDG_STATE_HOME"):
        Project(folder, trust=True)
    with pytest.raises(NotTrusted):
        Project(folder)


def test_a_store_that_the_environment_names_needs_no_trust(tmp_path, monkeypatch):
    folder = stranger_run(tmp_path / "run", {"run": {"store": "postgresql://evil.example/x"}})
    monkeypatch.setenv("TAILOR_STORE", str(tmp_path / "mine.db"))
    with tailor.open_run(folder) as run:
        run.ask(1)
    assert (tmp_path / "mine.db").exists()


def test_the_listener_hears_a_connection(listener):  # noqa: F811
    with socket.create_connection(("127.0.0.1", listener.port)):
        assert listener.has_heard()


def test_a_trusted_run_does_connect(tmp_path):
    """What the other tests would have heard."""
    parts.need("PostgreSQL")
    server = socket.create_server(("127.0.0.1", 0))
    heard = threading.Event()

    def hang_up():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                heard.set()
                connection.close()

    thread = threading.Thread(target=hang_up)
    thread.start()
    store = f"postgresql://127.0.0.1:{server.getsockname()[1]}/x"
    folder = stranger_run(tmp_path / "run", {"run": {"store": store}})
    try:
        with pytest.raises(TailorError):
            Project(folder, trust=True).store(readonly=True)
        assert heard.is_set()
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()
