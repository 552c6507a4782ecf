#!/usr/bin/env python3
"""Three nodes for whoever wants them: serve.py --directory DIR --brokers FILE (--dohle PROGRAM | --java WORDS)
[KEY=VALUE...]. Their addresses are in FILE when all is well. TERM stops them; the exit status is 0 when all ended
well."""

import argparse
import json
import os
import signal
import sys
import threading

from node import DohleNode, KafkaNode
from three import Cluster, NotSettled

STOP_S = 180


def arguments():
    p = argparse.ArgumentParser()
    for word in ("--directory", "--brokers"):
        p.add_argument(word, required=True)
    p.add_argument("--dohle")
    p.add_argument("--java", type=json.loads)
    p.add_argument("settings", nargs="*")
    return p.parse_args()


def tell(path, text):
    with open(path + ".tmp", "w", encoding="utf-8") as f:
        f.write(text)
    os.rename(path + ".tmp", path)


def main():
    args = arguments()
    asked = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked.set())

    def node(*words):
        return KafkaNode(*words, args.java) if args.java else DohleNode(*words, args.dohle)

    cluster = Cluster(args.directory, node, dict(s.split("=", 1) for s in args.settings), proxied=False)
    try:
        cluster.start()
        tell(args.brokers, cluster.brokers)
        asked.wait()
        bad = cluster.stop(STOP_S)
        # Apache Kafka's last node waits for a controller that will not come.
        return "nodes %s did not end well" % bad if bad and not args.java else 0
    except NotSettled as e:
        return str(e)
    finally:
        cluster.close()


if __name__ == "__main__":
    sys.exit(main())
