"""The tasks of a Label Studio project, over its HTTP API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from tailor.errors import InputError
from tailor.integrations.label_studio.transport import StudioTransport

#: Tasks a page when they are listed.
PAGE_SIZE = 500
#: The fields of a task, and of its annotations, that are read; without `predictions` a page stays
#: small.
FIELDS = (
    "id,data,annotations,result,completed_by,was_cancelled,updated_at,predictions_model_versions"
)


class StudioTasks:
    """Reads and writes the tasks of one project. All methods raise what StudioTransport.call
    raises.
    """

    def __init__(self, transport: StudioTransport, project: int) -> None:
        self._transport = transport
        self._project = project
        self._import_path = f"/api/projects/{project}/import"

    def list_tasks(self, since: float | None = None) -> Iterator[dict[str, Any]]:
        """All tasks with their annotations, or those changed since a time (by Label Studio's
        clock), by ascending id.

        A page begins after the last id of the one before, so that a task deleted meanwhile shifts
        nothing.
        """
        last_id = 0
        while True:
            filters = [column_filter("id", "greater", "Number", last_id)]
            if since is not None:
                moment = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
                filters.append(
                    column_filter(
                        "updated_at",
                        "greater",
                        "Datetime",
                        moment,
                    )
                )
            query = {
                "filters": {"conjunction": "and", "items": filters},
                "ordering": ["tasks:id"],
            }
            parameters = {
                "project": self._project,
                "fields": "all",
                "include": FIELDS,
                "page_size": PAGE_SIZE,
                # What is written back must be what was there, not a link that runs out.
                "resolve_uri": "false",
                "query": json.dumps(query),
            }
            page = self._transport.call("GET", "/api/tasks", params=parameters)["tasks"]
            yield from page
            if len(page) < PAGE_SIZE:
                return
            last_id = page[-1]["id"]

    def totals(self) -> tuple[int, int]:
        """(tasks, annotations that are not skips). Cheap to get; they tell when something was
        deleted.
        """
        parameters = {
            "project": self._project,
            "include": "id",
            "page_size": 1,
        }
        page = self._transport.call("GET", "/api/tasks", params=parameters)
        return page["total"], page["total_annotations"]

    def add(self, tasks: Sequence[dict[str, Any]]) -> list[int]:
        """Import tasks ({"data": ..., "predictions": ...}) -> their ids.

        Raises InputError where Label Studio imports in the background and gives no ids.
        """
        imported = self._transport.call(
            "POST",
            self._import_path,
            params={"return_task_ids": "true"},
            json=list(tasks),
        )
        if "task_ids" not in imported:
            raise InputError(
                "this Label Studio imports tasks in the background, as paid editions do: it "
                "can't be used"
            )
        task_ids: list[int] = imported["task_ids"]
        return task_ids

    def upload(self, files: Sequence[tuple[str, bytes, str]]) -> list[str]:
        """Upload files, each (name, content, media type) -> the path of each in Label Studio, as a
        task's data name it.
        """
        parts = []
        for number, file in enumerate(files):
            parts.append((str(number), file))
        imported = self._transport.call(
            "POST",
            self._import_path,
            params={"commit_to_project": "false"},
            files=parts,
        )
        upload_ids = imported["file_upload_ids"]
        uploads = self._transport.call(
            "GET",
            f"/api/projects/{self._project}/file-uploads",
            params={"ids": json.dumps(upload_ids)},
        )
        path_by_id = {}
        for upload in uploads:
            upload_id = upload["id"]
            path_by_id[upload_id] = f"/data/{upload['file']}"
        # The second answer lists them in an order of its own.
        return [path_by_id[upload_id] for upload_id in upload_ids]

    def set_data(self, task_id: int, data: dict[str, Any]) -> None:
        """Replace the data of a task."""
        self._transport.call("PATCH", f"/api/tasks/{task_id}", json={"data": data})

    def add_predictions(self, predictions: Sequence[dict[str, Any]]) -> None:
        """Import predictions, each with the number of its `task`."""
        self._transport.call("POST", f"{self._import_path}/predictions", json=list(predictions))

    def resolved_data(self, task_id: int) -> dict[str, Any]:
        """A task's data with links to cloud storage turned into ones that can be fetched from Label
        Studio.
        """
        task = self._transport.call("GET", f"/api/tasks/{task_id}")
        data: dict[str, Any] = task["data"]
        return data


def column_filter(
    column: str,
    operator: str,
    kind: str,
    value: Any,
) -> dict[str, Any]:
    """A filter of the Data Manager on a column of the tasks; `kind` is "Number", "Datetime", ..."""
    return {
        "filter": f"filter:tasks:{column}",
        "operator": operator,
        "type": kind,
        "value": value,
    }
