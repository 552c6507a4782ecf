"""Metadata, DescribeCluster."""
import uuid


def run(c):
    t = c.topic('md-one', 3)
    for v in range(14):
        ask = lambda note, **f: c.ask('Metadata', v, f, note=note)  # noqa: E731,B023
        ask('one topic', topics=[{'name': 'md-one'}], allowAutoTopicCreation=False)
        ask('no topics', topics=[]) if v > 0 else None
        ask('unknown', topics=[{'name': 'md-none'}], allowAutoTopicCreation=False) if v >= 4 else None
        ask('bad name', topics=[{'name': 'md none!'}], allowAutoTopicCreation=False)
        ask('empty name', topics=[{'name': ''}], allowAutoTopicCreation=False)
        ask('dots', topics=[{'name': '..'}], allowAutoTopicCreation=False)
        ask('long name', topics=[{'name': 'x' * 250}], allowAutoTopicCreation=False)
        ask('twice', topics=[{'name': 'md-one'}, {'name': 'md-one'}], allowAutoTopicCreation=False)
        if v >= 8:
            ask('rights', topics=[{'name': 'md-one'}], allowAutoTopicCreation=False,
                includeTopicAuthorizedOperations=True)
        if 8 <= v <= 10:
            ask('rights of the cluster', topics=[], includeClusterAuthorizedOperations=True)
        if v >= 10:
            ask('by id', topics=[{'name': None, 'topicId': t}], allowAutoTopicCreation=False)
            ask('unknown id', topics=[{'name': None, 'topicId': uuid.UUID(int=7 << 64)}],
                allowAutoTopicCreation=False)
            ask('zero id', topics=[{'name': None}], allowAutoTopicCreation=False)
            ask('name and id', topics=[{'name': 'md-one', 'topicId': t}], allowAutoTopicCreation=False)
    for v in range(3):
        c.ask('DescribeCluster', v, {})
        c.ask('DescribeCluster', v, {'includeClusterAuthorizedOperations': True}, note='rights')
        if v >= 1:
            c.ask('DescribeCluster', v, {'endpointType': 2}, note='controllers')
            c.ask('DescribeCluster', v, {'endpointType': 3}, note='unknown type')
        if v >= 2:
            c.ask('DescribeCluster', v, {'includeFencedBrokers': True}, note='fenced ones too')
