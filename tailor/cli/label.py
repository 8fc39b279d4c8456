"""tailor label: the labelling page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailor.cli.run_option import complete_run
from tailor.cli.terminal import interruptible
from tailor.cli.trust_option import Trust, open_project, settle
from tailor.common.distribution import pip_install
from tailor.errors import InputError

if TYPE_CHECKING:
    from tailor.run.project import Project


def label(
    path: Annotated[
        str,
        typer.Argument(
            help="A folder of pictures, a file of texts or vectors, an address (s3://...), or a "
            "run."
        ),
    ],
    classes: Annotated[
        str, typer.Option(help="Class names, separated by commas; for a new run.")
    ] = "",
    multi_label: Annotated[
        bool,
        typer.Option(
            "--multi-label", help="An example may have several classes, or none; for a new run."
        ),
    ] = False,
    run: Annotated[
        Path | None,
        typer.Option(
            "--run",
            "-r",
            help="The run's folder; by default PATH-labels beside PATH, or here.",
            autocompletion=complete_run,
        ),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Examples a round; for a new run.")] = 20,
    backbone: Annotated[str, typer.Option(help="The probe's network; for a new run.")] = "",
    key: Annotated[str, typer.Option(help="The column that holds the ids; for a new run.")] = "",
    column: Annotated[
        str,
        typer.Option(
            help="The column that holds the examples, where there are several; for a new run."
        ),
    ] = "",
    host: Annotated[
        str, typer.Option(help="Where to listen. Other than this machine: needs users or a token.")
    ] = ("127.0.0.1"),
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="By default 8765, or the next that is free; 0: any that is free."
        ),
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Don't open the browser.")] = False,
    name: Annotated[
        str, typer.Option(help="Your name; by default the one you are logged in with.")
    ] = "",
    token: Annotated[
        str,
        typer.Option(
            envvar="TAILOR_TOKEN", help='A shared secret that lets people in; "new" makes one up.'
        ),
    ] = "",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Another name of this server, as a proxy calls it; may be repeated."),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            help="The address or network of a proxy whose X-Forwarded-For and X-Forwarded-Proto "
            "are believed; may be repeated."
        ),
    ] = None,
    tls_certificate: Annotated[
        Path | None,
        typer.Option(help="A PEM file with the server's certificate and its chain, for https."),
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(help="A PEM file with the certificate's private key.")
    ] = None,
    overlap: Annotated[
        int, typer.Option(min=1, help="How many people answer a shared example.")
    ] = 1,
    overlap_share: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the examples that is shared.")
    ] = 0.0,
    lease: Annotated[
        float,
        typer.Option(min=10, help="Seconds after which the examples of someone gone are free."),
    ] = (300.0),
    trust: Trust = False,
) -> None:
    """Label in the browser. A folder of pictures and class names are all it needs; run it again to
    go on.
    """
    import secrets

    from tailor.run.reaches import user_reaches

    try:
        from tailor.web.serve import serve
        from tailor.web.tls import tls_files
    except ModuleNotFoundError as error:
        raise InputError(
            f"{error.name} is not installed: labelling needs {pip_install('web')}"
        ) from error
    tls = tls_files(tls_certificate, tls_key)
    project = find_or_begin(
        path,
        run,
        classes,
        multi_label,
        batch,
        backbone,
        trust=trust,
        key=key,
        column=column,
    )
    # Whoever made a run's users knows their passwords.
    settle(project.folder, user_reaches(project.folder), trust)
    if token == "new":
        token = secrets.token_urlsafe(24)
    command = f"tailor label {path}"
    if run:
        command += f" --run {run}"
    with interruptible(command):
        serve(
            project,
            host=host,
            port=port,
            open_browser=not no_open,
            name=name,
            token=token or None,
            hosts=allow_host or [],
            proxies=proxy or [],
            tls=tls,
            overlap=overlap,
            overlap_share=overlap_share,
            lease=lease,
            say=typer.echo,
        )


def find_or_begin(
    path: Path | str,
    run: Path | None,
    classes: str,
    multi_label: bool,
    batch: int,
    backbone: str,
    *,
    trust: bool = False,
    **columns: str,
) -> Project:
    """The run in this folder, or beside these examples, or here for an address; a new one where
    there is none.
    """
    from tailor.cli.init import begin, names_in
    from tailor.run import config
    from tailor.run.begin import check_same_pool, is_address, run_folder
    from tailor.run.project import Project

    if run is None or not is_address(path):
        default_folder = run_folder(path)  # also where --run is given: something must be there
        run = run or default_folder
    columns = {name: value for name, value in columns.items() if value}
    if not (run / config.FILE).is_file():
        sections: dict[str, dict[str, object]] = {
            "model": {"name": "probe"},
            "selection": {"batch": batch},
        }
        if backbone:
            sections["model"]["backbone"] = backbone
        begin(path, run, classes, multi_label, columns, sections)
        return Project(run)
    project = open_project(run, trust)
    check_same_pool(project, path)
    _check_same_columns(project, columns)
    class_names = names_in(classes)
    if class_names and class_names != list(project.settings.classes):
        typer.echo(
            f"Going on with {run}, which has classes already: change them on the page, under "
            "Classes."
        )
    return project


def _check_same_columns(project: Project, columns: dict[str, str]) -> None:
    settings = project.config.section("pool")
    for name, value in columns.items():
        if value != settings.get(name):
            raise InputError(
                f"--{name} is {value!r}, the run in {project.folder} was begun with "
                f"{settings.get(name)!r}: leave it out, or begin another run in another folder "
                "with --run"
            )
