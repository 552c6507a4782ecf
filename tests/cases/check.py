#!/usr/bin/env python3
"""docs/CASES.md against the tests: every `FILE:TEST` that it names is a test of that file, every case
has a test or stands under "Not yet", once, and every id that a test names has a row.

  check.py SOURCE
"""
import collections
import os
import re
import sys

CASE = re.compile(r"\b(?:AV|MD|PR|FE|LO|GR|TX|AD|SE|CN|DU|RC|TL)-\d\d\b")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def test_files(source):
    """base name -> text, of all files of that name"""
    found = collections.defaultdict(str)
    for folder, _, names in os.walk(f"{source}/tests"):
        for name in names:
            if name.startswith("test_") and name.endswith((".c", ".py")):
                found[name] += read(f"{folder}/{name}")
    return found


def tests_of(name, text):
    """Those that run: in C the ones given to TEST_MAIN."""
    return set(re.findall(r"\bTEST\((\w+)\)", text) if name.endswith(".c") else
               re.findall(r"^    def (test_\w+)\(", text, re.M))


def check(page, files):
    errors, served = [], True
    cases = collections.Counter()
    for line in page.splitlines():
        served = served and line != "## Not yet"
        row = re.match(r"\| ([^|]+) \| ", line)
        ids = CASE.findall(row[1]) if row else []
        cases.update(ids)
        named = re.findall(r"`(test_[\w.]+):(\w+)`", line)
        errors += [f"{case} has no test" for case in ids if served and not named]
        for name, test in named:
            if name not in files or test not in tests_of(name, files[name]):
                errors.append(f"there is no {name}:{test}")
    errors += [f"{case} has {n} rows" for case, n in cases.items() if n > 1]
    for name, text in sorted(files.items()):
        errors += [f"{name} names {case}, which has no row" for case in sorted(set(CASE.findall(text)))
                   if case not in cases]
    return errors, cases


def main(source):
    errors, cases = check(read(f"{source}/docs/CASES.md"), test_files(source))
    for error in errors:
        print(f"docs/CASES.md: {error}", file=sys.stderr)
    print(f"{len(cases)} cases, {len(errors)} errors")
    return 1 if errors or not cases else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
