#!/usr/bin/env python3
"""compat/kgo-suite/verdicts.py DIR < go test -json: each test's NAME VERDICT SECONDS to DIR/verdicts, and
what it printed to DIR/NAME.log. A test under way when the program ended is a timeout."""

import json
import sys


def main():
    folder = sys.argv[1]
    begun, seconds, printed = {}, {}, {}
    for line in sys.stdin:
        event = json.loads(line)
        name, action = event.get("Test"), event["Action"]
        if action == "output":
            printed.setdefault(name or "suite", []).append(event["Output"])
        elif name and action == "run":
            begun[name] = "timeout"
        elif name and action in ("pass", "fail", "skip"):
            begun[name] = action
            seconds[name] = event["Elapsed"]
    with open(folder + "/verdicts", "w") as f:
        for name, verdict in begun.items():
            f.write("%s %s %.1f\n" % (name, verdict, seconds.get(name, 0)))
    for name, lines in printed.items():
        with open("%s/%s.log" % (folder, name.replace("/", "+")), "w") as f:
            f.writelines(lines)


main()
