"""Requests that are only work per request: ApiVersions; one-record produces while ten thousand connections
idle beside them, and without those."""
import load_run
from row import Goal, Row, ratio
from rows.memory import idle_connections

TOPIC = 'bench'


def api_versions(server, bench):
    return load_run.small(bench.load('api-versions', server, in_flight=16))


def create(server, bench):
    server.create(TOPIC)


def delete(server, bench):
    server.delete(TOPIC)


def beside_idle(server, bench):
    def once():
        return load_run.small(bench.load('produce', server, topic=TOPIC, acks=1))

    alone = once()
    with idle_connections(bench, server, 1000 if bench.quick else 10000):
        r = once()
    return {**r, 'alone_rate': alone['rate'], 'alone_cpu_us': alone['cpu_us']}


ROWS = [
    Row('requests', 'api-versions', ['rate', 'cpu_us'], api_versions, goals=[
        Goal('at least 4 x Kafka\'s rate', ratio('rate'), '>=', 4),
        Goal('at most half of Kafka\'s CPU per request', ratio('cpu_us'), '<=', 0.5)]),
    Row('requests', '1x100-beside-10000-idle', ['rate', 'alone_rate', 'cpu_us', 'alone_cpu_us'], beside_idle,
        create, delete, servers=['Dohle', 'Kafka'], goals=[
            Goal('CPU per request by that without them', lambda f: f['Dohle']['cpu_us'] / f['Dohle']['alone_cpu_us'],
                 '<=', 1.05)])]
