"""Scores Harbor's trials of TestEvo-Bench tasks with testevo-sandbox, on the machine that runs Harbor.

    PYTHONPATH=TASKS harbor run -p TASKS -a AGENT --verifier testevo_sandbox_harbor:HostVerifier

TASKS is a directory that `testevo-sandbox export harbor` wrote. Arguments, each as `--verifier-kwarg NAME=VALUE`:

    program   the program; `testevo-sandbox` by default
    options   further options of `testevo-sandbox score`, as a shell would read them

Nothing of a trial's container decides a reward: the target file that Harbor collected is scored in containers of
testevo-sandbox's own. A fault of the machine gives no reward.
"""

import asyncio
import os
import shlex
import shutil
import tempfile
import uuid

from harbor.models.verifier.result import VerifierResult
from harbor.verifier.base import BaseVerifier

from testevo_sandbox_rewards import ScoringError, rewards


class HostVerifier(BaseVerifier):
    # One scoring run uses all processors, so trials take turns.
    _turn = asyncio.Lock()

    def __init__(self, *, program="testevo-sandbox", options="", **arguments):
        super().__init__(**arguments)
        self._program = program
        self._options = shlex.split(str(options))
        self._errors = []

    async def verify(self):
        task = self.task.config.metadata.get("task_id")
        if not isinstance(task, str):
            raise ScoringError("task.toml names no task_id in [metadata]; export the task again")
        trial = str(self.trial_paths.trial_dir)
        run = f"harbor-{uuid.uuid4().hex[:16]}"
        with tempfile.TemporaryDirectory(prefix="testevo-sandbox-") as directory:
            predictions = os.path.join(directory, "predictions.jsonl")
            try:
                async with HostVerifier._turn:
                    prediction = await self._output("import", "harbor", trial, "--task", task)
                    with open(predictions, "wb") as file:
                        file.write(prediction)
                    await self._output(
                        "score", task, "--predictions", predictions, "--run-id", run, *self._options
                    )
                    table = await self._output("report", run, "--format", "csv")
            finally:
                self._keep("scoring.log", b"".join(self._errors))
        self._keep("predictions.jsonl", prediction)
        self._keep("report.csv", table)
        return VerifierResult(rewards=rewards(table.decode()))

    def _keep(self, name, content):
        """Writes a file beside the trial's logs, a directory that the agent could write to: no link is followed."""
        path = os.path.join(str(self.trial_paths.verifier_dir), name)
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except IsADirectoryError:
            shutil.rmtree(path, ignore_errors=True)
            # What can't be removed, for its files are another user's, is moved away.
            if os.path.lexists(path):
                os.rename(path, f"{path}.{uuid.uuid4().hex}")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "wb") as file:
            file.write(content)

    async def _output(self, *arguments):
        """Runs the program, which gets no signal of Harbor's terminal. Returns its stdout."""
        process = await asyncio.create_subprocess_exec(
            self._program,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        ended = asyncio.ensure_future(process.communicate())
        try:
            output, errors = await asyncio.shield(ended)
        except asyncio.CancelledError:
            # As Ctrl-C does: the program stops its containers before it ends.
            if process.returncode is None:
                process.terminate()
            await ended
            raise
        self._errors.append(errors)
        if process.returncode != 0:
            last = errors.decode(errors="replace").strip()[-2000:]
            raise ScoringError(f"`{arguments[0]}` ended with exit code {process.returncode}: {last}")
        return output
