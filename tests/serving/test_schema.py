"""The API keeps to its own description, whatever is sent."""

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from tests.helpers.speech_server import running

EXAMPLES = 12  # for each operation, of requests that follow the description and of others
CHECKS = (
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
    checks.unsupported_method,
)


def test_no_request_breaks_the_description(tmp_path):
    tried = []
    with running(tmp_path, max_text=300) as server:
        schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
        for found in schema.get_all_operations():
            operation = found.ok()
            tried.append(operation.label)
            try_requests(operation, GenerationMode.POSITIVE)
            if operation.body:
                try_requests(operation, GenerationMode.NEGATIVE)
        assert len(server.service.queue) == 0
    assert {"POST /v1/audio/speech", "POST /v1/voices", "GET /metrics"} <= set(tried)


def try_requests(operation, mode: GenerationMode) -> None:
    @given(operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def answer(case) -> None:
        case.call_and_validate(checks=CHECKS)

    answer()
