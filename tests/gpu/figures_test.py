#!/usr/bin/env python3
"""All figures in small on the CPU, with the real program, and with the peer where a Python with torch is there (SIPHON_PYTORCH_PYTHON).

    figures_test.py SIPHON
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "figures"))
import runs
import summary
from jobs import Shape

PEER = HERE.parents[1] / "../shared/peers/torch_train.py"


class Parts(unittest.TestCase):
    def test_a_table_says_what_is_met_and_what_cannot_be_said(self):
        row = {"figure": "speed", "value": "1.2", "goal": "at least 1", "met": True, "why": "a GPT"}
        rows = [row, {**row, "met": False, "why": ""}, {**row, "met": None, "goal": ""}]
        self.assertEqual(summary.table(rows).splitlines()[2:], [
            "| speed (a GPT) | 1.2 | at least 1 | yes |", "| speed | 1.2 | at least 1 | **no** |", "| speed (a GPT) | 1.2 | - | - |"])

    def test_the_first_steps_do_not_count(self):
        self.assertEqual(runs.median_of_later([90, 50, 1, 2, 3, 4]), 2.5)
        self.assertEqual(runs.median_of_later([90, 1, 2]), 1.5)

    def test_what_hangs_is_ended_with_all_that_it_started(self):
        with tempfile.TemporaryDirectory() as folder:
            code, output, seconds = runs.run(["sh", "-c", "echo begun; sleep 60 & sleep 60"], 1, f"{folder}/log")
        self.assertEqual((code, output), (124, "begun\n"))
        self.assertLess(seconds, 20)

    def test_parameters_are_as_siphon_counts_them(self):
        shape = Shape(layers=2, hidden=64, heads=2, sequence=32, microbatch=2, microbatches=4, vocabulary=256)
        self.assertEqual(shape.parameters(), 2 * (12 * 64 * 64 + 13 * 64) + (2 * 256 + 32 + 2) * 64)


class Tiny(unittest.TestCase):
    def test_every_figure_is_measured(self):
        python = os.environ.get("SIPHON_PYTORCH_PYTHON", "")
        with tempfile.TemporaryDirectory(prefix="siphon-figures-") as folder:
            done = subprocess.run([sys.executable, "-B", HERE / "figures", "--device", "cpu", "--tiny", "--siphon", SIPHON, "--python", python,
                                   "--peer", PEER, "--results", folder, "--seconds", "900"], capture_output=True, text=True, timeout=550)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            figures = json.loads(pathlib.Path(folder, "figures.json").read_text())
            self.assertIn("| figure | measured | goal | met |", pathlib.Path(folder, "figures.md").read_text())
        rows = {row["figure"]: row for row in figures["rows"]}
        peer = rows["one_worker: tokens/s of the peer's"]
        if python and PEER.exists():
            self.assertRegex(peer["value"], r"^\d+\.\d+ \(.*1 rounds\): \d+ and \d+ tokens/s$")
            self.assertEqual(len(figures["details"]["two_workers"]["peer"]), 1)
        else:
            self.assertIn("skipped, because", peer["why"])
        swap = figures["details"]["host_swap"]
        self.assertGreaterEqual(swap["pairs"][0]["swapped"]["host_bytes"], 0.4 * swap["activations"])
        self.assertEqual(swap["pairs"][0]["kept"]["host_bytes"], 0)
        self.assertEqual(sorted(figures["details"]["determinism"]["pairs"][0]), ["free", "required"])
        self.assertEqual(figures["details"]["largest"]["tries"][-1]["ended"], 0)
        self.assertEqual({row["met"] for row in figures["rows"]}, {None}, "a CPU says nothing of a goal")


if __name__ == "__main__":
    SIPHON = sys.argv.pop(1)
    unittest.main()
