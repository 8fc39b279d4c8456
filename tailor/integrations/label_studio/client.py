"""One project of a Label Studio: its settings, its tasks, and what is set up in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tailor.errors import InputError
from tailor.integrations.label_studio.link_fetcher import LinkFetcher
from tailor.integrations.label_studio.studio_tasks import StudioTasks
from tailor.integrations.label_studio.transport import StudioError, StudioTransport

#: Projects named in the message about one that is not there.
PROJECTS_NAMED = 20


class Studio:
    """A project of a Label Studio server.

    url          Label Studio's address
    token        a personal access token, or a legacy one where the organization allows them
    project      the number of the project
    allow_links  hosts and networks that are not public and that links in tasks may lead to all the
                 same

    Its parts: `tasks` (read and write tasks), `links` (fetch what tasks link to), `webhooks`,
    `backends` and `tabs` (what is set up in the project).
    """

    def __init__(
        self,
        url: str,
        token: str,
        project: int,
        *,
        allow_links: Sequence[str] = (),
    ) -> None:
        self.transport = StudioTransport(url, token)
        self.project = project
        self.tasks = StudioTasks(self.transport, project)
        self.links = LinkFetcher(self.transport, allow_links)
        self.webhooks = ProjectItems(self.transport, project, "/api/webhooks/")
        self.backends = ProjectItems(self.transport, project, "/api/ml")
        self.tabs = ProjectItems(self.transport, project, "/api/dm/views/")
        self._user_names: dict[int, str] = {}

    @property
    def url(self) -> str:
        return self.transport.url

    def close(self) -> None:
        self.transport.close()

    def describe(self) -> dict[str, Any]:
        """The project's settings: title, label_config, created_at, model_version, ...

        Raises InputError where there is no such project; the message names some that there are.
        """
        path = f"/api/projects/{self.project}"
        try:
            settings: dict[str, Any] = self.transport.call("GET", path)
        except StudioError as error:
            if error.status != 404:
                raise
        else:
            return settings
        others = self._other_projects()
        raise InputError(f"no project {self.project} at {self.url}: there are {others}")

    def _other_projects(self) -> str:
        page = self.transport.call("GET", "/api/projects", params={"page_size": PROJECTS_NAMED})
        names = []
        for project in page["results"]:
            number = project["id"]
            title = project["title"]
            names.append(f"{number} ({title!r})")
        return ", ".join(names) or "(none)"

    def change_settings(self, **settings: Any) -> None:
        """Change settings of the project, such as model_version."""
        path = f"/api/projects/{self.project}"
        self.transport.call("PATCH", path, json=settings)

    def user_name(self, user: int) -> str:
        """The e-mail address of a user, as far as it can be seen."""
        if user not in self._user_names:
            for listed in self.transport.call("GET", "/api/users/"):
                number = listed["id"]
                email = listed.get("email")
                self._user_names[number] = email or f"user {number}"
        # Not everybody is listed for everybody.
        return self._user_names.setdefault(user, f"user {user}")


class ProjectItems:
    """Webhooks, backends or Data Manager tabs of a project: things under one path of the API.

    path  with or without a slash at its end; the paths of its items follow it
    """

    def __init__(
        self,
        transport: StudioTransport,
        project: int,
        path: str,
    ) -> None:
        self._transport = transport
        self._project = project
        self.path = path

    def list_items(self) -> list[dict[str, Any]]:
        listed = self._transport.call("GET", self.path, params={"project": self._project})
        items = []
        for item in listed:
            # Some of these paths also list what belongs to other projects.
            project = item.get("project")
            if project is None or project == self._project:
                items.append(item)
        return items

    def add(self, **values: Any) -> None:
        item = {"project": self._project, **values}
        self._transport.call("POST", self.path, json=item)

    def update(self, item_id: int, **values: Any) -> None:
        path = self._item_path(item_id)
        self._transport.call("PATCH", path, json=values)

    def remove(self, item_id: int) -> None:
        path = self._item_path(item_id)
        self._transport.call("DELETE", path)

    def _item_path(self, item_id: int) -> str:
        # As the API has it: either all paths of a kind end in a slash, or none does.
        if self.path.endswith("/"):
            return f"{self.path}{item_id}/"
        return f"{self.path}/{item_id}"
