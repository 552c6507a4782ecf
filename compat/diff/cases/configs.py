"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3




def described(c, kind, name, keys=None, note='', versions=range(1, 5), **f):
    for v in versions:
        ask = c.ask_until_alike if note.startswith('after') else c.ask
        ask('DescribeConfigs', v, {'Resources': [{'ResourceType': kind, 'ResourceName': name,
                                                  'ConfigurationKeys': keys}], **f}, note=note)


def run(c):
    c.topic('cf-t', 1, {'retention.ms': '12345', 'cleanup.policy': 'compact'})
    c.topic('cf-u')
    described(c, TOPIC, 'cf-t', note='all')
    described(c, TOPIC, 'cf-t', note='all, synonyms', IncludeSynonyms=True)
    described(c, TOPIC, 'cf-t', ['retention.ms', 'no.such', 'retention.ms'], note='some')
    described(c, TOPIC, 'cf-t', [], note='no keys')
    described(c, TOPIC, 'cf-none', note='unknown topic')
    described(c, TOPIC, 'a b', note='bad name')
    described(c, TOPIC, '', note='empty name')
    described(c, BROKER, '1', ['log.retention.ms', 'log.retention.hours', 'message.max.bytes', 'min.insync.replicas',
                               'num.io.threads', 'node.id', 'compression.type', 'log.cleanup.policy', 'process.roles'],
              note='some', IncludeSynonyms=True)
    described(c, BROKER, '', note='default')
    described(c, BROKER, '9', note='unknown broker')
    described(c, BROKER, 'x', note='no number')
    described(c, GROUP, 'cf-g', note='group')
    described(c, GROUP, '', note='group without a name')
    described(c, METRICS, 'cf-m', note='metrics')
    described(c, 0, 'x', note='unknown type 0')
    described(c, 77, 'x', note='unknown type 77')
    for v in range(1, 5):
        c.ask('DescribeConfigs', v, {'Resources': []}, note='nothing')
        c.ask('DescribeConfigs', v, {'Resources': [resource_(TOPIC, 'cf-u', ['retention.ms'])] * 2}, note='twice')

    def alter(note, kind, name, *ops, v=1, **f):
        c.ask('IncrementalAlterConfigs', v, {'Resources': [{
            'ResourceType': kind, 'ResourceName': name,
            'Configs': [{'Name': k, 'ConfigOperation': o, 'Value': value} for k, o, value in ops]}], **f}, note=note)
        described(c, kind, name, [k for k, _, _ in ops] or None, note=f'after: {note}', versions=[4], IncludeSynonyms=True)
    for v in (0, 1):
        def a(note, *ops, name='cf-u', kind=TOPIC, v=v, **f):
            alter(note, kind, name, *ops, v=v, **f)
        a('set', ('retention.ms', SET, '777'))
        a('only validate', ('retention.ms', SET, '888'), ValidateOnly=True)
        a('delete', ('retention.ms', DELETE, None))
        a('delete what is not set', ('segment.ms', DELETE, None))
        a('append', ('cleanup.policy', APPEND, 'compact'))
        a('append again', ('cleanup.policy', APPEND, 'compact'))
        a('subtract', ('cleanup.policy', SUBTRACT, 'delete'))
        a('subtract what is not there', ('cleanup.policy', SUBTRACT, 'delete'))
        a('append to a number', ('retention.ms', APPEND, '5'))
        a('unknown operation', ('retention.ms', 9, '5'))
        a('null value', ('retention.ms', SET, None))
        a('bad value', ('retention.ms', SET, 'x'))
        a('out of range', ('segment.bytes', SET, '1'))
        a('unknown key', ('no.such', SET, '1'))
        a('key twice', ('retention.ms', SET, '1'), ('retention.ms', SET, '2'))
        a('empty key', ('', SET, '1'))
        a('none')
        a('unknown topic', ('retention.ms', SET, '1'), name='cf-none')
        a('bad name', ('retention.ms', SET, '1'), name='a b')
        a('a good and a bad one', ('retention.ms', SET, '5'), ('segment.bytes', SET, 'x'))
        b = lambda note, *ops, name='1', **f: a(note, *ops, name=name, kind=BROKER, **f)  # noqa: E731
        b('broker', ('log.retention.ms', SET, '600000'))
        b('cluster', ('log.retention.ms', SET, '700000'), name='')
        b('topic follows nothing', ('log.retention.ms', DELETE, None))
        described(c, TOPIC, 'cf-u', ['retention.ms'], versions=[4], IncludeSynonyms=True, note='after: of the cluster')
        b('cluster, back', ('log.retention.ms', DELETE, None), name='')
        b('read-only', ('node.id', SET, '5'))
        b('read-only list', ('process.roles', APPEND, 'x'))
        b('unknown key', ('no.such', SET, '1'))
        b('bad value', ('message.max.bytes', SET, 'x'))
        b('unknown broker', ('message.max.bytes', SET, '1000000'), name='9')
        b('no number', ('message.max.bytes', SET, '1000000'), name='x')
        g = lambda note, *ops, name='cf-g', **f: a(note, *ops, name=name, kind=GROUP, **f)  # noqa: E731
        g('group', ('consumer.session.timeout.ms', SET, '50000'))
        g('group, below the least', ('consumer.session.timeout.ms', SET, '1'))
        g('group, unknown key', ('no.such', SET, '1'))
        g('group, back', ('consumer.session.timeout.ms', DELETE, None))
        g('group without a name', ('consumer.session.timeout.ms', SET, '50000'), name='')
        a('unknown type', ('x', SET, '1'), name='x', kind=77)
    for v in range(3):
        def whole(note, kind, name, configs, v=v, **f):
            c.ask('AlterConfigs', v, {'Resources': [{'ResourceType': kind, 'ResourceName': name, 'Configs': [
                {'Name': k, 'Value': x} for k, x in configs]}], **f}, note=note)
            described(c, kind, name, ['retention.ms', 'segment.ms'], note=f'after: {note}', versions=[4])
        whole('set', TOPIC, 'cf-u', [('retention.ms', '5')])
        whole('replaced', TOPIC, 'cf-u', [('segment.ms', '600000')])
        whole('null', TOPIC, 'cf-u', [('segment.ms', None)])
        whole('bad', TOPIC, 'cf-u', [('segment.ms', 'x')])
        whole('validate', TOPIC, 'cf-u', [('retention.ms', '6')], ValidateOnly=True)
        whole('empty', TOPIC, 'cf-u', [])
        whole('unknown topic', TOPIC, 'cf-none', [('retention.ms', '5')])
        whole('key twice', TOPIC, 'cf-u', [('retention.ms', '5'), ('retention.ms', '6')])
        c.ask('AlterConfigs', v, {'Resources': [{'ResourceType': TOPIC, 'ResourceName': 'cf-u', 'Configs': []}] * 2},
              note='resource twice')
    for v in (0, 1):
        c.ask('ListConfigResources', v, {}, note='all')
        if v:
            for kinds in ([TOPIC], [BROKER], [GROUP], [METRICS], [LOGGER], [77], [TOPIC, BROKER]):
                c.ask('ListConfigResources', v, {'ResourceTypes': kinds}, note=str(kinds))


def resource_(kind, name, keys):
    return {'ResourceType': kind, 'ResourceName': name, 'ConfigurationKeys': keys}
