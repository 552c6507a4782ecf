"""Calls on one partition or topic at a time, in the versions that tests mostly use."""
import time

EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
COORDINATOR_NOT_READY = (14, 15, 16)


def create(c, name, partitions=1, configs=None, version=7, replication=1, **more):
    """The answer's entry."""
    topic = {'Name': name, 'NumPartitions': partitions, 'ReplicationFactor': replication,
             'Configs': [{'Name': k, 'Value': str(v)} for k, v in (configs or {}).items()]}
    topic.update(more.pop('topic', {}))
    answer = c.ask('CreateTopics', version, **{'Topics': [topic], 'TimeoutMs': 10000, **more})
    return answer['Topics'][0]


def produce(c, topic, partition, data, version=9, acks=-1, **more):
    """The answer's entry of the partition."""
    answer = c.ask('Produce', version, **{'Acks': acks, 'TimeoutMs': 10000, 'TopicData': [
        {'Name': topic, 'PartitionData': [{'Index': partition, 'Records': data}]}], **more})
    return answer['Responses'][0]['PartitionResponses'][0]


def fetch(c, topic, partition, offset, version=12, max_bytes=1 << 20, part=None, **more):
    """The answer's entry of the partition; part: more fields of the request's."""
    entry = {'Partition': partition, 'FetchOffset': offset, 'PartitionMaxBytes': max_bytes}
    entry.update(part or {})
    request = {'ReplicaId': -1, 'MaxBytes': 64 << 20, **more}
    answer = c.ask('Fetch', version, Topics=[{'Topic': topic, 'Partitions': [entry]}], **request)
    return answer['Responses'][0]['Partitions'][0]


def offset_of(c, topic, partition, timestamp, isolation=0, version=7, **part):
    """(error, timestamp, offset, leader epoch)"""
    answer = c.ask('ListOffsets', version, IsolationLevel=isolation, ReplicaId=-1, Topics=[
        {'Name': topic, 'Partitions': [dict(PartitionIndex=partition, Timestamp=timestamp,
                                            **part)]}])
    p = answer['Topics'][0]['Partitions'][0]
    return p['ErrorCode'], p['Timestamp'], p['Offset'], p.get('LeaderEpoch', -1)


def end_of(c, topic, partition=0):
    return offset_of(c, topic, partition, LATEST)[2]


def metadata(c, topics, version=12, create_missing=False):
    """topics: names; None: all."""
    names = None if topics is None else [{'Name': t} for t in topics]
    return c.ask('Metadata', version, Topics=names, AllowAutoTopicCreation=create_missing)


def metadata_of(c, topic):
    return metadata(c, [topic])['Topics'][0]


def topic_names(c):
    return [t['Name'] for t in metadata(c, None)['Topics']]


def ready(c, name, partitions=1, configs=None):
    """A topic that is led."""
    error = create(c, name, partitions, configs)['ErrorCode']
    assert error == 0, error
    c.wait_for_leaders(name, partitions)
    return name


def commit(c, group, topic, partition, offset, metadata='', version=8):
    """The error of an OffsetCommit by no member."""
    answer = c.ask('OffsetCommit', version, GroupId=group, GenerationIdOrMemberEpoch=-1, Topics=[
        {'Name': topic, 'Partitions': [{'PartitionIndex': partition, 'CommittedOffset': offset,
                                        'CommittedMetadata': metadata}]}])
    return answer['Topics'][0]['Partitions'][0]['ErrorCode']


def committed(c, group, topic, partition):
    """(error, offset)"""
    answer = c.ask('OffsetFetch', 7, GroupId=group, Topics=[
        {'Name': topic, 'PartitionIndexes': [partition]}])
    if answer['ErrorCode'] != 0:
        return answer['ErrorCode'], -1
    p = answer['Topics'][0]['Partitions'][0]
    return p['ErrorCode'], p['CommittedOffset']


def until_coordinated(c, *groups):
    """Their coordinators are there and loaded."""
    end = time.monotonic() + 30
    for group in groups:
        while True:
            found = c.ask('FindCoordinator', 4, CoordinatorKeys=[group])['Coordinators'][0]
            fetched = c.ask('OffsetFetch', 7, GroupId=group, Topics=None)
            if (found['ErrorCode'], fetched['ErrorCode']) == (0, 0):
                break
            assert time.monotonic() < end, (found, fetched)
