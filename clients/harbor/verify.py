"""Scores the target file that Harbor returned to a verifier's container, and writes the reward. Runs as root.

The image has this script, the program and a bundle for scorers in one directory. `task.toml` sets these variables:

    TESTEVO_TASK      the task's id
    TESTEVO_TARGET    the absolute path of the target file
    TESTEVO_OPTIONS   further options of `testevo-sandbox score`, as a shell would read them

Tests run in containers of their own inside this one, which see neither the logs nor the bundle. Where such containers can't be
made, or another fault of the machine leaves a method without a verdict, there is no reward and the exit code is not 0.
"""

import errno
import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile

from testevo_sandbox_rewards import ScoringError, rewards

HOME = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HOME, "testevo-sandbox")
LOGS = "/logs/verifier"
RUN = "verified"
# The largest target file, in bytes. Source: docs/harbor.md.
MOST_BYTES = 4 << 20


def main():
    task, path = os.environ["TESTEVO_TASK"], os.environ["TESTEVO_TARGET"]
    options = shlex.split(os.environ.get("TESTEVO_OPTIONS", ""))
    before = os.stat(LOGS)
    # The directory is writable for everybody. Until the reward is written nobody else enters it.
    os.chown(LOGS, 0, 0)
    os.chmod(LOGS, 0o700)
    # Harbor reads either file, whatever the exit code is.
    for name in ("reward.json", "reward.txt"):
        forget(name)
    try:
        verify(task, path, options)
    finally:
        os.chmod(LOGS, stat.S_IMODE(before.st_mode))
        os.chown(LOGS, before.st_uid, before.st_gid)


def verify(task, path, options):
    prediction = {"instance_id": task, "model_name_or_path": "harbor"}
    text = target(path)
    prediction.update({"model_patch": ""} if text is None else {"model_file": text})
    line = json.dumps(prediction)
    keep("predictions.jsonl", line)
    with tempfile.TemporaryDirectory() as directory, Log() as log:
        predictions = os.path.join(directory, "predictions.jsonl")
        with open(predictions, "w", encoding="utf-8") as file:
            file.write(line)
        bundle = os.path.join(HOME, "bundle")
        score = ["score", task, "--bundle", bundle, "--predictions", predictions, "--engine", "native"]
        run(log, *score, "--jobs", "1", "--run-id", RUN, *options)
        report = run(log, "report", RUN, "--format", "csv")
    keep("report.csv", report)
    # The last file: where it is, everything before it succeeded.
    keep("reward.json", json.dumps(rewards(report)))


def target(path):
    """Returns the target file's text; None if there is none, or if it is refused: then the agent handed in nothing."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        # A socket, a device without a driver, or a link.
        if error.errno not in (errno.ENXIO, errno.ENODEV, errno.ELOOP, errno.ENOTDIR):
            raise
        return refused(path, error.strerror)
    # `open` raises an error for a directory.
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        return refused(path, "it is no file")
    with open(file, "rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        return refused(path, f"it has more than {MOST_BYTES} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return refused(path, "it is no UTF-8")


def refused(path, reason):
    print(f"the target file `{path}` counts as missing: {reason}", file=sys.stderr)
    return None


class Log:
    """What the program says of its work, also where it fails."""

    def __enter__(self):
        self.text = []
        return self

    def __exit__(self, *_):
        keep("scoring.log", "".join(self.text))


def run(log, *arguments):
    """Runs the program and returns its stdout."""
    ended = subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    said = ended.stderr.decode(errors="replace")
    log.text.append(said)
    if ended.returncode != 0:
        last = said.strip()[-2000:]
        raise ScoringError(f"`{arguments[0]}` ended with exit code {ended.returncode}: {last}")
    return ended.stdout.decode()


def keep(name, text):
    """Writes a new file among the logs. What was there under its name goes; no link is followed."""
    forget(name)
    path = os.path.join(LOGS, name)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "w", encoding="utf-8") as file:
        file.write(text)


def forget(name):
    path = os.path.join(LOGS, name)
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except IsADirectoryError:
        shutil.rmtree(path)


if __name__ == "__main__":
    try:
        main()
    except ScoringError as error:
        sys.exit(f"no reward: {error}")
