"""Runs programs within deadlines, and reads what they leave behind."""
import json
import math
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

KINDNESS_SECONDS = 10
PEER_TRIES = 2  # gloo aborts now and then


class Failed(Exception):
    """A run that did not do what it should; the text says which and why."""


def run(command, limit, log, environment=None):
    """Returns exit code, standard output and seconds; after `limit` seconds the whole process group is killed. Both outputs are in
    `log` as well."""
    begin = time.monotonic()
    # Outputs go to files: a pipe would stay open as long as a grandchild that nobody ended.
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out, open(log, "a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(map(str, command))}\n")
        file.flush()
        process = subprocess.Popen([str(part) for part in command], stdout=out, stderr=file, env=environment, start_new_session=True)
        code = end_of(process, max(limit, 1))
        seconds = time.monotonic() - begin
        out.seek(0)
        output = out.read()
        file.write(f"{output}\n[exit code {code} after {seconds:.1f} s]\n")
    return code, output, seconds


def end_of(process, limit):
    """Its exit code; 124 when it had to be ended, first kindly, so that it can end what it has started."""
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        for number in (signal.SIGTERM, signal.SIGKILL):
            os.killpg(process.pid, number)
            try:
                process.wait(KINDNESS_SECONDS)
                break
            except subprocess.TimeoutExpired:
                pass
        return 124


def last_lines(log, count=6):
    return "\n".join(pathlib.Path(log).read_text(encoding="utf-8", errors="replace").splitlines()[-count:])


def median_of_later(values):
    """The first two steps make whatever there is to make."""
    later = values[2:] if len(values) > 3 else values[1:]
    return statistics.median(later)


class Bench:
    """Where the programs, the server's description and the results are, and how long there is."""

    def __init__(self, siphon, peer, python, server, folder, device, deadline):
        self.siphon, self.peer, self.python, self.server = siphon, peer, python, server
        self.folder, self.device, self.deadline = pathlib.Path(folder), device, deadline
        self.folder.mkdir(parents=True, exist_ok=True)

    def left(self):
        """Seconds for a run, which then has to be ended."""
        return self.deadline - time.monotonic() - 2 * KINDNESS_SECONDS

    def judged(self, met):
        """A goal is a GPU's."""
        return met if self.device == "cuda" else None

    def log(self, name):
        return self.folder / f"{name}.log"

    def write_job(self, job, name):
        directory, file = self.folder / f"run_{name}", self.folder / f"{name}.yaml"
        shutil.rmtree(directory, ignore_errors=True)
        file.write_text(job.yaml(directory, "cpu" if self.device == "cpu" else "cuda", self.server), encoding="utf-8")
        return file, directory

    def ask(self, command, job, name, *more):
        """What `siphon memory`, `plan` or `simulate` says of a job, as JSON; a plan that does not fit says so itself."""
        file, _ = self.write_job(job, name)
        code, output, _ = run([self.siphon, command, file, "--format", "json", *more], min(120, self.left()), self.log(name))
        if code not in (0, 3):
            raise Failed(f"siphon {command} ended with {code}: {last_lines(self.log(name))}")
        return json.loads(output)

    def train(self, job, name):
        """Trains, and returns the exit code, the lines of metrics.jsonl and the seconds of the whole run."""
        file, directory = self.write_job(job, name)
        shared = ["--share_gpu"] if self.device == "cuda" and job.workers > 1 else []
        code, _, seconds = run([self.siphon, "train", file, *shared], self.left(), self.log(name))
        metrics = directory / "metrics.jsonl"
        steps = [json.loads(line) for line in metrics.read_text().splitlines()] if metrics.exists() else []
        return code, steps, seconds

    def speed(self, job, name):
        """Of a job that must train: {tokens_per_second, tflops, host_bytes of a step, peak_bytes, seconds}."""
        code, steps, seconds = self.train(job, name)
        if code != 0 or len(steps) != job.steps:
            raise Failed(f"siphon ended with {code} after {len(steps)} of {job.steps} steps: {last_lines(self.log(name))}")
        losses, first = [step["loss"] for step in steps], job.shape.first_loss()
        if not all(map(math.isfinite, losses)) or abs(losses[0] - first) > 0.5:
            raise Failed(f"siphon did not train from a loss of about {first:.2f}: losses {losses}")
        return {"tokens_per_second": job.shape.tokens() / median_of_later([step["step_seconds"] for step in steps]),
                "tflops": median_of_later([step["tflops"] for step in steps]),
                "host_bytes": max(sum(step["swapped_out_bytes"]["host"]) for step in steps),
                "peak_bytes": max(max(step["peak_bytes"]) for step in steps), "seconds": seconds}

    def peer_speed(self, job, name):
        """Likewise of the peer, in the environment that this script has: none of our libraries is in that (`siphon` brings them)."""
        starter = pathlib.Path(__file__).resolve().parents[1] / "torch_peer.py"
        launch = [self.python] if job.workers == 1 else [self.python, "-m", "torch.distributed.run", "--standalone",
                                                         "--nproc_per_node", job.workers]
        environment = dict(os.environ, OMP_NUM_THREADS=str(job.threads))
        command = [*launch, starter, self.peer, *job.peer_arguments(self.device)]
        for _ in range(PEER_TRIES):
            code, output, seconds = run(command, self.left(), self.log(name), environment)
            reports = [line for line in output.splitlines() if line.startswith("{")]
            if code == 0 and reports:
                break
        else:
            raise Failed(f"the peer ended with {code}: {last_lines(self.log(name))}")
        report = json.loads(reports[-1])
        return {"tokens_per_second": report["tokens_per_second"], "peak_bytes": max(report["peak_bytes"]), "seconds": seconds}


def say(text):
    print(text, flush=True)
