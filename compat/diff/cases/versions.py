"""ApiVersions, versions that are not served, bytes that are no request."""
from both import messages

SERVED = {'Produce': (3, 13), 'Fetch': (4, 18), 'ListOffsets': (1, 11), 'Metadata': (0, 13),
          'OffsetCommit': (2, 10), 'OffsetFetch': (1, 10), 'FindCoordinator': (0, 6), 'JoinGroup': (0, 9),
          'Heartbeat': (0, 4), 'LeaveGroup': (0, 5), 'SyncGroup': (0, 5), 'DescribeGroups': (0, 6),
          'ListGroups': (0, 5), 'CreateTopics': (2, 7), 'DeleteTopics': (1, 6), 'DeleteRecords': (0, 2),
          'InitProducerId': (0, 5), 'OffsetForLeaderEpoch': (2, 4), 'DescribeConfigs': (1, 4),
          'AlterConfigs': (0, 2), 'DescribeLogDirs': (1, 5), 'CreatePartitions': (0, 3),
          'DeleteGroups': (0, 2), 'IncrementalAlterConfigs': (0, 1), 'OffsetDelete': (0, 0),
          'DescribeQuorum': (0, 2), 'DescribeCluster': (0, 2), 'DescribeProducers': (0, 0),
          'ListConfigResources': (0, 1), 'DescribeTopicPartitions': (0, 0)}


def run(c):
    for version in range(5):
        answers = c.ask('ApiVersions', version, {'ClientSoftwareName': 'diff',
                                                 'ClientSoftwareVersion': '1'}, compare=False)
        ranges = [{k['ApiKey']: (k['MinVersion'], k['MaxVersion']) for k in a['ApiKeys']} for a in answers]
        for api, (first, last) in SERVED.items():
            key = messages.message(api + 'Request').key
            c.note = f'range of {api}'
            c.compare('ApiVersions', version, [r.get(key) for r in ranges])
        for a in answers:
            a.pop('ApiKeys')
            a.pop('FinalizedFeaturesEpoch', None)  # how long each metadata log is is its own
        c.note = 'all but the ranges'
        c.compare('ApiVersions', version, answers)
    c.ask('ApiVersions', 3, {'ClientSoftwareName': '', 'ClientSoftwareVersion': '1'}, note='no name')
    c.ask('ApiVersions', 3, {'ClientSoftwareName': 'a b', 'ClientSoftwareVersion': '1'}, note='bad name')
    c.ask('ApiVersions', 4, {'ClientSoftwareName': 'x', 'ClientSoftwareVersion': '-'}, note='bad version')
    c.ask('ApiVersions', 99, body=b'\0\0', note='unknown version', compare=False)
    c.ask('DescribeCluster', 0, {}, note='the connection is still there')
    for api, (first, last) in SERVED.items():
        for version in (first - 1, last + 1):
            if version >= 0:
                c.ask(api, version, body=b'', note='version not served')
        c.ask(api, last, body=b'', note='no body')
        c.ask(api, last, body=b'\xff' * 24, note='garbage')
        if api != 'InitProducerId':  # version 0 reads it as a request, whose answer is a fresh id
            c.ask(api, first, body=b'\xff' * 24, note='garbage')
    c.ask('Metadata', 12, body=b'\x01\0\0\0zzz', note='bytes behind')
    c.ask('Metadata', 1, body=b'\x7f\xff\xff\xff', note='lying count')
