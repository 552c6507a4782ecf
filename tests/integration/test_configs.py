"""Configuration over the wire: what is described, what may be altered, and that it rules at once."""
import glob
import os
import time

import batches
import broker
import calls

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
FROM_TOPIC, FROM_BROKER, FROM_CLUSTER, FROM_STATIC, DEFAULT = 1, 2, 3, 4, 5
UNKNOWN_TOPIC, TOO_LARGE, INVALID_TOPIC, BAD_FACTOR, BAD_CONFIG, BAD_REQUEST = 3, 10, 17, 38, 40, 42


class Key:
    """One configuration of a description."""
    def __init__(self, k):
        self.name, self.value, self.source = k['Name'], k['Value'], k['ConfigSource']
        self.read_only, self.sensitive = k['ReadOnly'], k['IsSensitive']
        self.synonyms = [(s['Name'], s['Value'], s['Source']) for s in k['Synonyms']]
        self.type, self.documentation = k.get('ConfigType'), k.get('Documentation')


def describe(c, kind, name, keys=None, synonyms=True, version=4):
    """Error, message and the keys by name."""
    more = {'IncludeDocumentation': True} if version >= 3 else {}
    result = c.ask('DescribeConfigs', version, IncludeSynonyms=synonyms, Resources=[
        {'ResourceType': kind, 'ResourceName': name, 'ConfigurationKeys': keys}],
                   **more)['Results'][0]
    assert (result['ResourceType'], result['ResourceName']) == (kind, name)
    found = {k['Name']: Key(k) for k in result['Configs']}
    assert len(found) == len(result['Configs'])
    return result['ErrorCode'], result['ErrorMessage'], found


def errors(answer, resources):
    """Of each resource, in the order of the request; a message where there is one."""
    found = answer['Responses']
    assert [(r['ResourceType'], r['ResourceName']) for r in found] == resources
    assert all((r['ErrorMessage'] is None) == (r['ErrorCode'] == 0) for r in found)
    return [r['ErrorCode'] for r in found]


def incremental_many(c, changes, validate_only=False, version=1):
    """changes: (type, name, [(key, operation, value)]); the error of each."""
    return errors(c.ask('IncrementalAlterConfigs', version, ValidateOnly=validate_only, Resources=[
        {'ResourceType': kind, 'ResourceName': name, 'Configs': [
            {'Name': key, 'ConfigOperation': operation, 'Value': value}
            for key, operation, value in ops]} for kind, name, ops in changes]),
                  [(kind, name) for kind, name, _ in changes])


def incremental(c, kind, name, *ops, **options):
    return incremental_many(c, [(kind, name, ops)], **options)[0]


def alter(c, kind, name, values, validate_only=False, version=2):
    return errors(c.ask('AlterConfigs', version, ValidateOnly=validate_only, Resources=[
        {'ResourceType': kind, 'ResourceName': name, 'Configs': [
            {'Name': k, 'Value': v} for k, v in values.items()]}]), [(kind, name)])[0]


def own(c, kind, name):
    """What is set for the resource itself."""
    source = {TOPIC: FROM_TOPIC, BROKER: FROM_BROKER, CLIENT_METRICS: 7, GROUP: 8}[kind]
    return {k: v.value for k, v in describe(c, kind, name)[2].items() if v.source == source}


def list_resources(c, kinds):
    """Error and (type, name) of each, in order."""
    answer = c.ask('ListConfigResources', 1, ResourceTypes=kinds)
    return answer['ErrorCode'], sorted((r['ResourceType'], r['ResourceName'])
                                       for r in answer['ConfigResources'])


class Describe(broker.BrokerTest):
    settings = {'log.roll.hours': 2, 'log.retention.hours': -1, 'message.max.bytes': 2000000,
                'log.preallocate': 'TRUE', 'num.partitions': 3}

    def test_topic(self):
        with self.broker.connect() as c:
            calls.ready(c, 't', configs={'retention.bytes': '+07', 'cleanup.policy': ' compact '})
            error, message, keys = describe(c, TOPIC, 't')
            self.assertEqual((error, message, len(keys)), (0, '', 37))
            self.assertTrue(all(not k.read_only and not k.sensitive and k.documentation is None
                                for k in keys.values()))
            shown = {k: (keys[k].value, keys[k].source, keys[k].type) for k in keys}
            self.assertEqual(shown['retention.bytes'], ('7', FROM_TOPIC, 5))
            self.assertEqual(shown['cleanup.policy'], ('compact', FROM_TOPIC, 7))
            self.assertEqual(shown['max.message.bytes'], ('2000000', FROM_STATIC, 3))
            self.assertEqual(shown['preallocate'], ('true', FROM_STATIC, 1))
            self.assertEqual(shown['segment.ms'], ('7200000', FROM_STATIC, 5))
            self.assertEqual(shown['retention.ms'], ('-1', FROM_STATIC, 5))
            self.assertEqual(shown['min.insync.replicas'], ('1', FROM_CLUSTER, 3))
            self.assertEqual(shown['min.cleanable.dirty.ratio'], ('0.5', DEFAULT, 6))
            self.assertEqual(shown['message.timestamp.type'], ('CreateTime', DEFAULT, 2))
            self.assertEqual(shown['segment.bytes'], ('1073741824', DEFAULT, 3))
            self.assertEqual(keys['retention.bytes'].synonyms,
                             [('retention.bytes', '7', FROM_TOPIC),
                              ('log.retention.bytes', '-1', DEFAULT)])
            self.assertEqual(keys['preallocate'].synonyms,
                             [('log.preallocate', 'TRUE', FROM_STATIC),
                              ('log.preallocate', 'false', DEFAULT)])
            self.assertEqual(keys['segment.ms'].synonyms,
                             [('log.roll.hours', '2', FROM_STATIC),
                              ('log.roll.hours', '168', DEFAULT)])
            self.assertEqual(keys['flush.ms'].synonyms, [])

    def test_which_keys(self):
        with self.broker.connect() as c:
            calls.ready(c, 't')
            _, _, keys = describe(c, TOPIC, 't', ['segment.ms', 'no.such.key', 'flush.ms',
                                                  'segment.ms'], synonyms=False, version=1)
            self.assertEqual(sorted(keys), ['flush.ms', 'segment.ms'])
            self.assertEqual(keys['segment.ms'].synonyms, [])
            self.assertEqual(len(describe(c, TOPIC, 't', [])[2]), 37)
            self.assertEqual(describe(c, TOPIC, 'nope')[:2], (UNKNOWN_TOPIC, ''))
            self.assertEqual(describe(c, TOPIC, 'a/b')[0], INVALID_TOPIC)
            for kind, name in ((0, 'x'), (3, 'x'), (100, 'x'), (BROKER, '77'), (BROKER, 'x'),
                               (LOGGER, ''), (LOGGER, '77'), (GROUP, ''), (CLIENT_METRICS, '')):
                self.assertEqual(describe(c, kind, name)[0], BAD_REQUEST, (kind, name))
            self.assertEqual(describe(c, LOGGER, '1')[::2], (0, {}))
            self.assertEqual(len(describe(c, GROUP, 'g')[2]), 21)
            self.assertEqual(len(describe(c, CLIENT_METRICS, 'm')[2]), 3)

    def test_broker(self):
        with self.broker.connect() as c:
            _, _, keys = describe(c, BROKER, '1')
            self.assertGreaterEqual(len(keys), 350)
            shown = {k: (v.value, v.source, v.read_only) for k, v in keys.items()}
            self.assertEqual(shown['num.partitions'], ('3', FROM_STATIC, True))
            self.assertEqual(shown['default.replication.factor'], ('1', DEFAULT, True))
            self.assertEqual(shown['auto.create.topics.enable'], ('true', DEFAULT, True))
            self.assertEqual(shown['log.retention.hours'], ('-1', FROM_STATIC, True))
            self.assertEqual(shown['log.retention.ms'], (None, DEFAULT, False))
            self.assertEqual(shown['node.id'][0], '1')
            self.assertEqual(shown['min.insync.replicas'], ('1', FROM_CLUSTER, False))
            self.assertEqual(shown['ssl.keystore.password'], (None, DEFAULT, True))
            self.assertTrue(keys['ssl.keystore.password'].sensitive)
            self.assertEqual([k for k, v in describe(c, BROKER, '')[2].items()],
                             ['min.insync.replicas'])


class Alter(broker.BrokerTest):
    def test_incremental_edits(self):
        with self.broker.connect() as c:
            calls.ready(c, 't')
            self.assertEqual(incremental(c, TOPIC, 't', ('retention.ms', SET, ' 12 ')), 0)
            self.assertEqual(incremental(c, TOPIC, 't', ('cleanup.policy', APPEND, 'compact')), 0)
            self.assertEqual(own(c, TOPIC, 't'),
                             {'retention.ms': '12', 'cleanup.policy': 'delete,compact'})
            self.assertEqual(incremental(c, TOPIC, 't', ('cleanup.policy', SUBTRACT, 'delete,x'),
                                         ('retention.ms', DELETE, None)), 0)
            self.assertEqual(own(c, TOPIC, 't'), {'cleanup.policy': 'compact'})
            for ops in ([('retention.ms', APPEND, '1')], [('no.such.key', SET, '1')],
                        [('segment.ms', SET, '5'), ('retention.ms', SET, 'x')]):
                self.assertEqual(incremental(c, TOPIC, 't', *ops), BAD_CONFIG, ops)
            for ops in ([('retention.ms', SET, None)], [('retention.ms', 9, '1')],
                        [('retention.ms', SET, '1'), ('retention.ms', DELETE, None)]):
                self.assertEqual(incremental(c, TOPIC, 't', *ops), BAD_REQUEST, ops)
            self.assertEqual(incremental(c, TOPIC, 't', ('segment.ms', SET, '5'),
                                         validate_only=True), 0)
            self.assertEqual(incremental(c, TOPIC, 't', ('segment.ms', SET, 'x'),
                                         validate_only=True), BAD_CONFIG)
            self.assertEqual(own(c, TOPIC, 't'), {'cleanup.policy': 'compact'})

    def test_alter_replaces(self):
        with self.broker.connect() as c:
            calls.ready(c, 't')
            self.assertEqual(alter(c, TOPIC, 't', {'retention.ms': '1', 'segment.ms': '2'}), 0)
            self.assertEqual(alter(c, TOPIC, 't', {'retention.ms': '3'}, validate_only=True), 0)
            self.assertEqual(own(c, TOPIC, 't'), {'retention.ms': '1', 'segment.ms': '2'})
            self.assertEqual(alter(c, TOPIC, 't', {'flush.ms': '3'}), 0)
            self.assertEqual(own(c, TOPIC, 't'), {'flush.ms': '3'})
            self.assertEqual(alter(c, TOPIC, 't', {'retention.ms': None}), BAD_REQUEST)
            self.assertEqual(alter(c, TOPIC, 't', {'retention.ms': 'x'}), BAD_CONFIG)
            self.assertEqual(own(c, TOPIC, 't'), {'flush.ms': '3'})
            self.assertEqual(alter(c, TOPIC, 't', {}), 0)
            self.assertEqual(own(c, TOPIC, 't'), {})

    def test_resources_alone_and_twice(self):
        with self.broker.connect() as c:
            for name in ('t', 'u'):
                calls.ready(c, name)
            change = [('segment.ms', SET, '5')]
            self.assertEqual(
                incremental_many(c, [(TOPIC, 't', change), (TOPIC, 'nope', change),
                                     (TOPIC, 'u', change), (TOPIC, 't', change),
                                     (BROKER, '77', change), (LOGGER, '1', []),
                                     (100, 'x', change)]),
                [BAD_REQUEST, UNKNOWN_TOPIC, 0, BAD_REQUEST, BAD_REQUEST, 0, BAD_REQUEST])
            self.assertEqual(own(c, TOPIC, 't'), {})
            self.assertEqual(own(c, TOPIC, 'u'), {'segment.ms': '5'})

    def test_brokers(self):
        with self.broker.connect() as c:
            calls.ready(c, 't')
            self.assertEqual(incremental(c, BROKER, '1', ('num.partitions', SET, '5')), BAD_REQUEST)
            self.assertEqual(incremental(c, BROKER, '1', ('log.segment.bytes', SET, '5')),
                             BAD_REQUEST)
            self.assertEqual(incremental(c, BROKER, '', ('log.segment.bytes', SET, '6000000'),
                                         ('my.own.key', SET, 'secret')), 0)
            self.assertEqual(incremental(c, BROKER, '1', ('log.segment.bytes', SET, '5000000')), 0)
            key = describe(c, BROKER, '1')[2]['log.segment.bytes']
            self.assertEqual((key.value, key.source, key.synonyms),
                             ('5000000', FROM_BROKER, [
                                 ('log.segment.bytes', '5000000', FROM_BROKER),
                                 ('log.segment.bytes', '6000000', FROM_CLUSTER),
                                 ('log.segment.bytes', '1073741824', DEFAULT)]))
            key = describe(c, TOPIC, 't')[2]['segment.bytes']
            self.assertEqual((key.value, key.source), ('5000000', FROM_BROKER))
            custom = describe(c, BROKER, '1')[2]['my.own.key']
            self.assertEqual((custom.value, custom.sensitive, custom.read_only, custom.type),
                             (None, True, True, 0))
            self.assertEqual(describe(c, BROKER, '')[2]['log.segment.bytes'].value, '6000000')
            self.assertEqual(alter(c, BROKER, '1', {}), 0)
            self.assertEqual(describe(c, TOPIC, 't')[2]['segment.bytes'].value, '6000000')

    def test_groups_and_client_metrics(self):
        with self.broker.connect() as c:
            calls.ready(c, 't')
            timeout = 'consumer.session.timeout.ms'
            self.assertEqual(incremental(c, GROUP, 'g', (timeout, SET, '50000')), 0)
            self.assertEqual(incremental(c, GROUP, 'g', (timeout, SET, '5')), BAD_CONFIG)
            self.assertEqual(own(c, GROUP, 'g'), {timeout: '50000'})
            self.assertEqual(incremental(c, CLIENT_METRICS, 'm', ('interval.ms', SET, '1000')), 0)
            self.assertEqual(incremental(c, LOGGER, '1', ('root', SET, 'INFO')), BAD_CONFIG)
            answer = c.ask('ListConfigResources', 0)
            self.assertEqual([r['ResourceName'] for r in answer['ConfigResources']], ['m'])
            self.assertEqual(list_resources(c, []),
                             (0, [(TOPIC, 't'), (BROKER, '1'), (LOGGER, '1'),
                                  (CLIENT_METRICS, 'm'), (GROUP, 'g')]))
            self.assertEqual(list_resources(c, [TOPIC, TOPIC]), (0, [(TOPIC, 't')]))
            self.assertEqual(list_resources(c, [TOPIC, 9]), (35, []))


class Effects(broker.BrokerTest):
    """What is altered rules when the answer is there."""
    settings = {'max.connections': 50}

    def too_large(self, c, topic, n):
        data = batches.build([(int(time.time() * 1000), None, b'x' * n)])
        return calls.produce(c, topic, 0, data)['ErrorCode'] == TOO_LARGE

    def test_largest_message(self):
        with self.broker.connect() as c:
            calls.ready(c, 't')
            calls.ready(c, 'own', configs={'max.message.bytes': '100000'})
            self.assertFalse(self.too_large(c, 't', 5000))
            self.assertEqual(incremental(c, BROKER, '', ('message.max.bytes', SET, '1000')), 0)
            self.assertTrue(self.too_large(c, 't', 5000))
            self.assertFalse(self.too_large(c, 'own', 5000))
            self.assertEqual(incremental(c, BROKER, '1', ('message.max.bytes', SET, '9000')), 0)
            self.assertFalse(self.too_large(c, 't', 5000))
            self.assertEqual(incremental(c, TOPIC, 't', ('max.message.bytes', SET, '100')), 0)
            self.assertTrue(self.too_large(c, 't', 200))
            self.assertEqual(incremental(c, TOPIC, 't', ('max.message.bytes', DELETE, None)), 0)
            self.assertFalse(self.too_large(c, 't', 200))

    def test_kept_over_a_kill(self):
        with self.broker.connect() as c:
            calls.ready(c, 't')
            self.assertEqual(incremental_many(c, [
                (BROKER, '', [('message.max.bytes', SET, '1000')]),
                (TOPIC, 't', [('message.timestamp.type', SET, 'LogAppendTime')])]), [0, 0])
        self.broker.kill()
        self.broker.start()
        with self.broker.connect() as c:
            c.wait_for_leaders('t', 1)
            self.assertTrue(self.too_large(c, 't', 5000))
            self.assertEqual(own(c, TOPIC, 't'), {'message.timestamp.type': 'LogAppendTime'})
            self.assertFalse(self.too_large(c, 't', 5))
            batch = batches.read(calls.fetch(c, 't', 0, 0)['Records'])[0]
            self.assertTrue(batch.attributes & batches.LOG_APPEND_TIME)

    def test_maximum_of_connections(self):
        with self.broker.connect() as c:
            self.assertEqual(incremental(c, BROKER, '', ('max.connections', SET, '1')), 0)
            second = self.broker.connect(timeout_s=0.3)
            with self.assertRaises(OSError):  # it waits in the backlog
                second.ask('ApiVersions', 0)
            self.assertEqual(incremental(c, BROKER, '', ('max.connections', SET, '2')), 0)
            second.socket.settimeout(10)
            second.answer()  # of the request that it sent before
            second.close()

    def test_deleted_directories_wait(self):
        def directories(name):
            return [os.path.basename(d) for d in glob.glob(self.broker.data + '/' + name + '-0*')]
        with self.broker.connect() as c:
            for name in ('now', 'later'):
                calls.ready(c, name)
                self.assertFalse(self.too_large(c, name, 1))
                self.assertEqual(directories(name), [name + '-0'])
            self.assertEqual(incremental(c, TOPIC, 'now', ('file.delete.delay.ms', SET, '0')), 0)
            answer = c.ask('DeleteTopics', 5, TopicNames=['now', 'later'], TimeoutMs=10000)
            self.assertEqual([r['ErrorCode'] for r in answer['Responses']], [0, 0])
            self.poll(lambda: directories('now') == [], 'the directory stays', 10)
            self.poll(lambda: directories('later') != ['later-0'], 'the directory keeps its name', 10)
            self.assertTrue(directories('later')[0].endswith('-delete'))
        self.assertEqual(self.broker.stop(), 0)
        self.assertTrue(directories('later')[0].endswith('-delete'))
        self.broker.start()
        self.poll(lambda: directories('later') == [], 'the start leaves the directory', 10)

    def test_cordoned_directory(self):
        with self.broker.connect() as c:
            self.assertEqual(incremental(c, BROKER, '1', ('cordoned.log.dirs', SET, '/none')),
                             BAD_REQUEST)
            self.assertEqual(incremental(c, BROKER, '1', ('cordoned.log.dirs', SET, '*')), 0)
            names = ('t%d' % i for i in range(1000))
            self.poll(lambda: calls.create(c, next(names))['ErrorCode'] == BAD_FACTOR, 'not cordoned', 10)
            self.assertEqual(incremental(c, BROKER, '1', ('cordoned.log.dirs', DELETE, None)), 0)
            self.poll(lambda: calls.create(c, next(names))['ErrorCode'] == 0, 'it stays cordoned', 10)


if __name__ == '__main__':
    broker.main()
