"""What was asked: each API at each version that the broker advertises has to be, with good and with
bad input. A request counts when its answers were compared and its body was no mere garbage."""
import os

import messages

NEVER_WRONG = {  # what may be asked of these is never refused
    'ApiVersions': range(3), 'DescribeCluster': range(1), 'DescribeGroups': range(6),
    'DescribeLogDirs': range(6), 'FindCoordinator': range(1), 'ListConfigResources': range(1),
    'ListGroups': range(6), 'ListPartitionReassignments': range(1), 'OffsetFetch': range(10)}
# The only broker could not go on, the only voter does not leave, and no other one is there to join.
NEVER_GOOD = {'UnregisterBroker': range(1), 'AddRaftVoter': range(2), 'RemoveRaftVoter': range(1)}


def api_names():
    """By their keys."""
    names = {}
    for file in os.listdir(messages.SCHEMA):
        with open(os.path.join(messages.SCHEMA, file), encoding='utf-8') as f:
            for m in messages.gen.parse(f.read().split('\n')):
                if m.name.endswith('Request'):
                    names[m.key] = m.name.removesuffix('Request')
    return names


def refused(answer):
    """Is there an error anywhere in it?"""
    if isinstance(answer, dict):
        return answer.get('ErrorCode', 0) != 0 or any(map(refused, answer.values()))
    if isinstance(answer, list):
        return any(map(refused, answer))
    return False


class Coverage:
    def __init__(self):
        self.seen = set()

    def count(self, api, version, answer):
        self.seen.add((api, version, 'bad' if isinstance(answer, str) or refused(answer) else 'good'))

    def missing(self, advertised):
        """advertised: the ApiKeys of an ApiVersions answer."""
        names = api_names()
        for k in advertised:
            api = names[k['ApiKey']]
            first = max(k['MinVersion'], messages.message(api + 'Request').first)  # Produce tells 0
            for version in range(first, k['MaxVersion'] + 1):
                for kind in ('good', 'bad'):
                    if (api, version, kind) not in self.seen and \
                            version not in (NEVER_WRONG if kind == 'bad' else NEVER_GOOD).get(api, ()):
                        yield f'{api} {version} with {kind} input'
