"""Latency of one-record produces at half of Kafka's highest rate, as a client sees it: from the moment a request
should have been sent."""
import statistics

import load_run
from row import Goal, Row, ratio

TOPIC = 'bench'


def row(acks):
    known = {}

    def before(server, bench):
        server.create(TOPIC)

    def rate(bench):
        """Half of what Kafka does, measured once, now."""
        if 'rate' not in known:
            kafka = bench.server('Kafka')
            most = [load_run.small(bench.load('produce', kafka, topic=TOPIC, acks=acks))['rate'] for _ in range(3)]
            known['rate'] = statistics.median(most) / 2
        return known['rate']

    def run(server, bench):
        at = rate(bench)
        r = bench.load('produce', server, topic=TOPIC, acks=acks, rate=at)
        return {'at_rate': at, **load_run.small(r), **load_run.latency(r)}

    def after(server, bench):
        server.delete(TOPIC)

    return Row('latency', '1x100-acks=%s' % ('all' if acks < 0 else acks),
               ['at_rate', 'p50_us', 'p99_us', 'p999_us', 'cpu_us'], run, before, after,
               [Goal('p99 at most half of Kafka\'s', ratio('p99_us'), '<=', 0.5)])


ROWS = [row(1), row(-1)]
