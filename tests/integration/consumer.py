"""A consumer of a group in a thread of its own, as clients have it: it finds the coordinator, joins,
reads what it is assigned from the leaders and commits, and when one of them moves it goes on with the
next, as the member that it is."""
import threading
import time

import calls
import kafka

UNKNOWN_MEMBER, ILLEGAL_GENERATION, REBALANCING, ID_REQUIRED = 25, 22, 27, 79
SESSION_MS, REBALANCE_MS = 10000, 10000
PAUSE_S = 0.02


class Moved(Exception):
    """The coordinator has to be found again."""


class Consumer(threading.Thread):
    def __init__(self, cluster, group, topic):
        super().__init__(daemon=True)
        self.cluster, self.group, self.topic = cluster, group, topic
        self.id, self.generation = '', -1
        self.coordinator = None  # a node's id
        self.rested = 0.0  # when it last heard that its generation goes on
        self.positions = {}  # partition -> the next offset
        self.read = []  # (partition, offset, value)
        self.acked = {}  # partition -> what was committed and answered
        self.generations = set()
        self.ending = threading.Event()
        self.failed = None

    def end(self):
        self.ending.set()
        self.join()

    def run(self):
        try:
            while not self.ending.wait(PAUSE_S):
                try:
                    self.find()
                except (OSError, kafka.Closed, Moved):
                    self.coordinator = None
        except Exception as e:
            self.failed = e
            raise

    def find(self):
        for node in self.cluster.running():
            with node.connect(timeout_s=10) as c:
                found = c.ask('FindCoordinator', 4, CoordinatorKeys=[self.group])['Coordinators'][0]
            if found['ErrorCode'] == 0:
                with kafka.Connection(found['Port'], timeout_s=20) as c:
                    self.coordinator = found['NodeId']
                    self.be_member(c)
            return

    def be_member(self, c):
        while not self.ending.wait(PAUSE_S):
            if self.generation < 0:
                self.be_in_generation(c)
                continue
            self.learn(c.ask('Heartbeat', 4, **self.me())['ErrorCode'])
            if self.generation >= 0:
                self.rested = time.monotonic()
                self.consume(c)

    def me(self):
        return dict(GroupId=self.group, MemberId=self.id, GenerationId=self.generation)

    def learn(self, error):
        """True: nothing is wrong."""
        if error == UNKNOWN_MEMBER:
            self.id = ''
        if error in (UNKNOWN_MEMBER, ILLEGAL_GENERATION, REBALANCING):
            self.generation = -1
        elif error in calls.COORDINATOR_NOT_READY:
            raise Moved
        elif error != 0:
            raise AssertionError('error %d' % error)
        return error == 0

    # -------------------------------------------------------------- joining

    def be_in_generation(self, c):
        joined = c.ask('JoinGroup', 9, GroupId=self.group, MemberId=self.id,
                       SessionTimeoutMs=SESSION_MS, RebalanceTimeoutMs=REBALANCE_MS,
                       ProtocolType='consumer', Protocols=[{'Name': 'range', 'Metadata': b''}])
        if joined['ErrorCode'] == ID_REQUIRED:
            self.id = joined['MemberId']
            return
        if not self.learn(joined['ErrorCode']):
            return
        self.id, self.generation = joined['MemberId'], joined['GenerationId']
        assigned = self.sync(c, joined)
        if assigned is not None:
            self.take(c, assigned)

    def sync(self, c, joined):
        """The partitions; None: there is another rebalance."""
        partitions = calls.metadata_of(c, self.topic)['Partitions']
        members = sorted(m['MemberId'] for m in joined['Members'])
        given = {m: bytes(sorted(p['PartitionIndex'] for p in partitions
                                 if p['PartitionIndex'] % len(members) == i))
                 for i, m in enumerate(members)}
        synced = c.ask('SyncGroup', 5, ProtocolType='consumer', ProtocolName='range',
                       Assignments=[{'MemberId': m, 'Assignment': a} for m, a in given.items()],
                       **self.me())
        return list(synced['Assignment']) if self.learn(synced['ErrorCode']) else None

    def take(self, c, assigned):
        answer = c.ask('OffsetFetch', 7, GroupId=self.group, RequireStable=True, Topics=[
            {'Name': self.topic, 'PartitionIndexes': assigned}])
        if not self.learn(answer['ErrorCode']):
            return
        self.positions = {p['PartitionIndex']: max(p['CommittedOffset'], 0)
                          for t in answer['Topics'] for p in t['Partitions']}
        self.generations.add(self.generation)

    # -------------------------------------------------------------- consuming

    def consume(self, c):
        for partition, offset in list(self.positions.items()):
            found = self.fetch(partition, offset)
            if found:
                self.read += [(partition, *record) for record in found]
                self.positions[partition] = found[-1][0] + 1
                self.commit(c, partition, found[-1][0] + 1)
            if self.generation < 0:
                return

    def fetch(self, partition, offset):
        """[(offset, value)]; none where the leader moves."""
        node = self.cluster.leader(self.topic, partition)
        if node is None:
            return []
        try:
            with node.connect(timeout_s=10) as c:
                answer = calls.fetch(c, self.topic, partition, offset, MaxWaitMs=0)
        except (OSError, kafka.Closed):
            return []
        records = kafka.read_batches(answer['Records'] or b'') if answer['ErrorCode'] == 0 else []
        return [r for r in records if r[0] >= offset]

    def commit(self, c, partition, offset):
        answer = c.ask('OffsetCommit', 9, GroupId=self.group, MemberId=self.id,
                       GenerationIdOrMemberEpoch=self.generation, Topics=[
                           {'Name': self.topic, 'Partitions': [
                               {'PartitionIndex': partition, 'CommittedOffset': offset,
                                'CommittedMetadata': ''}]}])
        if self.learn(answer['Topics'][0]['Partitions'][0]['ErrorCode']):
            self.acked[partition] = offset
