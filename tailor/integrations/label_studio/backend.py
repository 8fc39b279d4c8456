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
    app = FastAPI(title="TAILOR for Label Studio", docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "UP", "model_class": "TAILOR"}

    @app.post("/setup")
    async def setup(request: Request) -> dict[str, str]:
        # The request also carries an access token of the project's owner: it is not needed, and not
        # kept.
        body = await _checked_body(request, secret)
        number = str(body.get("project", "")).partition(".")[0]
        served = sync.task_mirror.studio.project
        if number != str(served):
            raise HTTPException(
                400, f"this backend serves project {served}, not {number or 'none'}"
            )
        return {"model_version": sync.frozen_predictions.version}

    @app.post("/predict")
    async def predict(request: Request) -> dict[str, Any]:
        body = await _checked_body(request, secret)
        tasks = _task_list(body.get("tasks"))
        # Read once: the loop may put newer ones there meanwhile.
        frozen_predictions = sync.frozen_predictions
        return {
            "results": [_predictions(sync, frozen_predictions, task) for task in tasks],
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
        raise HTTPException(401, "the secret is missing or wrong", {"WWW-Authenticate": "Basic"})
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
    is_list = isinstance(tasks, list) and all(isinstance(task, dict) for task in tasks)
    if not is_list:
        raise HTTPException(400, "tasks must be a list of tasks")
    checked: list[dict[str, Any]] = tasks
    return checked


def _shows_secret(request: Request, secret: str) -> bool:
    shown = request.headers.get(SECRET_HEADER, "")
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    if not shown and scheme.lower() == "basic":
        try:
            shown = base64.b64decode(credentials).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return False
    return secrets.compare_digest(shown.encode(), secret.encode())


def _predictions(
    sync: StudioSync,
    frozen_predictions: FrozenPredictions,
    task: dict[str, Any],
) -> list[dict[str, Any]]:
    """A list of one prediction; empty for the hold-out, and for tasks that are not in the run."""
    task_id = task.get("id")
    data = task.get("data")
    if not isinstance(task_id, int) or not isinstance(data, dict):
        return []
    example = sync.task_mirror.example_of(task_id, data)
    probabilities = None if example is None else frozen_predictions.get(example)
    if probabilities is None:
        return []
    predicted = prediction(sync.task_mirror.config, frozen_predictions.task, probabilities)
    return [{"model_version": frozen_predictions.version, **predicted}]
