"""Producers with several requests in flight, of Apache Kafka's Java client (docs/REPLICATION.md has why): they give up
records that are in the log, and after that begin a new epoch, in which they may write others again."""

import collections


def number_of(value):
    """Which of its key's records it is, from 0."""
    head = value.split(b":", 1)[0]
    return int(head) if head.isdigit() else -1


class Unsure:
    """files: {how the keys of such a producer begin: a file with a line of KEY and VALUE for each that it gave up}."""

    def __init__(self, files):
        self.beginnings = tuple(files)
        self.given_up = collections.defaultdict(set)  # key -> numbers
        self.places = collections.defaultdict(list)  # (key, number) -> (partition, offset) of each copy
        self.last = {}  # key -> (epoch, number)
        for path in files.values():
            with open(path, "rb") as f:
                for line in f:
                    key, value = line.split(b"\t", 1)
                    self.given_up[key].add(number_of(value))

    def take(self, key, number, due, epoch, place):
        """A record, in the order of the log. The number that should be there: due, unless that was given up and is not
        there, or a new epoch writes again; within an epoch numbers rise."""
        if not key.startswith(self.beginnings):
            return due
        last = self.last.get(key)
        self.last[key] = epoch, number
        self.places[key, number].append(place)
        if number < due and (last[0] != epoch or last[1] < number):
            return number
        while due != number and due in self.given_up[key]:
            due += 1
        return due

    def counts(self):
        return {
            "given up": sum(map(len, self.given_up.values())),
            "of those in the log": sum(number in self.given_up[key] for key, number in self.places),
            "written again": sum(len(p) - 1 for p in self.places.values()),
        }
