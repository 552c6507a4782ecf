"""A plugin of pytest: each test's NAME VERDICT SECONDS to $RESULTS/verdicts, and what failed in it to
$RESULTS/NAME.log. A test is one with its set-up and its end: what fails in any of them has failed."""

import os

FOLDER = os.environ["RESULTS"]
verdicts, seconds = {}, {}


def pytest_runtest_logreport(report):
    name = os.path.basename(report.nodeid)
    seconds[name] = seconds.get(name, 0) + report.duration
    if report.failed:
        verdicts[name] = "fail"
        with open("%s/%s.log" % (FOLDER, name), "a") as f:
            f.write("%s\n%s\n" % (report.caplog, report.longreprtext))
    elif report.skipped:
        verdicts.setdefault(name, "skip")
    elif report.when == "call":
        verdicts.setdefault(name, "pass")


def pytest_sessionfinish():
    with open(FOLDER + "/verdicts", "w") as f:
        for name, verdict in verdicts.items():
            f.write("%s %s %.1f\n" % (name, verdict, seconds[name]))
