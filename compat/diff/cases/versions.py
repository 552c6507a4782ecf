"""ApiVersions, versions that are not served, bytes that are no request."""
import wire

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
        answers = c.ask('ApiVersions', version, {'clientSoftwareName': 'diff',
                                                 'clientSoftwareVersion': '1'}, compare=False)
        ranges = [{k['apiKey']: (k['minVersion'], k['maxVersion']) for k in a['apiKeys']} for a in answers]
        for api, (first, last) in SERVED.items():
            key = wire.REQUESTS[api].key
            c.note = f'range of {api}'
            c.compare('ApiVersions', version, [r.get(key) for r in ranges])
        for a in answers:
            a.pop('apiKeys')
            a.pop('finalizedFeaturesEpoch', None)  # how long each metadata log is is its own
        c.note = 'all but the ranges'
        c.compare('ApiVersions', version, answers)
    c.ask('ApiVersions', 3, {'clientSoftwareName': '', 'clientSoftwareVersion': '1'}, note='no name')
    c.ask('ApiVersions', 3, {'clientSoftwareName': 'a b', 'clientSoftwareVersion': '1'}, note='bad name')
    c.ask('ApiVersions', 4, {'clientSoftwareName': 'x', 'clientSoftwareVersion': '-'}, note='bad version')
    c.ask('ApiVersions', 99, body=b'\0\0', note='unknown version', compare=False)
    c.ask('DescribeCluster', 0, {}, note='the connection is still there')
    for api, (first, last) in SERVED.items():
        for version in (first - 1, last + 1):
            if version >= 0:
                c.ask(api, version, body=b'', note='version not served')
        c.ask(api, last, body=b'', note='no body')
        c.ask(api, last, body=b'\xff' * 24, note='garbage')
        c.ask(api, first, body=b'\xff' * 24, note='garbage')
    c.ask('Metadata', 12, body=wire.request_body('Metadata', 12, {'topics': []}) + b'zzz', note='bytes behind')
    c.ask('Metadata', 1, body=b'\x7f\xff\xff\xff', note='lying count')
