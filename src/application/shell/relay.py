"""Runs a shell for the host: on a terminal of its own, or a script without one.

Frames go both ways, from the host on stdin, to the host on descriptor 3: a letter, four bytes of length, the bytes.
Host: `i` input, `w` rows and columns of the window. Here: `r` ready, `o` output, `e` errors of a script, `t` the target
file's bytes, `n` why there are none, `x` the exit status, the last one.
"""

import errno
import fcntl
import os
import pty
import select
import stat
import struct
import sys
import termios

HOST = 3
PIECE = 32 << 10
# Seconds between two looks whether the shell has ended. A process in its background may have its output open for longer.
LOOK = 1
# The most bytes that are sent after the shell's end, as much as its pipes may hold. A process in its background may go on writing.
MOST_LEFT = 1 << 20


def send(kind, data=b""):
    frame = kind + struct.pack(">I", len(data)) + data
    while frame:
        frame = frame[os.write(HOST, frame):]


def read(descriptor):
    """Returns some bytes, none at the end. A terminal ends with an error once no process has it open."""
    try:
        return os.read(descriptor, PIECE)
    except OSError as error:
        if error.errno == errno.EIO:
            return b""
        raise


def frames(waiting):
    """Takes the complete frames out of what has arrived."""
    while len(waiting) >= 5:
        length = struct.unpack(">I", waiting[1:5])[0]
        if len(waiting) < 5 + length:
            return
        yield bytes(waiting[:1]), bytes(waiting[5:5 + length])
        del waiting[:5 + length]


def ended(process):
    """Returns the exit status of a process; None while it runs. Not to be called again after it has ended."""
    found, status = os.waitpid(process, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def awaited(process, status):
    """Returns the exit status of a process, and waits for it where the status is None."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) if status is None else status


def resize(terminal, data):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *struct.unpack(">HH", data), 0, 0))


def on_terminal(size):
    process, terminal = pty.fork()
    if process == 0:
        os.execv("/bin/bash", ["bash", "-l"])
    resize(terminal, size)
    os.set_blocking(terminal, False)
    send(b"r")
    arrived, typed, hosts = bytearray(), bytearray(), [0]
    status, left = None, MOST_LEFT
    while left > 0:
        timeout = LOOK if status is None else 0
        readable, writable, _ = select.select([terminal, *hosts], [terminal] if typed else [], [], timeout)
        if status is not None and terminal not in readable:
            break
        if writable and status is None:
            del typed[:os.write(terminal, typed)]
        if 0 in readable:
            data = os.read(0, PIECE)
            hosts = hosts if data else []
            arrived += data
            for kind, data in frames(arrived):
                if kind == b"i":
                    typed += data
                elif kind == b"w":
                    resize(terminal, data)
        if terminal in readable:
            data = read(terminal)
            if not data:
                break
            send(b"o", data)
            left -= 0 if status is None else len(data)
        if status is None:
            status = ended(process)
    return awaited(process, status)


def as_script(path):
    (output, output_end), (errors, errors_end) = os.pipe(), os.pipe()
    process = os.fork()
    if process == 0:
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(output_end, 1)
        os.dup2(errors_end, 2)
        os.execv("/bin/bash", ["bash", path])
    os.close(output_end)
    os.close(errors_end)
    send(b"r")
    kinds = {output: b"o", errors: b"e"}
    status, left = None, MOST_LEFT
    while kinds and left > 0:
        readable = select.select(list(kinds), [], [], LOOK if status is None else 0)[0]
        if status is not None and not readable:
            break
        for descriptor in readable:
            data = read(descriptor)
            if data:
                send(kinds[descriptor], data)
                left -= 0 if status is None else len(data)
            else:
                del kinds[descriptor]
        if status is None:
            status = ended(process)
    return awaited(process, status)


def send_target(path, most):
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return send(b"n", b"it is no regular file")
            data = file.read(most + 1)
    except FileNotFoundError:
        return send(b"n")
    except OSError as error:
        return send(b"n", os.strerror(error.errno).encode())
    if len(data) > most:
        return send(b"n", b"it is too large")
    send(b"t", data)


def main(mode, argument, target, most):
    os.set_inheritable(HOST, False)
    if mode == "terminal":
        rows, columns = argument.split("x")
        status = on_terminal(struct.pack(">HH", int(rows), int(columns)))
    else:
        status = as_script(argument)
    send_target(target, int(most))
    send(b"x", str(status).encode())


main(*sys.argv[1:])
