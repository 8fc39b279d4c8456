"""What Label Studio calls: the webhook, and the machine-learning backend's /health, /setup and
/predict.
"""

from __future__ import annotations

import base64
import binascii
import json
import secrets
from typing import Any

from fastapi import FastAPI, HTTPException, Request

from tailor.integrations.label_studio.frozen_predictions import FrozenPredictions
from tailor.integrations.label_studio.publisher import prediction
from tailor.integrations.label_studio.sync import StudioSync

SECRET_HEADER = "X-Tailor-Secret"
#: Bytes of a request.
LARGEST_REQUEST = 64 * 1024 * 1024


def make_app(sync: StudioSync, secret: str) -> FastAPI:
    """The application that Label Studio calls. Every path but /health wants the secret: in
    SECRET_HEADER, or as the password of basic authentication.
    """
    app = FastAPI(
        title="TAILOR for Label Studio",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "UP", "model_class": "TAILOR"}

    @app.post("/setup")
    async def setup(request: Request) -> dict[str, str]:
        # The request also carries an access token of the project's owner: it is not needed, and not
        # kept.
        body = await _checked_body(request, secret)
        # Such as "3.1700000000": the project, and when it was made.
        project = str(body.get("project", ""))
        number, _, _ = project.partition(".")
        served = sync.task_mirror.studio.project
        if number != str(served):
            other = number or "none"
            raise HTTPException(400, f"this backend serves project {served}, not {other}")
        return {"model_version": sync.frozen_predictions.version}

    @app.post("/predict")
    async def predict(request: Request) -> dict[str, Any]:
        body = await _checked_body(request, secret)
        tasks = _task_list(body.get("tasks"))
        # Read once: the loop may put newer ones there meanwhile.
        frozen_predictions = sync.frozen_predictions
        results = [_predictions(sync, frozen_predictions, task) for task in tasks]
        return {
            "results": results,
            "model_version": frozen_predictions.version,
        }

    @app.post("/webhook")
    async def webhook(request: Request) -> dict[str, str]:
        body = await _checked_body(request, secret)
        if body.get("action") == "START_TRAINING":
            sync.train()
        else:
            sync.wake()  # what exactly happened, the next pass finds out
        return {"status": "ok"}

    return app


async def _checked_body(request: Request, secret: str) -> dict[str, Any]:
    """The JSON object in a request that shows the secret; HTTPException for any other."""
    if not _shows_secret(request, secret):
        raise HTTPException(
            401, "the secret is missing or wrong", headers={"WWW-Authenticate": "Basic"}
        )
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > LARGEST_REQUEST:
            raise HTTPException(413, f"a request may have {LARGEST_REQUEST >> 20} MiB")
    try:
        body = json.loads(bytes(content) or b"{}")
    except (ValueError, RecursionError):
        raise HTTPException(400, "this is no JSON") from None
    if not isinstance(body, dict):
        raise HTTPException(400, "a JSON object is needed")
    return body


def _task_list(tasks: Any) -> list[dict[str, Any]]:
    wrong = HTTPException(400, "tasks must be a list of tasks")
    if not isinstance(tasks, list):
        raise wrong
    for task in tasks:
        if not isinstance(task, dict):
            raise wrong
    return tasks


def _shows_secret(request: Request, secret: str) -> bool:
    shown = request.headers.get(SECRET_HEADER, "")
    authorization = request.headers.get("authorization", "")
    scheme, _, credentials = authorization.partition(" ")
    if not shown and scheme.lower() == "basic":
        try:
            name_and_password = base64.b64decode(credentials).decode()
        except (binascii.Error, UnicodeDecodeError):
            return False
        _, _, shown = name_and_password.partition(":")
    # In the same time, wherever they differ.
    return secrets.compare_digest(shown.encode(), secret.encode())


def _predictions(
    sync: StudioSync, frozen_predictions: FrozenPredictions, task: dict[str, Any]
) -> list[dict[str, Any]]:
    """A list of one prediction; empty for the hold-out, and for tasks that are not in the run."""
    task_id = task.get("id")
    data = task.get("data")
    if not isinstance(task_id, int) or not isinstance(data, dict):
        return []
    example = sync.task_mirror.example_of(task_id, data)
    if example is None:
        return []
    probabilities = frozen_predictions.get(example)
    if probabilities is None:
        return []
    config = sync.task_mirror.config
    predicted = prediction(config, frozen_predictions.task, probabilities)
    return [{"model_version": frozen_predictions.version, **predicted}]
