"""The tools that users run: kafka-producer-perf-test and kafka-consumer-perf-test of Apache Kafka, and
librdkafka's rdkafka_performance. They take more CPU than either broker, so the rate is mostly theirs; the
broker's CPU per million records is what is left to compare."""
import os
import re
import shlex
import subprocess

import load_run
from row import Goal, Row, ratio
from servers.process import cpu_seconds
from servers.server import HERE, ROOT

TOPIC = 'bench'
RECORD_BYTES = 100
BROKERS = ['Dohle', 'Kafka']
EXAMPLE = '/usr/share/doc/librdkafka-dev/examples/rdkafka_performance.c'


def records(bench):
    return 100000 if bench.quick else 2000000


def run_tool(server, command, pattern):
    """What the tool says its rate is, and the broker's CPU time meanwhile."""
    before = cpu_seconds(server.pid)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)
    text = done.stdout.decode(errors='replace')
    found = re.findall(pattern, text)
    if done.returncode != 0 or not found:
        raise load_run.LoadFailed('%s: %s\n%s' % (server.name, shlex.join(command), text[-2000:]))
    return float(found[-1]), cpu_seconds(server.pid) - before


def figures(bench, rate, cpu_s):
    n = records(bench)
    return {'records_s': rate, 'mb_s': rate * RECORD_BYTES / 1e6, 'cpu_s_m': cpu_s / n * 1e6}


def java(bench, name, *arguments):
    return bench.server('Kafka').java(['-Xmx512M'], 'org.apache.kafka.tools.' + name, *arguments)


def java_producer(server, bench):
    return figures(bench, *run_tool(server, java(
        bench, 'ProducerPerformance', '--topic', TOPIC, '--num-records', str(records(bench)), '--record-size',
        str(RECORD_BYTES), '--throughput', '-1', '--bootstrap-server', '127.0.0.1:%d' % server.port),
        r'records sent, ([\d.]+) records/sec'))


def java_consumer(server, bench):
    """The rate while it fetches, without its wait for the group."""
    return figures(bench, *run_tool(server, java(
        bench, 'ConsumerPerformance', '--topic', TOPIC, '--num-records', str(records(bench)), '--hide-header',
        '--bootstrap-server', '127.0.0.1:%d' % server.port), r', ([\d.]+)\s*$'))


def rdkafka(bench):
    """Debian's copy of the example, built once."""
    directory = os.path.join(ROOT, 'build', 'bench')
    program, shim = os.path.join(directory, 'rdkafka_performance'), os.path.join(HERE, 'rdkafka')
    if not os.path.exists(program):
        # It includes ../src/rd.h.
        os.makedirs(os.path.join(directory, 'rdkafka', 'examples'), exist_ok=True)
        source = os.path.join(directory, 'rdkafka', 'examples', 'rdkafka_performance.c')
        with open(EXAMPLE, 'rb') as f, open(source, 'wb') as g:
            g.write(f.read())
        link = os.path.join(directory, 'rdkafka', 'src')
        if not os.path.islink(link):
            os.symlink(shim, link)
        subprocess.run(['cc', '-O2', '-w', '-D_GNU_SOURCE', '-I', shim, '-I/usr/include/librdkafka', '-o', program,
                        source, '-lrdkafka', '-lz', '-lpthread'], check=True)
    return program


def rdkafka_run(server, bench, *arguments):
    return figures(bench, *run_tool(server, [rdkafka(bench), '-b', '127.0.0.1:%d' % server.port, '-t', TOPIC, '-c',
                                             str(records(bench)), '-q', *arguments], r'(\d+) msgs/s'))


def rdkafka_producer(server, bench):
    return rdkafka_run(server, bench, '-P', '-s', str(RECORD_BYTES), '-p', '0')


def rdkafka_consumer(server, bench):
    return rdkafka_run(server, bench, '-C', '-p', '0', '-o', 'beginning')


def create(server, bench):
    server.create(TOPIC)


def delete(server, bench):
    server.delete(TOPIC)


def filled(server, bench):
    """As many records as are read, a hundred per batch."""
    server.create(TOPIC)
    bench.load('produce', server, topic=TOPIC, records=100, record_bytes=RECORD_BYTES, warm=0, run=120,
               requests=records(bench) // 100)


def row(name, run, before):
    return Row('clients', name, ['records_s', 'mb_s', 'cpu_s_m'], run, before, delete, servers=BROKERS, goals=[
        Goal('no slower than Kafka', ratio('records_s'), '>=', 0.95),
        Goal('at most half of Kafka\'s CPU', ratio('cpu_s_m'), '<=', 0.5)])


ROWS = [row('java-producer', java_producer, create), row('java-consumer', java_consumer, filled),
        row('librdkafka-producer', rdkafka_producer, create), row('librdkafka-consumer', rdkafka_consumer, filled)]
