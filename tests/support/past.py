"""Prints redis-cli commands that make the locks of a picture look used, in the form that entry.lua and record.lua
of src/lock describe.

    past.py runs        gives them a day of past runs
    past.py holders     lets those that are held now have been held for a while
"""

import random
import sys
import time
from urllib.parse import quote

MINUTE = 60
NOW = time.time()
CHANCE = random.Random(7)  # the same picture from the same hour
HELD = {"backup": 47, "copies": 3, "deploy-web": 4}  # the locks that are held now, and for how many minutes


def today(clock):
    """The last time that the local clock said so."""
    hour, minute = map(int, clock.split(":"))
    at = time.mktime(time.localtime(NOW)[:3] + (hour, minute, 0, 0, 0, -1))
    return at if at < NOW else at - 24 * 60 * MINUTE


def runs():
    """(lock, start, length in seconds, how it ended, user, host, command) of each run that has ended."""
    yield "backup", today("03:17"), 105 * MINUTE, "0", "root", "db1", "backup.sh --full"
    for hour in range(24):
        end = "1" if hour == 9 else "0"
        length = CHANCE.randint(9, 26) * MINUTE
        yield "import", today(f"{hour:02}:05"), length, end, "cron", "app2", "import.sh"
    for hour in (8, 9, 10, 11, 13, 14, 15, 16):
        minute = CHANCE.randint(0, 45)
        end = {10: "1", 14: "replaced,ci%40runner9%20pid%20812"}.get(hour, "0")
        yield "deploy-web", today(f"{hour:02}:{minute:02}"), CHANCE.randint(3, 8) * MINUTE, end, "ci", "runner7", "deploy.sh web"
    for hour in (0, 6, 12, 18):
        yield "report", today(f"{hour:02}:30"), CHANCE.randint(35, 55) * MINUTE, "0", "cron", "app2", "report.sh"
    for hour in range(7, 20):
        end = "died" if hour == 12 else "0"
        yield "staging-db", today(f"{hour:02}:10"), CHANCE.randint(10, 45) * MINUTE, end, "ci", "runner3", "make integration-test"
    yield "schema", NOW - 8 * 60 * MINUTE, 90, "0", "deploy", "web3", "migrate.sh"


def owner(user, host, command):
    return f"{user}%40{host} {host} 812 {user} {quote(command)} "


def command(*words):
    print(" ".join('"{}"'.format(word.replace("\\", "\\\\").replace('"', '\\"')) for word in words))


def remember(lock, past):
    """The history of a lock."""
    for start, length, end, *who in past:
        acquired, ended = int(start * 1000), int((start + length) * 1000)
        entry = f"{acquired * 1000} {acquired} {ended} 0 1 {end} {owner(*who)}"
        command("RPUSH", f"{{rlock:{lock}}}:history", entry)
    command("HSET", f"{{rlock:{lock}}}:meta", "state", f"1 {len(past)} 0 0 0")


# Moves the start of each holder into the past. The holder goes on renewing.
AGE = """
for _, token in ipairs(redis.call('HKEYS', KEYS[1])) do
  if #token == 32 then
    local record = redis.call('HGET', KEYS[1], token)
    local before, acquired, after = record:match('^(%S+ %S+ %S+ %S+ %S+ %S+ )(%d+)(.*)$')
    redis.call('HSET', KEYS[1], token, before .. string.format('%.0f', acquired - ARGV[1]) .. after)
  end
end
"""


def print_runs():
    past = {}
    for lock, start, length, *rest in sorted(runs(), key=lambda run: run[1]):
        if start + length < NOW - HELD.get(lock, 1) * MINUTE:
            past.setdefault(lock, []).append((start, length, *rest))
    for lock, its_runs in past.items():
        remember(lock, its_runs)


def print_holders():
    for lock, age in HELD.items():
        command("EVAL", " ".join(AGE.split()), "1", f"rlock:{lock}", str(age * MINUTE * 1000))


if __name__ == "__main__":
    {"runs": print_runs, "holders": print_holders}[sys.argv[1]]()
