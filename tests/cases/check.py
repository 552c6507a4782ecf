#!/usr/bin/env python3
"""docs/CASES.md, docs/REPLICATION.md and docs/SCENARIOS.md against the tests: every `FILE:TEST` that they name
is a test of that file, every `sim:NAME` a script of the simulator. Every case has a test or stands under "Not
yet", once, and every id that a test names has a row; every promise of REPLICATION.md has a test; every scenario
has one row with a test, or "nothing yet", and every script is named.

  check.py SOURCE
"""
import collections
import os
import re
import sys

CASE = re.compile(r"\b(?:AV|MD|PR|FE|LO|GR|TX|AD|SE|CN|DU|RC|TL)-\d\d\b")
SCENARIO = re.compile(r"\| ([SK]\d+) \| ")
SCENARIOS = {"S": 32, "K": 22}


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def test_files(source):
    """base name -> text, of all files of that name, and of the simulator's scripts"""
    found = collections.defaultdict(str)
    for folder, _, names in os.walk(f"{source}/tests"):
        for name in names:
            if name == "scripts.c" or (name.startswith("test_") and name.endswith((".c", ".py"))):
                found[name] += read(f"{folder}/{name}")
    return found


def tests_of(name, text):
    """Those that run: in C the ones given to TEST_MAIN."""
    return set(re.findall(r"\bTEST\((\w+)\)", text) if name.endswith(".c") else
               re.findall(r"^    def (test_\w+)\(", text, re.M))


def named_in(line):
    """(file, test) of each"""
    return re.findall(r"`(test_[\w.]+):(\w+)`", line)


def missing(page, files):
    return [f"there is no {name}:{test}" for name, test in named_in(page)
            if name not in files or test not in tests_of(name, files[name])]


def check_cases(page, files):
    errors, served = missing(page, files), True
    cases = collections.Counter()
    for line in page.splitlines():
        served = served and line != "## Not yet"
        row = re.match(r"\| ([^|]+) \| ", line)
        ids = CASE.findall(row[1]) if row else []
        cases.update(ids)
        errors += [f"{case} has no test" for case in ids if served and not named_in(line)]
    errors += [f"{case} has {n} rows" for case, n in cases.items() if n > 1]
    for name, text in sorted(files.items()):
        errors += [f"{name} names {case}, which has no row" for case in sorted(set(CASE.findall(text)))
                   if case not in cases]
    return errors, cases


def promises_of(page):
    """The rows of its tables of promises."""
    rows, inside = [], False
    for line in page.splitlines():
        inside = line.startswith("|") and (inside or line == "| promise | shown by |")
        if inside and not line.startswith(("| promise |", "|---")):
            rows.append(line)
    return rows


def check_promises(page, files):
    rows = promises_of(page)
    return missing(page, files) + [f"no test shows: {row}" for row in rows if not named_in(row)], rows


def check_scenarios(page, files):
    errors, rows, played = missing(page, files), collections.Counter(), set()
    scripts = set(re.findall(r'\{"([\w-]+)"', files["scripts.c"]))
    for line in page.splitlines():
        named = set(re.findall(r"`sim:([a-z][\w-]*)`", line))
        errors += [f"there is no script {name}" for name in sorted(named - scripts)]
        row = SCENARIO.match(line)
        if not row:
            continue
        rows[row[1]] += 1
        played |= named
        if not named and not named_in(line) and "nothing yet" not in line:
            errors.append(f"{row[1]} has no test")
    wanted = {f"{letter}{i + 1}" for letter, n in SCENARIOS.items() for i in range(n)}
    errors += [f"{scenario} has {rows[scenario]} rows" for scenario in sorted(wanted | set(rows))
               if rows[scenario] != 1 or scenario not in wanted]
    errors += [f"script {name} stands in no row" for name in sorted(scripts - played)]
    return errors, rows


def main(source):
    files, bad = test_files(source), False
    for name, what, check in (("CASES.md", "cases", check_cases), ("REPLICATION.md", "promises", check_promises),
                              ("SCENARIOS.md", "scenarios", check_scenarios)):
        errors, found = check(read(f"{source}/docs/{name}"), files)
        for error in errors:
            print(f"docs/{name}: {error}", file=sys.stderr)
        print(f"{len(found)} {what}, {len(errors)} errors")
        bad = bad or errors or not found
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
