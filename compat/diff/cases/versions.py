"""ApiVersions, versions that are not served, bytes that are no request."""
from both import Each, messages
from coverage import api_names

NOT_AS_GARBAGE = {'InitProducerId', 'DescribeLogDirs', 'ApiVersions'}  # in whose first versions it is a request


def ask(c, version, note, **f):
    """The ranges apart from the rest: Kafka serves more. Those that Dohle advertises."""
    fields = {'ClientSoftwareName': 'diff', 'ClientSoftwareVersion': '1', **f}
    answers = c.ask('ApiVersions', version, fields, compare=False)
    ranges = [{k['ApiKey']: (k['MinVersion'], k['MaxVersion']) for k in a.pop('ApiKeys')} for a in answers]
    for a in answers:
        a.pop('FinalizedFeaturesEpoch', None)  # how long each metadata log is is its own
    for key in ranges[1]:
        c.note = f'{note}, range of {key}'
        c.compare('ApiVersions', version, [r.get(key) for r in ranges])
    c.note = note
    c.compare('ApiVersions', version, answers)
    return ranges[1]


def expected_nodes(c):
    clusters = Each([a['ClusterId'] for a in c.ask('DescribeCluster', 0, {}, note='the cluster')])
    for note, cluster, node in (
            ('right ones', clusters, 1), ('another node', clusters, 2), ('another cluster', 'other', 1),
            ('no cluster', None, 1), ('no node', clusters, -1), ('node -2', clusters, -2),
            ('node -2, no cluster', None, -2), ('empty cluster', '', 1), ('neither', None, -1)):
        ask(c, 5, note, ClusterId=cluster, NodeId=node)


def run(c):
    for version in range(6):
        served = ask(c, version, 'plain')
    for version in (3, 4, 5):
        for note, name, software in (('no name', '', '1'), ('bad name', 'a b', '1'), ('bad version', 'x', '-'),
                                     ('no version', 'x', '')):
            ask(c, version, note, ClientSoftwareName=name, ClientSoftwareVersion=software)
    expected_nodes(c)
    c.ask('ApiVersions', 99, body=b'\0\0', note='unknown version', compare=False)
    c.ask('DescribeCluster', 0, {}, note='the connection is still there')
    names = api_names()
    for key, (_, last) in served.items():
        api, first = names[key], messages.message(names[key] + 'Request').first
        for version in (*range(first), last + 1):
            if api != 'ApiVersions':
                c.ask(api, version, body=b'', note='version not served')
        if api != 'ApiVersions':
            c.ask(api, last, body=b'', note='no body')
        c.ask(api, last, body=b'\xff' * 24, note='garbage')
        if api not in NOT_AS_GARBAGE:
            c.ask(api, first, body=b'\xff' * 24, note='garbage')
    c.ask('Metadata', 12, body=b'\x01\0\0\0zzz', note='bytes behind')
    c.ask('Metadata', 1, body=b'\x7f\xff\xff\xff', note='lying count')
