#!/usr/bin/env python3
"""usage: diff.py KAFKA_PORT KAFKA_DIR DOHLE_PORT DOHLE_DIR [CASES...]

Sends the requests of cases/ to both brokers and compares the answers field by field. Differences that
differences.txt does not list are failures. When all cases ran, so is a line there that nothing needs, and
an API at a version that is advertised and was not asked with good and with bad input.
"""
import fnmatch
import glob
import importlib
import json
import os
import sys

from both import Both, Side

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH = int(os.environ.get('DIFF_WIDTH', 200))


class Known:
    """A line of differences.txt: API, path of the field or @note of the request, Kafka's value and ours
    as JSON, reason."""

    def __init__(self, line):
        self.line = line
        fields, _, self.reason = line.partition(': ')
        self.api, self.path, self.kafka, self.dohle = (fields.split() + ['*'] * 3)[:4]

    def matches(self, api, note, path, kafka, dohle):
        place = '@' + note.replace(' ', '_') if self.path.startswith('@') else path
        return fnmatch.fnmatchcase(api, self.api) and fnmatch.fnmatchcase(place, self.path) and \
            fnmatch.fnmatchcase(json.dumps(kafka), self.kafka) and \
            fnmatch.fnmatchcase(json.dumps(dohle), self.dohle)


def known_differences():
    with open(os.path.join(HERE, 'differences.txt'), encoding='utf-8') as file:
        return [Known(line.strip()) for line in file if line.strip() and not line.startswith('#')]


def show(found):
    """Differences that several versions share are one line."""
    lines = {}
    for api, version, note, path, kafka, dohle in found:
        lines.setdefault((api, note, path), []).append((version, kafka, dohle))
    for (api, note, path), seen in list(lines.items())[:200]:
        versions = sorted({v for v, _, _ in seen})
        _, kafka, dohle = seen[-1]
        print(f'      | {api} {",".join(map(str, versions))} ({note}) {path}: '
              f'Kafka {kafka!r:.{WIDTH}}, Dohle {dohle!r:.{WIDTH}}')


def main(kafka_port, kafka_dir, dohle_port, dohle_dir, *names):
    known = known_differences()
    both = Both(Side(0, int(kafka_port), kafka_dir), Side(1, int(dohle_port), dohle_dir), known)
    available = sorted(os.path.basename(p)[:-3] for p in glob.glob(os.path.join(HERE, 'cases', '*.py')))
    passed = failed = 0
    for name in names or available:
        module = importlib.import_module('cases.' + name)
        asked, equal, found = both.asked, both.equal, len(both.found)
        try:
            module.run(both)
        except Exception as e:  # the other cases still run
            both.found.append((name, -1, both.note, '', '', f'{type(e).__name__}: {e}'))
        fresh = both.found[found:]
        print(f'{"FAIL " if fresh else "ok   "} {name}: {both.asked - asked} requests, '
              f'{both.equal - equal} answered alike or as listed')
        show(fresh)
        passed += both.equal - equal
        failed += both.asked - asked - (both.equal - equal) + (1 if fresh and fresh[-1][1] < 0 else 0)
    if not names:
        for entry in known:
            if entry not in both.used:
                print(f'FAIL  not needed any more: {entry.line}')
                failed += 1
        advertised = both.ask('ApiVersions', 0, compare=False)[1]['ApiKeys']
        for missing in both.coverage.missing(advertised):
            print(f'FAIL  never asked: {missing}')
            failed += 1
    print(f'{len(both.used)} listed differences met')
    print(f'{passed} passed, {failed} failed')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
