"""What is wrong with a request, in our own words instead of the validator's."""

from __future__ import annotations

from typing import Any

#: by the validator's kind of error; what stands in braces is its limit
MESSAGES = {
    "missing": "it is missing",
    "int_parsing": "a whole number is needed",
    "int_type": "a whole number is needed",
    "int_from_float": "a whole number is needed",
    "int_parsing_size": "the number is too large",
    "bool_parsing": "true or false is needed",
    "bool_type": "true or false is needed",
    "string_type": "a text is needed",
    "list_type": "a list is needed",
    "dict_type": "an object with named values is needed",
    "model_attributes_type": "an object with named values is needed",
    "model_type": "an object with named values is needed",
    "greater_than_equal": "it must be at least {ge}",
    "less_than_equal": "it must be at most {le}",
    "string_too_short": "it is empty",
    "string_too_long": "it may have {max_length} characters",
    "too_long": "it may have {max_length} entries",
    "literal_error": "it must be {expected}",
    "extra_forbidden": "nothing of this name is expected",
    "json_invalid": "the request is not valid JSON",
    "value_error": "{error}",  # of our own validators
}


def validation_message(error: dict[str, Any]) -> str:
    """One of pydantic's errors in our words: where it is, and what is needed."""
    kind = error["type"]
    template = MESSAGES.get(kind, "it can't be used")
    limits = _Limits(error.get("ctx") or {})
    message = template.format_map(limits)
    if kind == "json_invalid":
        return message
    # The first part says where the value came from: "body", "query", "path".
    location = error["loc"][1:]
    names = []
    for part in location:
        if isinstance(part, str):
            names.append(part)
    if not names:
        return message
    field = ".".join(names)
    return f"{field}: {message}"


class _Limits(dict[str, Any]):
    """The values of a template; one that is missing is no error."""

    def __missing__(self, key: str) -> str:
        return "something else"
