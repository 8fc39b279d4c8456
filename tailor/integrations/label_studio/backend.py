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

HEADER = "X-Tailor-Secret"
#: bytes of a request
LARGEST = 64 * 1024 * 1024


def make_app(sync: StudioSync, secret: str) -> FastAPI:
    """Every address but /health wants the secret: in a header of ours, or as the password of basic
    authentication.
    """
    app = FastAPI(title="TAILOR for Label Studio", docs_url=None, redoc_url=None, openapi_url=None)

    async def body(request: Request) -> dict[str, Any]:
        """The checked request's JSON object."""
        if not _is_known(request, secret):
            raise HTTPException(
                401, "the secret is missing or wrong", {"WWW-Authenticate": "Basic"}
            )
        content = bytearray()
        async for part in request.stream():
            content += part
            if len(content) > LARGEST:
                raise HTTPException(413, f"a request may have {LARGEST >> 20} MiB")
        try:
            found = json.loads(bytes(content) or b"{}")
        except (ValueError, RecursionError):
            raise HTTPException(400, "this is no JSON") from None
        if not isinstance(found, dict):
            raise HTTPException(400, "a JSON object is needed")
        return found

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "UP", "model_class": "TAILOR"}

    @app.post("/setup")
    async def setup(request: Request) -> dict[str, str]:
        # The request also carries an access token of the project's owner: it is not needed, and not
        # kept.
        number = str((await body(request)).get("project", "")).partition(".")[0]
        ours = sync.task_mirror.studio.project
        if number != str(ours):
            raise HTTPException(400, f"this backend serves project {ours}, not {number or 'none'}")
        return {"model_version": sync.forecast.version}

    @app.post("/predict")
    async def predict(request: Request) -> dict[str, Any]:
        tasks = (await body(request)).get("tasks")
        forecast = sync.forecast
        if not isinstance(tasks, list) or not all(isinstance(t, dict) for t in tasks):
            raise HTTPException(400, "tasks must be a list of tasks")
        results = [_predicted(sync, forecast, task) for task in tasks]
        return {"results": results, "model_version": forecast.version}

    @app.post("/webhook")
    async def webhook(request: Request) -> dict[str, str]:
        action = (await body(request)).get("action")
        if action == "START_TRAINING":
            sync.train()
        else:
            sync.wake()  # what exactly happened, the next pass finds out
        return {"status": "ok"}

    return app


def _predicted(
    sync: StudioSync, forecast: FrozenPredictions, task: dict[str, Any]
) -> list[dict[str, Any]]:
    """A list of one prediction, or of none: for the hold-out, and for what is not in the run."""
    number = task.get("id")
    data = task.get("data")
    example = (
        sync.task_mirror.example_of(number, data)
        if isinstance(number, int) and isinstance(data, dict)
        else None
    )
    probs = forecast(example) if example is not None else None
    if probs is None:
        return []
    return [
        {
            "model_version": forecast.version,
            **prediction(sync.task_mirror.config, forecast.task, probs),
        }
    ]


def _is_known(request: Request, secret: str) -> bool:
    given = request.headers.get(HEADER, "")
    kind, _, rest = request.headers.get("authorization", "").partition(" ")
    if not given and kind.lower() == "basic":
        try:
            given = base64.b64decode(rest).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return False
    return secrets.compare_digest(given.encode(), secret.encode())
