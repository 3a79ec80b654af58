#!/usr/bin/env python3
"""Runs COMMAND as a session leader on a terminal of its own, and plays the user there, by the steps that standard input
has on its lines. Prints all that the terminal showed; exits with the command's status, or 128+n if signal n ended it.

    expect TEXT    waits until the terminal has shown TEXT since the last expectation
    until COMMAND  waits until the shell command succeeds
    type TEXT      types TEXT and the return key
    key C          presses Control with the letter C
    do COMMAND     runs a shell command outside the terminal
    resize         gives the window another size
    hang-up        closes the terminal
"""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

PATIENCE = 20


class Terminal:
    def __init__(self, command):
        self.shown = b""
        self.seen = 0
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvp(command[0], command)

    def look(self):
        """False when the last program has closed the terminal."""
        if not select.select([self.fd], [], [], 0.02)[0]:
            return True
        try:
            text = os.read(self.fd, 65536)
        except OSError:
            text = b""
        self.shown += text
        return text != b""

    def wait_for(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if not self.look() or time.monotonic() > deadline:
                raise TimeoutError(f"waited in vain for: {what}")

    def expect(self, text):
        self.wait_for(lambda: text.encode() in self.shown[self.seen :], f"expect {text}")
        self.seen = self.shown.index(text.encode(), self.seen) + len(text)

    def step(self, line):
        verb, _, text = line.partition(" ")
        if verb == "expect":
            self.expect(text)
        elif verb == "until":
            self.wait_for(lambda: shell(text) == 0, line)
        elif verb == "type":
            os.write(self.fd, text.encode() + b"\n")
        elif verb == "key":
            os.write(self.fd, bytes([ord(text) & 31]))
        elif verb == "do":
            shell(text)
        elif verb == "resize":
            fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("4H", 30, 100, 0, 0))
        elif verb == "hang-up":
            os.close(self.fd)
            self.fd = -1

    def ended(self):
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        self.status = status
        return pid != 0

    def finish(self):
        deadline = time.monotonic() + PATIENCE
        while not self.ended():
            if self.fd < 0 or not self.look():
                time.sleep(0.02)
            if time.monotonic() > deadline:
                raise TimeoutError("waited in vain for the command to end")
        while self.fd >= 0 and select.select([self.fd], [], [], 0)[0] and self.look():
            pass
        return self.status


def shell(command):
    return subprocess.run(command, shell=True, stdin=subprocess.DEVNULL, check=False).returncode


terminal = Terminal(sys.argv[1:])
try:
    for line in sys.stdin.read().splitlines():
        terminal.step(line)
    status = os.waitstatus_to_exitcode(terminal.finish())
except TimeoutError as error:
    os.kill(terminal.pid, signal.SIGKILL)
    print(error, file=sys.stderr)
    status = 99
sys.stdout.buffer.write(terminal.shown.replace(b"\r", b""))
sys.exit(status if status >= 0 else 128 - status)
