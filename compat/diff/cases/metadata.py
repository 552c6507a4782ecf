"""Metadata, DescribeCluster."""
import uuid


def run(c):
    t = c.topic('md-one', 3)
    for v in range(14):
        ask = lambda note, **f: c.ask('Metadata', v, f, note=note)  # noqa: E731,B023
        ask('one topic', Topics=[{'Name': 'md-one'}], AllowAutoTopicCreation=False)
        ask('no topics', Topics=[]) if v > 0 else None
        ask('unknown', Topics=[{'Name': 'md-none'}], AllowAutoTopicCreation=False) if v >= 4 else None
        ask('bad name', Topics=[{'Name': 'md none!'}], AllowAutoTopicCreation=False)
        ask('empty name', Topics=[{'Name': ''}], AllowAutoTopicCreation=False)
        ask('dots', Topics=[{'Name': '..'}], AllowAutoTopicCreation=False)
        ask('long name', Topics=[{'Name': 'x' * 250}], AllowAutoTopicCreation=False)
        ask('twice', Topics=[{'Name': 'md-one'}, {'Name': 'md-one'}], AllowAutoTopicCreation=False)
        if v >= 8:
            ask('rights', Topics=[{'Name': 'md-one'}], AllowAutoTopicCreation=False,
                IncludeTopicAuthorizedOperations=True)
        if 8 <= v <= 10:
            ask('rights of the cluster', Topics=[], IncludeClusterAuthorizedOperations=True)
        if v >= 10:
            ask('by id', Topics=[{'Name': None, 'TopicId': t}], AllowAutoTopicCreation=False)
            ask('unknown id', Topics=[{'Name': None, 'TopicId': uuid.UUID(int=7 << 64)}],
                AllowAutoTopicCreation=False)
            ask('zero id', Topics=[{'Name': None}], AllowAutoTopicCreation=False)
            ask('name and id', Topics=[{'Name': 'md-one', 'TopicId': t}], AllowAutoTopicCreation=False)
        if v >= 4:
            ask('made for it', Topics=[{'Name': f'md-made-{v}'}, {'Name': 'md none!'}], AllowAutoTopicCreation=True)
    for v in range(3):
        c.ask('DescribeCluster', v, {})
        c.ask('DescribeCluster', v, {'IncludeClusterAuthorizedOperations': True}, note='rights')
        if v >= 1:
            c.ask('DescribeCluster', v, {'EndpointType': 2}, note='controllers')
            c.ask('DescribeCluster', v, {'EndpointType': 3}, note='unknown type')
        if v >= 2:
            c.ask('DescribeCluster', v, {'IncludeFencedBrokers': True}, note='fenced ones too')
