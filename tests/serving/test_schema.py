"""The API keeps to its own description, whatever is sent."""

from tests.helpers.schema_requests import described, try_requests
from tests.helpers.speech_server import running

EXAMPLES = 12  # for each operation, of requests that follow the description and of others


def test_no_request_breaks_the_description(tmp_path):
    tried = []
    with running(tmp_path, max_text=300) as server:
        for operation, mode in described(server.url):
            tried.append(operation.label)
            try_requests(operation, mode, EXAMPLES)
        assert len(server.service.queue) == 0
    assert {"POST /v1/audio/speech", "POST /v1/voices", "GET /metrics"} <= set(tried)
