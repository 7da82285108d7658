"""What both wire formats of OpenAI share: errors, keys, the list of models."""
ERROR_TYPES = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "unsupported_country_region_territory"),
    404: ("invalid_request_error", "model_not_found"),
    413: ("invalid_request_error", "context_length_exceeded"),
    429: ("requests", "rate_limit_exceeded"),
    500: ("server_error", None),
    503: ("server_error", None),
    529: ("server_error", "server_is_overloaded"),
}
# OpenAI says with 503 what Anthropic says with 529.
STATUSES = {529: 503}


def error(status: int, message: str, param: str | None, request_id: str) -> dict:
    kind, code = ERROR_TYPES[status]
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def has_key(headers) -> bool:
    return headers.get("authorization", "").removeprefix("Bearer ").strip() not in ("", "wrong")


def models(names: list) -> dict:
    data = [{"id": name, "object": "model", "created": 1767225600, "owned_by": "script"} for name in names]
    return {"object": "list", "data": data}
