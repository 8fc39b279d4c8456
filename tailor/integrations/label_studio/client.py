"""One project of a Label Studio, over its HTTP API."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tailor.errors import InputError, TailorError
from tailor.integrations.label_studio.link_guard import PORTS, LinkGuard, LinkRefused

if TYPE_CHECKING:
    import httpx

#: tasks a page when they are listed
PAGE = 500
#: the fields of a task, and of its annotations, that are read; without `predictions` a page stays
#: small
FIELDS = (
    "id,data,annotations,result,completed_by,was_cancelled,updated_at,predictions_model_versions"
)
#: seconds: a large batch of tasks may take Label Studio a while
CONNECT, ANSWER = 10.0, 300.0
#: bytes of a picture that is fetched, and how often its link may lead on to another
LARGEST = 100 * 1024 * 1024
REDIRECTS = 10


class StudioError(TailorError):
    """Label Studio refused something; `status` is HTTP's, where there was one."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Unreachable(StudioError):
    """Label Studio does not answer, or is in trouble: it is worth trying again."""


class Studio:
    """What TAILOR needs of Label Studio. The token goes to that server alone and into no message.

    token: a personal access token, or a legacy one where the organization allows them. allow_links:
    hosts and networks that are not public and that links in tasks may lead to all the same.
    """

    def __init__(
        self, url: str, token: str, project: int, *, allow_links: Sequence[str] = ()
    ) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
            raise InputError(
                f"url is {url!r}: give Label Studio's address, such as http://localhost:8080"
            )
        if not token or not token.isascii() or not token.isprintable():
            raise InputError(
                "the token is empty or holds odd characters: copy it again from Label Studio"
            )
        httpx = _httpx()
        self.url = url.rstrip("/")
        self.project = project
        self._token = token
        self._guard = LinkGuard(
            str(httpx.URL(self.url)), allow_links
        )  # as the links that are compared with it
        self._personal = (
            token.count(".") == 2
        )  # a JWT: it is exchanged for an access token that lasts minutes
        self._access = ""
        self._timeout = httpx.Timeout(ANSWER, connect=CONNECT)
        self._http = httpx.Client(base_url=self.url, timeout=self._timeout)
        self._names: dict[int, str] = {}
        #: Label Studio's clock when it answered last, in seconds since 1970
        self.now = 0.0

    def close(self) -> None:
        self._http.close()

    # ------------------------------------------------------------------ the project

    def describe(self) -> dict[str, Any]:
        """The project's settings: title, label_config, created_at, model_version, ..."""
        try:
            return self._call("GET", f"/api/projects/{self.project}")
        except StudioError as error:
            if error.status != 404:
                raise
            listed = self._call("GET", "/api/projects", params={"page_size": 20})["results"]
            known = ", ".join(f"{p['id']} ({p['title']!r})" for p in listed) or "(none)"
            raise InputError(
                f"no project {self.project} at {self.url}: there are {known}"
            ) from None

    def change(self, **settings: Any) -> None:
        self._call("PATCH", f"/api/projects/{self.project}", json=settings)

    def name_of(self, user: int) -> str:
        """The e-mail address of a user, as far as it can be seen."""
        if user not in self._names:
            self._names = {
                u["id"]: u.get("email") or f"user {u['id']}"
                for u in self._call("GET", "/api/users/")
            }
        return self._names.setdefault(user, f"user {user}")

    # ------------------------------------------------------------------ tasks

    def tasks(self, since: float | None = None) -> Iterator[dict[str, Any]]:
        """All tasks with their annotations, or those touched since a time (Label Studio's clock),
        by ascending id.

        A page begins after the last id of the one before, so that a task deleted meanwhile shifts
        nothing.
        """
        last = 0
        while True:
            items = [_filter("id", "greater", "Number", last)]
            if since is not None:
                from datetime import UTC, datetime

                moment = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
                items.append(_filter("updated_at", "greater", "Datetime", moment))
            query = {"filters": {"conjunction": "and", "items": items}, "ordering": ["tasks:id"]}
            # Not resolved: what is written back must be what was there, not a link that runs out.
            page = self._call(
                "GET",
                "/api/tasks",
                params={
                    "project": self.project,
                    "fields": "all",
                    "include": FIELDS,
                    "page_size": PAGE,
                    "resolve_uri": "false",
                    "query": json.dumps(query),
                },
            )["tasks"]
            yield from page
            if len(page) < PAGE:
                return
            last = page[-1]["id"]

    def totals(self) -> tuple[int, int]:
        """(tasks, annotations that are not skips): cheap to get, and they tell when something was
        deleted.
        """
        found = self._call(
            "GET", "/api/tasks", params={"project": self.project, "include": "id", "page_size": 1}
        )
        return found["total"], found["total_annotations"]

    def add_tasks(self, tasks: Sequence[dict[str, Any]]) -> list[int]:
        """Import tasks -> their ids."""
        path = f"/api/projects/{self.project}/import"
        found = self._call("POST", path, params={"return_task_ids": "true"}, json=list(tasks))
        if "task_ids" not in found:
            raise InputError(
                "this Label Studio imports tasks in the background, as paid editions do: it "
                "can't be used"
            )
        return found["task_ids"]

    def upload(self, files: Sequence[tuple[str, bytes, str]]) -> list[str]:
        """Files as (name, content, type) -> where Label Studio keeps each, as a task's data name
        it.
        """
        path = f"/api/projects/{self.project}/import"
        parts = [(str(number), file) for number, file in enumerate(files)]
        ids = self._call("POST", path, params={"commit_to_project": "false"}, files=parts)[
            "file_upload_ids"
        ]
        listed = self._call(
            "GET", f"/api/projects/{self.project}/file-uploads", params={"ids": json.dumps(ids)}
        )
        place = {one["id"]: f"/data/{one['file']}" for one in listed}
        return [place[one] for one in ids]

    def set_data(self, task: int, data: dict[str, Any]) -> None:
        self._call("PATCH", f"/api/tasks/{task}", json={"data": data})

    def add_predictions(self, predictions: Sequence[dict[str, Any]]) -> None:
        self._call(
            "POST", f"/api/projects/{self.project}/import/predictions", json=list(predictions)
        )

    def resolved(self, task: int) -> dict[str, Any]:
        """A task's data with links to cloud storage turned into ones that can be fetched from Label
        Studio.
        """
        return self._call("GET", f"/api/tasks/{task}")["data"]

    def fetch(self, link: str) -> bytes:
        """What a link in a task's data leads to: in Label Studio with the token, elsewhere without.

        Every place that it leads through is checked: see LinkGuard.
        """
        httpx = _httpx()
        try:
            url = httpx.URL(self.url + link if link.startswith("/") else link)
            for _ in range(REDIRECTS):
                with self._opened(url) as answer:
                    if not answer.has_redirect_location:
                        return _content(answer, link)
                    url = url.join(answer.headers["location"])
        except (LinkRefused, httpx.InvalidURL) as error:
            raise StudioError(f"{link[:200]!r} can't be fetched: {error}") from None
        except httpx.HTTPError as error:
            kind = Unreachable if self._guard.is_studio(str(url)) else StudioError
            raise kind(f"{link[:200]!r} can't be fetched: {error}") from None
        raise StudioError(f"{link[:200]!r} leads on to another link more than {REDIRECTS} times")

    @contextlib.contextmanager
    def _opened(self, url: httpx.URL) -> Iterator[httpx.Response]:
        """The answer of one place, its content not read yet."""
        with _httpx().Client(timeout=self._timeout) as client:
            if self._guard.is_studio(str(url)):
                answer = client.send(
                    client.build_request("GET", url, headers=self._authorization()), stream=True
                )
            elif url.scheme in PORTS:
                addresses = self._guard.addresses(url.host, url.port or PORTS[url.scheme])
                answer = _send_to(addresses, client, url)
            else:
                raise LinkRefused("only http, https and Label Studio's own links can")
            yield answer

    # ------------------------------------------------------------------ what is set up in the
    # project

    def listed(self, path: str) -> list[dict[str, Any]]:
        """Webhooks, tabs or backends of the project."""
        found = self._call("GET", path, params={"project": self.project})
        return [one for one in found if one.get("project") in (self.project, None)]

    def add(self, path: str, **values: Any) -> None:
        self._call("POST", path, json={"project": self.project, **values})

    def update(self, path: str, one: int, **values: Any) -> None:
        self._call(
            "PATCH", f"{path.rstrip('/')}/{one}{'/' if path.endswith('/') else ''}", json=values
        )

    def remove(self, path: str, one: int) -> None:
        self._call("DELETE", f"{path.rstrip('/')}/{one}{'/' if path.endswith('/') else ''}")

    # ------------------------------------------------------------------ HTTP

    def _call(self, method: str, path: str, **options: Any) -> Any:
        answer = self._send(method, path, **options)
        if answer.status_code == 401 and self._personal:  # the access token has run out
            self._access = ""
            answer = self._send(method, path, **options)
        if "date" in answer.headers:
            self.now = parsedate_to_datetime(answer.headers["date"]).timestamp()
        if answer.is_success:
            if not answer.content:
                return None
            try:
                return answer.json()
            except ValueError:
                raise StudioError(
                    f"{self.url} does not answer like Label Studio: is the address right?"
                ) from None
        raise self._refusal(answer, f"{method} {path}")

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            return self._http.request(method, path, headers=self._authorization(), **options)
        except _httpx().HTTPError as error:
            raise Unreachable(
                f"Label Studio at {self.url} can't be reached: {self._clean(str(error))}"
            ) from None

    def _authorization(self) -> dict[str, str]:
        if not self._personal:
            return {"Authorization": f"Token {self._token}"}
        if not self._access:
            try:
                answer = self._http.post("/api/token/refresh/", json={"refresh": self._token})
            except _httpx().HTTPError as error:
                raise Unreachable(
                    f"Label Studio at {self.url} can't be reached: {self._clean(str(error))}"
                ) from None
            if not answer.is_success:
                raise self._refusal(answer, "POST /api/token/refresh/")
            self._access = answer.json()["access"]
        return {"Authorization": f"Bearer {self._access}"}

    def _refusal(self, answer: httpx.Response, what: str) -> TailorError:
        status = answer.status_code
        if status == 401:
            return InputError(
                f"Label Studio at {self.url} does not accept the token: {self._reason(answer)} "
                "Make one there under "
                "Account & Settings"
            )
        if status in (429, 500, 502, 503, 504):
            return Unreachable(f"Label Studio at {self.url} is in trouble ({status}) with {what}")
        if 300 <= status < 400:
            where = answer.headers.get("location", "elsewhere")
            return InputError(
                f"{self.url} sends us on to {where}: give the address that answers by itself"
            )
        return StudioError(
            f"Label Studio refused {what} ({status}): {self._reason(answer)}", status
        )

    def _reason(self, answer: httpx.Response) -> str:
        try:
            said = answer.json()
            text = json.dumps(said.get("validation_errors") or said.get("detail") or said)
        except (ValueError, AttributeError):
            text = answer.reason_phrase
        return self._clean(text)[:500]

    def _clean(self, text: str) -> str:
        for secret in (self._token, self._access):
            text = text.replace(secret, "***") if secret else text
        return text


def _send_to(addresses: Sequence[str], client: httpx.Client, url: httpx.URL) -> httpx.Response:
    """The answer of the first address that can be connected to. The host's name is not looked up
    again.
    """
    for number, address in enumerate(addresses):
        request = client.build_request(
            "GET",
            url.copy_with(host=address),
            headers={"Host": url.netloc.decode()},
            extensions={"sni_hostname": url.host},
        )
        try:
            return client.send(request, stream=True)
        except (_httpx().ConnectError, _httpx().ConnectTimeout):
            if number == len(addresses) - 1:
                raise
    raise LinkRefused(f"{url.host} has no address")


def _content(answer: httpx.Response, link: str) -> bytes:
    if answer.status_code != 200:
        raise StudioError(f"{link[:200]!r} answers {answer.status_code}")
    content = bytearray()
    for part in answer.iter_bytes():
        content += part
        if len(content) > LARGEST:
            raise StudioError(f"{link[:200]!r} is larger than {LARGEST >> 20} MiB")
    return bytes(content)


def _filter(column: str, operator: str, kind: str, value: Any) -> dict[str, Any]:
    return {"filter": f"filter:tasks:{column}", "operator": operator, "type": kind, "value": value}


def _httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise InputError(
            "Label Studio is reached with httpx: pip install 'tailor[label-studio]'"
        ) from None
    return httpx
