"""Requests to a Label Studio server: authorization, and errors in words that show no token."""

from __future__ import annotations

import json
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tailor.common.distribution import pip_install
from tailor.errors import InputError, TailorError

if TYPE_CHECKING:
    import httpx

#: Seconds to connect, and to answer: a large batch of tasks may take Label Studio a while.
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 300.0
#: HTTP statuses after which the same request may succeed later.
TEMPORARY_STATUSES = (429, 500, 502, 503, 504)
#: Characters of Label Studio's own words in a message.
LONGEST_REASON = 500


class StudioError(TailorError):
    """Label Studio refused something; `status` is HTTP's, 0 where there was none."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class StudioUnreachable(StudioError):
    """Label Studio does not answer, or is in trouble: it is worth trying again."""


def import_httpx() -> Any:
    """httpx, which only the extra `label-studio` installs; InputError where it is missing."""
    try:
        import httpx
    except ImportError:
        raise InputError(
            f"Label Studio is reached with httpx: {pip_install('label-studio')}"
        ) from None
    return httpx


class StudioTransport:
    """Calls Label Studio's HTTP API.

    url    Label Studio's address
    token  a personal access token, or a legacy one where the organization allows them. It goes to
           that server alone, and into no message

    Raises InputError where either can't be one.
    """

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise InputError(
                f"url is {url!r}: give Label Studio's address, such as http://localhost:8080"
            )
        if not token or not token.isascii() or not token.isprintable():
            raise InputError(
                "the token is empty or holds odd characters: copy it again from Label Studio"
            )
        library = import_httpx()
        self.url = url.rstrip("/")
        self._token = token
        # A personal token is a JWT, exchanged for an access token that lasts minutes.
        self._is_personal = token.count(".") == 2
        self._access_token = ""
        self.timeout: httpx.Timeout = library.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
        self._client: httpx.Client = library.Client(base_url=self.url, timeout=self.timeout)
        #: Label Studio's clock when it answered last, in seconds since 1970.
        self.server_time = 0.0

    def close(self) -> None:
        self._client.close()

    def call(
        self,
        method: str,
        path: str,
        **request: Any,
    ) -> Any:
        """The JSON that Label Studio answers; None for an empty answer.

        request  what httpx.Client.request takes besides: params, json, files

        Raises StudioUnreachable where it is worth trying again, InputError where the user has to
        change something (the token, the address), and StudioError where Label Studio refuses the
        request.
        """
        response = self._send(method, path, **request)
        if response.status_code == 401 and self._is_personal:  # the access token has run out
            self._access_token = ""
            response = self._send(method, path, **request)
        if "date" in response.headers:
            self.server_time = parsedate_to_datetime(response.headers["date"]).timestamp()
        if not response.is_success:
            raise self._refusal(response, f"{method} {path}")
        if not response.content:
            return None
        try:
            return response.json()
        except ValueError:
            raise StudioError(
                f"{self.url} does not answer like Label Studio: is the address right?"
            ) from None

    def authorization(self) -> dict[str, str]:
        """The header that shows the token, for requests to Label Studio alone."""
        if not self._is_personal:
            return {"Authorization": f"Token {self._token}"}
        if not self._access_token:
            self._access_token = self._new_access_token()
        return {"Authorization": f"Bearer {self._access_token}"}

    def _new_access_token(self) -> str:
        path = "/api/token/refresh/"
        try:
            response = self._client.post(path, json={"refresh": self._token})
        except import_httpx().HTTPError as error:
            raise self._unreachable(error) from None
        if not response.is_success:
            raise self._refusal(response, f"POST {path}")
        access_token: str = response.json()["access"]
        return access_token

    def _send(
        self,
        method: str,
        path: str,
        **request: Any,
    ) -> httpx.Response:
        try:
            return self._client.request(
                method,
                path,
                headers=self.authorization(),
                **request,
            )
        except import_httpx().HTTPError as error:
            raise self._unreachable(error) from None

    def _unreachable(self, error: Exception) -> StudioUnreachable:
        reason = self._without_secrets(str(error))
        return StudioUnreachable(f"Label Studio at {self.url} can't be reached: {reason}")

    def _refusal(self, response: httpx.Response, request: str) -> TailorError:
        status = response.status_code
        if status == 401:
            return InputError(
                f"Label Studio at {self.url} does not accept the token: {self._reason(response)} "
                "Make one there under Account & Settings"
            )
        if status in TEMPORARY_STATUSES:
            return StudioUnreachable(
                f"Label Studio at {self.url} is in trouble ({status}) with {request}"
            )
        if 300 <= status < 400:
            location = response.headers.get("location", "elsewhere")
            return InputError(
                f"{self.url} sends us on to {location}: give the address that answers by itself"
            )
        return StudioError(
            f"Label Studio refused {request} ({status}): {self._reason(response)}", status
        )

    def _reason(self, response: httpx.Response) -> str:
        try:
            body = response.json()
            details = body.get("validation_errors") or body.get("detail")
            reason = json.dumps(details or body)
        except (ValueError, AttributeError):  # no JSON, or no object
            reason = response.reason_phrase
        return self._without_secrets(reason)[:LONGEST_REASON]

    def _without_secrets(self, text: str) -> str:
        for secret in (self._token, self._access_token):
            if secret:
                text = text.replace(secret, "***")
        return text
