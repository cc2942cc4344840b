"""Requests that are made from an API's own description, and what is asked of the answers."""

from collections.abc import Iterator
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

CHECKS = (
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
    checks.unsupported_method,
)


def described(url: str) -> Iterator[tuple[Any, GenerationMode]]:
    """The operations of the server at an address: with requests that follow the description and,
    where an operation has a body, with others."""
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    for found in schema.get_all_operations():
        operation = found.ok()
        yield operation, GenerationMode.POSITIVE
        if operation.body:
            yield operation, GenerationMode.NEGATIVE


def try_requests(operation: Any, mode: GenerationMode, examples: int, number: int = 0) -> None:
    """Send so many requests, others for each number; one that breaks the description raises."""

    @seed(number)
    @given(operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def answer(case) -> None:
        case.call_and_validate(checks=CHECKS)

    answer()
