"""Requests that are only work per request: ApiVersions."""
import load_run
from row import Goal, Row, ratio


def api_versions(server, bench):
    return load_run.small(bench.load('api-versions', server, in_flight=16))


ROWS = [Row('requests', 'api-versions', ['rate', 'cpu_us'], api_versions, goals=[
    Goal('at least 4 x Kafka\'s rate', ratio('rate'), '>=', 4),
    Goal('at most half of Kafka\'s CPU per request', ratio('cpu_us'), '<=', 0.5)])]
