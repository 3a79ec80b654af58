#!/usr/bin/env python3
"""Writes to FILE when the machine did not get on: that this process, which wants to run every 20 ms, came to run a fifth
of a second late. What a busy machine is to blame for is then known to the judge."""

import json
import sys
import time

from processes import boottime

INTERVAL = 0.02
LATE = 0.2


def main():
    with open(sys.argv[1], "a", buffering=1, encoding="utf-8") as file:
        before = boottime()
        while True:
            time.sleep(INTERVAL)
            now = boottime()
            if now - before > INTERVAL + LATE:
                print(json.dumps({"fault": "stall", "lane": "machine", "begin": before, "end": now}), file=file)
            before = now


if __name__ == "__main__":
    main()
