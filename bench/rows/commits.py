"""OffsetCommit: four groups without members, each committing one partition at a time."""
import time

import load_run
from row import Row
from servers.server import START_S, ServerFailed

TOPIC, GROUPS = 'bench', ['bench-%d' % i for i in range(4)]


def commits(c, group):
    answer = c.ask('OffsetCommit', 9, GroupId=group, GenerationIdOrMemberEpoch=-1, MemberId='', Topics=[
        {'Name': TOPIC, 'Partitions': [{'PartitionIndex': 0, 'CommittedOffset': 0, 'CommittedMetadata': ''}]}])
    return answer['Topics'][0]['Partitions'][0]['ErrorCode'] == 0


def before(server, bench):
    """The coordinators are there."""
    server.create(TOPIC)
    end = time.monotonic() + START_S
    with server.connect() as c:
        for group in GROUPS:
            while not commits(c, group):
                if time.monotonic() > end:
                    raise ServerFailed('%s: no coordinator of %s' % (server.name, group))
                c.ask('FindCoordinator', 4, KeyType=0, CoordinatorKeys=[group])
                time.sleep(0.05)


def run(server, bench):
    return load_run.small(bench.load('commit', server, topic=TOPIC, in_flight=4))


def after(server, bench):
    server.delete(TOPIC)


ROWS = [Row('commits', 'offset-commit', ['rate', 'cpu_us'], run, before, after, servers=['Dohle', 'Kafka'])]
