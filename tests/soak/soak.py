"""What the soaks share: turns of one seed, programs with a deadline, and what became of them."""
import argparse
import collections
import dataclasses
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEADLINE = 180  # s; nothing here takes a tenth of it on an idle machine
# What a library says, or a program that was not prepared.
LEAKS = re.compile(r"terminate called|what\(\)|c10::|std::|\bException\b|bad_alloc|nlohmann|\[json\.exception|Segmentation|\*\*\* ")


@dataclasses.dataclass
class End:
    code: object  # exit code, negative for a signal, or "deadline"
    output: str
    errors: str

    def words(self):
        return " / ".join((self.output + self.errors).strip().splitlines()[-6:])


def run(program, *arguments, environment=None, directory=None):
    try:
        end = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, errors="replace",
                             timeout=DEADLINE, env={**os.environ, **(environment or {})}, cwd=directory, check=False)
    except subprocess.TimeoutExpired:
        return End("deadline", "", "")
    return End(end.returncode, end.stdout, end.stderr)


def arguments(description, **more):
    """`more`: flag -> (default, help); a default of False is a flag without a value."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20, help="turns (default 20)")
    parser.add_argument("--seconds", type=float, help="turns for so long instead")
    parser.add_argument("--seed", type=int, default=1, help="other turns (default 1)")
    parser.add_argument("--first", type=int, default=1, help="the turn to begin with, to have one again")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="default: build")
    for flag, (default, text) in more.items():
        parser.add_argument(f"--{flag}", default=default, help=text, action="store_true" if default is False else "store")
    return parser.parse_args()


def soak(options, turn):
    """turn(random, folder) -> (what became of it, what is wrong or None). Each turn depends on the seed and its number alone.
    Prints what is wrong as it is found, and leaves its folder; exit code 1 if anything was."""
    outcomes = collections.Counter()
    wrong = 0
    begin = time.monotonic()
    number = options.first
    while time.monotonic() - begin < options.seconds if options.seconds else number < options.first + options.count:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="siphon-soak-"))
        outcome, fault = turn(random.Random(f"{options.seed} {number}"), folder)
        outcomes[outcome] += 1
        if fault:
            wrong += 1
            print(f"turn {number} (--seed {options.seed} --first {number} --count 1): {fault}\n  left in {folder}", flush=True)
        else:
            shutil.rmtree(folder)
        number += 1
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    print(f"{sum(outcomes.values())} turns: {counts}; {wrong} wrong")
    return 1 if wrong else 0
