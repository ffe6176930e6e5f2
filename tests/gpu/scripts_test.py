#!/usr/bin/env python3
"""The scripts that run on a machine with a GPU, on one that is made of stubs: what they say, that they end, what they leave behind."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import grow_host
import stub_machine
import torch_peer

RUN = pathlib.Path(__file__).resolve().parent / "run.sh"


class RunOnStubs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="siphon-gpu-scripts-")
        self.packed, self.path = stub_machine.make(self.folder.name)
        self.out = pathlib.Path(self.folder.name) / "out"

    def tearDown(self):
        self.folder.cleanup()

    def run_sh(self, *arguments, **environment):
        variables = {**os.environ, "PATH": f"{self.path}:{os.environ['PATH']}", "OUT": str(self.out),
                     "SIPHON_GPU_PACKED": str(self.packed), "SIPHON_GPU_HOST_GIB": "1", "LD_LIBRARY_PATH": "", **environment}
        done = subprocess.run([RUN, *arguments], env=variables, capture_output=True, text=True, timeout=100)
        summary = self.out / "summary.md"
        return done, summary.read_text() if summary.exists() else ""

    def test_everything_is_run_and_summed_up_in_few_files(self):
        done, summary = self.run_sh()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        steps = ["smoke", "host_memory", "first_facts", "probe", "full_device", "copies", "swap_cuda_test", "nccl_processes_test",
                 "torch_cuda_test", "torch_cuda_test_expandable", "worker_conformance_first_0", "worker_conformance_rest_3",
                 "nccl_processes_test_of_3", "figures"]
        places = [summary.find(f"| {step} | passed |") for step in steps]
        self.assertNotIn(-1, places, summary)
        self.assertEqual(places, sorted(places))
        self.assertIn("shard 3 of 4", summary)
        for file in ("summary.md", "first_facts.md", "copies.md", "figures.md"):
            self.assertIn("NVIDIA H100 80GB HBM3 (81559 MiB), driver 580.1", (self.out / file).read_text().splitlines()[0])
        files = sorted(file.name for file in self.out.rglob("*"))
        self.assertEqual(files, ["copies.md", "figures.json", "figures.md", "first_facts.md", "logs.tar.gz", "summary.md"])
        with tarfile.open(self.out / "logs.tar.gz") as logs:
            self.assertIn("logs/worker_conformance_rest_2.log", logs.getnames())
        libraries = (self.packed / "libraries").read_text()
        self.assertIn("nccl/lib", libraries)
        self.assertIn(f"{self.packed}/lib", libraries)

    def test_figures_are_measured_in_turns_and_held_against_their_goals(self):
        done, summary = self.run_sh("figures", STUB_SHALLOW="1")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(summary, r"\| figures \| goal MISSED \| \d+ \| 4 goals met, missed: largest GPT")
        figures = json.loads((self.out / "figures.json").read_text())
        self.assertEqual(figures["machine"]["commit"], "abc1234")
        rows = {row["figure"]: row for row in figures["rows"]}
        peer = rows["one_worker: tokens/s of the peer's"]
        self.assertIn("1.214 (1.214 to 1.214, 3 rounds): 1092 and 900 tokens/s", peer["value"])
        self.assertTrue(peer["met"])
        self.assertEqual(rows["one_worker: of 790 TFLOP/s"]["value"], "50.6%, 400.0 TFLOP/s")
        self.assertEqual(rows["one_worker: of an 8192^3 bf16 product here"]["value"], "53.3% of 750 TFLOP/s")
        swap = rows["host swap of 40% of the activations: speed of no swap"]
        self.assertIn("1.000 (1.000 to 1.000, 3 rounds); 40% swapped, planned 0.980", swap["value"])
        # 42 layers have no plan, 40 and 38 end for want of memory.
        self.assertEqual([tried["ended"] for tried in figures["details"]["largest"]["tries"]], ["no plan fits", 1, 1, 0])
        largest = rows["largest GPT on one GPU, the host taking the rest"]
        self.assertIn("36 layers", largest["why"])
        self.assertFalse(largest["met"])

    def test_the_first_tiny_job_that_fails_is_shown_and_ends_all(self):
        done, summary = self.run_sh(STUB_SMOKE="host_swap")
        self.assertEqual(done.returncode, 1)
        self.assertIn("smoke: two_workers: passed", done.stdout)
        self.assertIn("worker 1: a stub fails", done.stdout)
        self.assertRegex(summary, r"\| smoke \| FAILED: exit code 1 \| \d+ \| smoke: host_swap: FAILED: exit code 1 after \d s \|")
        self.assertNotIn("d2d_swap", done.stdout)
        self.assertNotIn("first_facts |", summary)

    def test_a_case_that_fails_is_named_and_the_others_go_on(self):
        done, summary = self.run_sh("conformance", STUB_FAILS="1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("| worker_conformance_first_2 | FAILED: exit code 1 |", summary)
        self.assertIn("FAILED Some.Case", summary)
        self.assertIn("| worker_conformance_rest_0 | passed |", summary)

    def test_what_hangs_is_ended_at_the_deadline(self):
        begin = time.monotonic()
        done, summary = self.run_sh("conformance", STUB_SLEEP="90", SIPHON_GPU_SECONDS="9")
        self.assertLess(time.monotonic() - begin, 40)
        self.assertEqual(done.returncode, 1)
        # Of six cases the second shard of four has two.
        self.assertRegex(summary, r"worker_conformance_first_1 \| FAILED: not done after \d s .*; did not end: Some.Other; not begun: More/Cases.Sixth/c \|")
        self.assertIn("| worker_conformance_first_0 | passed |", summary)
        self.assertRegex(summary, r"worker_conformance_rest_2 \| LEFT OUT .* did not end: none; not begun: Some.Third \|")

    def test_a_python_without_torch_is_said_and_not_asked_twice(self):
        done, summary = self.run_sh("conformance", STUB_NO_TORCH="1")
        self.assertEqual(done.returncode, 1, "what is skipped on a device is a failure")
        self.assertIn("cannot import torch: ModuleNotFoundError: No module named 'torch'", done.stdout)
        self.assertIn("| worker_conformance_test | skipped | 0 | because", summary)
        self.assertIn("| swap_cuda_test | passed |", summary)

    def test_a_machine_without_a_gpu_is_no_failure(self):
        done, _ = self.run_sh(STUB_FACTS="77")
        self.assertEqual(done.returncode, 0)
        self.assertIn("gpu: skipped, because this machine has no GPU", done.stdout)

    def test_programs_that_do_not_start_say_why_and_nothing_of_a_glibc(self):
        done, _ = self.run_sh(STUB_START="libhwloc.so.15: cannot open shared object file")
        self.assertEqual(done.returncode, 1)
        self.assertIn("do not start here: first_facts ended with 127: libhwloc.so.15: cannot open", done.stdout)
        self.assertNotIn("glibc", done.stdout)

    def test_an_older_glibc_is_said_with_its_text(self):
        loader = self.packed / "glibc/ld-linux-x86-64.so.2"
        loader.parent.mkdir()
        loader.write_text("#!/bin/sh\nshift 2\nexec env -u STUB_START \"$@\"\n")
        loader.chmod(0o755)
        done, summary = self.run_sh("conformance", STUB_START="version `GLIBC_2.38' not found")
        self.assertEqual(done.returncode, 1)
        self.assertIn("| swap_cuda_test | passed |", summary)
        self.assertIn("| torch_cuda_test | skipped | 0 | because this machine's glibc is older than ours: first_facts ended with 127: "
                      "version `GLIBC_2.38' not found |", summary)

    def test_a_missed_goal_of_the_device_is_a_failure(self):
        done, summary = self.run_sh("facts", STUB_FACTS="3")
        self.assertEqual(done.returncode, 1)
        self.assertIn("| first_facts | goal MISSED |", summary)
        self.assertIn("| full_device | passed |", summary)

    def test_a_figure_without_time_for_it_is_left_out_and_says_so(self):
        done, summary = self.run_sh("figures", "one_worker", "largest", SIPHON_GPU_SECONDS="100")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(summary, r"largest: round 1 left out, as about 120 s of it did not fit into \d+ s")
        self.assertIn("not everything was measured", summary)

    def test_what_was_packed_is_unpacked(self):
        with tarfile.open(f"{self.packed}.tar.gz", "w:gz") as archive:
            archive.add(self.packed, "gpu")
        shutil.rmtree(self.packed)
        done, summary = self.run_sh("conformance")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("| worker_conformance_rest_2 | passed |", summary)

    def test_an_unknown_word_shows_how_it_is_used(self):
        done, _ = self.run_sh("everything")
        self.assertEqual(done.returncode, 2)
        self.assertIn("tests/gpu/run.sh figures", done.stdout)


class Peer(unittest.TestCase):
    def test_ranks_that_share_a_device_are_hosts_of_their_own(self):
        environment = {"RANK": "1", "NCCL_NET": "mine"}
        torch_peer.share_the_device(environment)
        self.assertEqual(environment["NCCL_HOSTID"], "peer1")
        self.assertEqual(environment["NCCL_SOCKET_IFNAME"], "lo")
        self.assertEqual(environment["NCCL_NET"], "mine")

    def test_the_device_is_the_script_s(self):
        self.assertEqual(torch_peer.device_of(["--layers", "2", "--device", "cuda"]), "cuda")
        self.assertEqual(torch_peer.device_of(["--device=cuda"]), "cuda")
        self.assertEqual(torch_peer.device_of([]), "cpu")


class GrowingHost(unittest.TestCase):
    def test_what_is_shown_already_is_not_touched(self):
        before, most, after, used = grow_host.grow(0, 1)
        self.assertEqual((before, used), (grow_host.meminfo("MemTotal"), 0))
        self.assertEqual((before, most), (before, after))

    def test_it_ends_in_time_whatever_comes_of_it(self):
        begin = time.monotonic()
        before, most, _, _ = grow_host.grow(1 << 20, 0.01)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertGreaterEqual(most, before)


if __name__ == "__main__":
    unittest.main()
