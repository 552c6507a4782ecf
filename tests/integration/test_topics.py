"""CreateTopics and DeleteTopics: cases AD-01, AD-05."""
import os
import time
import uuid

import batches
import broker
import calls

NOW = int(time.time() * 1000)
ONE = batches.build([(NOW, b'k', b'v')])


class Create(broker.BrokerTest):
    settings = {'num.partitions': '3', 'log.retention.ms': '777000'}

    def test_defaults_are_told(self):
        """AD-01: -1 is the broker's; from v5 on the answer has the counts and configurations."""
        with self.broker.connect() as c:
            for version in range(4, 8):
                name = 'v%d' % version
                answer = calls.create(c, name, -1, {'segment.bytes': 2 << 20}, version, -1)
                self.assertEqual(answer['ErrorCode'], 0)
                if version >= 5:
                    self.assertEqual((answer['NumPartitions'], answer['ReplicationFactor']), (3, 1))
                    configs = {k['Name']: k for k in answer['Configs']}
                    self.assertEqual(configs['segment.bytes']['Value'], str(2 << 20))
                    self.assertEqual(configs['segment.bytes']['ConfigSource'], 1)
                    self.assertEqual(configs['retention.ms']['Value'], '777000')
                    self.assertEqual(configs['retention.ms']['ConfigSource'], 4)
                    self.assertEqual(configs['cleanup.policy']['ConfigSource'], 5)
                topic = calls.metadata(c, [name])['Topics'][0]
                if version >= 7:
                    self.assertEqual(answer['TopicId'], topic['TopicId'])
                self.assertEqual(len(topic['Partitions']), 3)

    def test_no_time(self):
        """No time is an error, of which Kafka has no text; nothing is looked at."""
        with self.broker.connect() as c:
            for version in range(2, 8):
                answer = c.ask('CreateTopics', version, TimeoutMs=0, Topics=[
                    {'Name': 'late', 'NumPartitions': 1, 'ReplicationFactor': 1}])['Topics'][0]
                self.assertEqual((answer['ErrorCode'], answer['ErrorMessage']), (7, None))

    def test_errors(self):
        """AD-01: each its code, whether it is created or only validated; nothing is made."""
        assigned = {'Assignments': [{'PartitionIndex': 0, 'BrokerIds': [1]}]}
        cases = {
            'replicas': (38, {'replication': 3}),
            'no replicas': (38, {'replication': 0}),
            'no partitions': (37, {'partitions': 0}),
            'partitions of -5': (37, {'partitions': -5}),
            'exists': (36, {'name': 'there'}),
            'collides': (17, {'name': 'th_re.x'}),
            'counts and an assignment': (42, {'topic': assigned}),
            'assignment to nobody': (39, {'partitions': -1, 'replication': -1, 'topic': {
                'Assignments': [{'PartitionIndex': 0, 'BrokerIds': [77]}]}}),
            'assignment from 1 on': (39, {'partitions': -1, 'replication': -1, 'topic': {
                'Assignments': [{'PartitionIndex': 1, 'BrokerIds': [1]}]}}),
            'no such key': (40, {'configs': {'no.such.key': '1'}}),
            'no such value': (40, {'configs': {'cleanup.policy': 'burn'}}),
            'a value out of bounds': (40, {'configs': {'segment.bytes': '1'}}),
            'null value': (40, {'topic': {'Configs': [{'Name': 'retention.ms', 'Value': None}]}}),
        }
        with self.broker.connect() as c:
            calls.ready(c, 'there')
            calls.ready(c, 'th.re_x')
            for case, (error, wrong) in cases.items():
                for validate in (False, True):
                    wrong = dict(wrong)
                    name = wrong.pop('name', 'new')
                    answer = calls.create(c, name, **wrong, ValidateOnly=validate)
                    self.assertEqual(answer['ErrorCode'], error, (case, answer))
                    self.assertTrue(answer['ErrorMessage'], case)
                    wrong['name'] = name
            answer = calls.create(c, 'new', ValidateOnly=True)
            self.assertEqual((answer['ErrorCode'], answer['NumPartitions']), (0, 1))
            self.assertEqual(sorted(calls.topic_names(c)), ['th.re_x', 'there'])

    def test_each_alone(self):
        """AD-01: of several topics the right ones are made; one named twice is not."""
        entry = {'NumPartitions': 1, 'ReplicationFactor': 1}
        with self.broker.connect() as c:
            answer = c.ask('CreateTopics', 7, TimeoutMs=10000, Topics=[
                {'Name': 'good', **entry}, {'Name': 'bad/', **entry}, {'Name': 'twice', **entry},
                {'Name': 'twice', **entry}, {'Name': 'good2', **entry}])
            self.assertEqual({t['Name']: t['ErrorCode'] for t in answer['Topics']},
                             {'good': 0, 'bad/': 17, 'twice': 42, 'good2': 0})
            self.assertEqual(len(answer['Topics']), 4)
            self.assertEqual(sorted(calls.topic_names(c)), ['good', 'good2'])


class Delete(broker.BrokerTest):
    def delete(self, c, version=6, **topic):
        if version < 6:
            answer = c.ask('DeleteTopics', version, TopicNames=[topic['Name']], TimeoutMs=10000)
        else:
            answer = c.ask('DeleteTopics', version, Topics=[topic], TimeoutMs=10000)
        return answer['Responses'][0]

    def test_by_name_and_by_id(self):
        with self.broker.connect() as c:
            for version in range(1, 7):
                calls.ready(c, 't')
                self.assertEqual(self.delete(c, version, Name='t')['ErrorCode'], 0)
                self.assertEqual(self.delete(c, version, Name='t')['ErrorCode'], 3)
            calls.ready(c, 't')
            topic_id = calls.metadata(c, ['t'])['Topics'][0]['TopicId']
            answer = self.delete(c, Name=None, TopicId=topic_id)
            self.assertEqual((answer['ErrorCode'], answer['Name'], answer['TopicId']),
                             (0, 't', topic_id))
            for unknown in (topic_id, uuid.UUID(int=77)):
                answer = self.delete(c, Name=None, TopicId=unknown)
                self.assertEqual((answer['ErrorCode'], answer['Name']), (100, None))
            calls.ready(c, 't')
            topic_id = calls.metadata(c, ['t'])['Topics'][0]['TopicId']
            self.assertEqual(self.delete(c, Name='t', TopicId=topic_id)['ErrorCode'], 42)
            self.assertEqual(calls.topic_names(c), ['t'])

    def test_made_again_at_once(self):
        """AD-05: never error 36; a new id, offsets from 0, nothing of the old log, its producers
        forgotten, its files gone; who fetches it by the old id is told so."""
        ids = set()
        with self.broker.connect() as c, self.broker.connect() as reader:
            for i in range(50):
                answer = calls.create(c, 't', 2)
                self.assertEqual(answer['ErrorCode'], 0)
                ids.add(answer['TopicId'])
                self.assertEqual([p['LeaderId'] for p in calls.metadata(c, ['t'])['Topics'][0]
                                  ['Partitions']], [1, 1])
                for partition in range(2):
                    self.assertEqual(calls.end_of(c, 't', partition), 0)
                    data = batches.build([(NOW, b'k', b'%d' % i)], producer=(5, 0, i))
                    answer = calls.produce(c, 't', partition, data)
                    self.assertEqual((answer['ErrorCode'], answer['BaseOffset']), (0, 0))
                found = batches.read(calls.fetch(c, 't', 0, 0)['Records'])
                self.assertEqual([r.value for b in found for r in b.records], [b'%d' % i])
                waiting = reader.post('Fetch', 12, MaxWaitMs=60000, MinBytes=1, MaxBytes=1 << 20,
                                      Topics=[{'Topic': 't', 'Partitions': [
                                          {'Partition': 0, 'FetchOffset': 1,
                                           'PartitionMaxBytes': 1 << 20}]}])
                self.assertEqual(self.delete(c, Name='t')['ErrorCode'], 0)
                self.assertEqual(reader.answer()[0], waiting)
                self.assertNotIn('t', calls.topic_names(c))
            self.assertEqual(len(ids), 50)
            old = c.ask('Fetch', 13, MaxBytes=1 << 20, Topics=[
                {'TopicId': ids.pop(), 'Partitions': [{'Partition': 0, 'FetchOffset': 0}]}])
            self.assertEqual(old['Responses'][0]['Partitions'][0]['ErrorCode'], 100)
        self.check_files()
        self.broker.stop()
        self.broker.start()
        with self.broker.connect() as c:
            self.assertEqual(calls.topic_names(c), [])

    def check_files(self):
        """At once under another name; when they go is file.delete.delay.ms."""
        self.poll(lambda: not self.named())
        self.assertEqual(self.named(), [])

    def named(self):
        return [n for n in os.listdir(self.broker.data)
                if n.startswith('t-') and not n.endswith('-delete')]


class NoDeletion(broker.BrokerTest):
    settings = {'delete.topic.enable': 'false'}

    def test_the_server_does_not_allow_it(self):
        with self.broker.connect() as c:
            calls.ready(c, 't')
            for version, error in ((2, 42), (3, 73), (5, 73)):
                answer = c.ask('DeleteTopics', version, TopicNames=['t'], TimeoutMs=10000)
                self.assertEqual(answer['Responses'][0]['ErrorCode'], error)
            self.assertEqual(calls.topic_names(c), ['t'])


if __name__ == '__main__':
    broker.main()
