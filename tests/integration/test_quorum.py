"""The metadata quorum, asked on a controller's listener as another node would."""
import socket
import uuid

import batches
import broker
import protocol

METADATA = uuid.UUID(int=1)
NAME = '__cluster_metadata'
STRANGER, ITS_DISK = 99, uuid.UUID(int=0x99)
LEADER_CHANGE = b'\0\0\0\2'


class Quorum(broker.BrokerTest):
    settings = {'listeners': 'PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0',
                'controller.listener.names': 'CONTROLLER'}

    def setUp(self):
        super().setUp()
        self.node = protocol.Client(self.broker.ports['CONTROLLER'])
        self.quorum = self.describe(self.node)

    def tearDown(self):
        self.node.close()
        super().tearDown()

    def describe(self, c):
        answer = c.call('DescribeQuorum', 2, Topics=[
            {'TopicName': NAME, 'Partitions': [{'PartitionIndex': 0}]}])
        return answer['Topics'][0]['Partitions'][0]

    def fetch(self, offset, last_epoch, epoch=None, wait_ms=0, version=18, **more):
        epoch = self.quorum['LeaderEpoch'] if epoch is None else epoch
        return self.node.call('Fetch', version, MaxWaitMs=wait_ms, MaxBytes=1 << 20,
                              ReplicaState={'ReplicaId': STRANGER, 'ReplicaEpoch': -1}, Topics=[
                                  {'TopicId': METADATA, 'Partitions': [
                                      {'Partition': 0, 'CurrentLeaderEpoch': epoch,
                                       'FetchOffset': offset, 'LastFetchedEpoch': last_epoch,
                                       'ReplicaDirectoryId': ITS_DISK}]}], **more)

    def part(self, answer):
        self.assertEqual(answer['ErrorCode'], 0)
        return answer['Responses'][0]['Partitions'][0]

    def vote(self, epoch, pre_vote):
        answer = self.node.call('Vote', 2, Topics=[{'TopicName': NAME, 'Partitions': [
            {'PartitionIndex': 0, 'ReplicaEpoch': epoch, 'ReplicaId': STRANGER,
             'ReplicaDirectoryId': ITS_DISK, 'LastOffsetEpoch': epoch - 1, 'LastOffset': 1 << 40,
             'PreVote': pre_vote}]}])
        return answer['Topics'][0]['Partitions'][0]

    def test_an_observer_follows(self):
        p = self.part(self.fetch(0, 0))
        self.assertEqual((p['ErrorCode'], p['CurrentLeader']['LeaderId']), (0, 1))
        first = batches.read(p['Records'])[0]
        self.assertEqual(first.records[0].key, LEADER_CHANGE)
        self.assertGreater(p['HighWatermark'], 0)
        end = self.describe(self.node)['CurrentVoters'][0]['LogEndOffset']
        answer = self.fetch(end, self.quorum['LeaderEpoch'], wait_ms=100)
        self.assertEqual(self.part(answer)['HighWatermark'], end)
        self.assertEqual(answer['NodeEndpoints'][0]['Port'], self.broker.ports['CONTROLLER'])
        with protocol.Client(self.broker.ports['PLAINTEXT']) as c:
            seen = self.describe(c)['Observers']
        self.assertEqual([(o['ReplicaId'], o['LogEndOffset']) for o in seen], [(STRANGER, end)])

    def test_what_is_wrong_is_told(self):
        epoch = self.quorum['LeaderEpoch']
        self.assertEqual(self.part(self.fetch(0, 0, epoch - 1))['ErrorCode'], 74)
        self.assertEqual(self.part(self.fetch(0, 0, epoch + 1))['ErrorCode'], 75)
        self.assertEqual(self.fetch(0, 0, ClusterId='other')['ErrorCode'], 104)
        past = self.part(self.fetch(1 << 40, epoch))
        self.assertEqual(past['DivergingEpoch']['Epoch'], epoch)
        answer = self.node.call('FetchSnapshot', 1, MaxBytes=100, Topics=[
            {'Name': NAME, 'Partitions': [{'Partition': 0, 'CurrentLeaderEpoch': epoch,
                                           'SnapshotId': {'EndOffset': 0, 'Epoch': 0},
                                           'Position': 0}]}])
        self.assertEqual(answer['Topics'][0]['Partitions'][0]['ErrorCode'], 98)
        self.assertEqual(self.vote(epoch - 1, False)['ErrorCode'], 42)  # its log is said to be newer
        p = self.vote(epoch, True)
        self.assertEqual((p['ErrorCode'], p['VoteGranted'], p['LeaderEpoch']), (0, False, epoch))

    def test_a_stranger_raises_the_epoch_and_is_survived(self):
        epoch = self.quorum['LeaderEpoch'] + 5
        p = self.vote(epoch, False)
        self.assertEqual((p['ErrorCode'], p['LeaderEpoch'], p['LeaderId']), (0, epoch, -1))
        self.poll(lambda: self.describe(self.node)['HighWatermark'] > 0)
        self.assertGreater(self.describe(self.node)['LeaderEpoch'], epoch)
        self.served_on()

    def test_voters_join_and_leave(self):
        voter = self.quorum['CurrentVoters'][0]
        port = self.broker.ports['CONTROLLER']
        listeners = [{'Name': 'CONTROLLER', 'Host': 'elsewhere', 'Port': port}]
        answer = self.node.call('UpdateRaftVoter', 0, ClusterId=None, CurrentLeaderEpoch=self.quorum['LeaderEpoch'],
                                VoterId=1, VoterDirectoryId=voter['ReplicaDirectoryId'],
                                Listeners=listeners,
                                KRaftVersionFeature={'MinSupportedVersion': 0,
                                                     'MaxSupportedVersion': 1})
        self.assertEqual(answer['ErrorCode'], 0)
        remove = lambda: self.node.call('RemoveRaftVoter', 0, ClusterId=None, VoterId=1,
                                        VoterDirectoryId=voter['ReplicaDirectoryId'])['ErrorCode']
        self.poll(lambda: remove() != 7)  # until the change before it is committed
        self.assertEqual(remove(), 127)  # the last one stays
        with socket.create_server(('127.0.0.1', 0)) as gone:
            nobody = gone.getsockname()[1]
        answer = self.node.call('AddRaftVoter', 1, ClusterId=None, TimeoutMs=5000, VoterId=STRANGER,
                                VoterDirectoryId=ITS_DISK, AckWhenCommitted=True, Listeners=[
                                    {'Name': 'CONTROLLER', 'Host': '127.0.0.1', 'Port': nobody}])
        self.assertEqual(answer['ErrorCode'], 7)  # it does not answer
        self.assertEqual(answer['ErrorMessage'], 'REQUEST_TIMED_OUT')
        self.served_on()


if __name__ == '__main__':
    broker.main()
