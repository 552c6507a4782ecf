"""flush.messages=1: every produce is on the disk before it is acknowledged. The limit does one fdatasync for
all that came while the last one ran."""
import load_run
from row import Goal, Row, ratio

TOPIC = 'bench'


def row(producers):
    def before(server, bench):
        server.create(TOPIC, flush_messages=1)

    def run(server, bench):
        r = bench.load('produce', server, topic=TOPIC, connections=producers, in_flight=1, acks=1)
        return {**load_run.small(r), **load_run.latency(r)}

    def after(server, bench):
        server.delete(TOPIC)

    goals = [Goal('at least 0.7 of group commit over bare fdatasync', ratio('rate', 'limit'), '>=', 0.7)]
    return Row('sync', '%d-producers' % producers, ['rate', 'cpu_us', 'p50_us', 'p99_us'], run, before, after,
               goals if producers == 64 else [])


ROWS = [row(n) for n in (1, 8, 64)]
