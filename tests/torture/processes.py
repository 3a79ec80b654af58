"""Processes: started cheaply, told apart, and found again at the end."""

import os
import pathlib
import resource
import signal
import time

MARK = "TORTURE"  # a variable in the environment of every process that a run starts


def boottime():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def spawn(argv, environment, output=os.devnull, errors=None, terminal=""):
    """Starts a process with output and errors in the file named, or in two; errors may be a descriptor. With a terminal
    it leads a session on that one. It is reaped with all other children."""
    write = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    files = [
        (os.POSIX_SPAWN_OPEN, 0, terminal or os.devnull, os.O_RDWR if terminal else os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(output), write, 0o644),
    ]
    if isinstance(errors, int):
        files.append((os.POSIX_SPAWN_DUP2, errors, 2))
    else:
        files.append((os.POSIX_SPAWN_OPEN, 2, str(errors or output), write, 0o644))
    reset = [signal.SIGPIPE, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP]  # whatever has started the torture ignores
    return os.posix_spawnp(argv[0], argv, environment, file_actions=files, setsigdef=reset, setsid=bool(terminal))


def full_pipe():
    """A pipe that nobody reads and that takes nothing more: both its ends."""
    read, write = os.pipe()
    other = os.open(f"/proc/self/fd/{write}", os.O_WRONLY | os.O_NONBLOCK)  # the one above is to block
    try:
        while True:
            os.write(other, bytes(4096))
    except BlockingIOError:
        os.close(other)
    return read, write


def forbid_descriptors(pid):
    """Lets it have those that it has, but no other."""
    try:
        used = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
        most = next(number for number in range(len(used) + 1) if number not in used)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))
    except (FileNotFoundError, ProcessLookupError):
        pass


def reap():
    """Yields (pid, exit status or minus the signal) of each child that has ended."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, os.waitstatus_to_exitcode(status)


def first_child(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()[0])
    except (OSError, IndexError):
        return None


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def marked(value):
    """The pids of all processes that carry the mark and are not zombies."""
    mark = f"{MARK}={value}".encode()
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)
        except OSError:
            pass
