#!/usr/bin/env python3
"""While this runs, whoever executes FILE hangs in exec: its permission is asked of us, and we do not answer.

    hang_exec.py FILE
"""

import ctypes
import os
import sys
import time

FAN_CLASS_CONTENT, FAN_CLOEXEC, FAN_MARK_ADD, FAN_OPEN_EXEC_PERM, AT_FDCWD = 4, 1, 1, 0x40000, -100

libc = ctypes.CDLL(None, use_errno=True)
libc.fanotify_mark.argtypes = [ctypes.c_int, ctypes.c_uint, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p]
group = libc.fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, os.O_RDONLY)
if group < 0 or libc.fanotify_mark(group, FAN_MARK_ADD, FAN_OPEN_EXEC_PERM, AT_FDCWD, sys.argv[1].encode()) < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("armed", flush=True)
time.sleep(600)
