"""A machine with a GPU, made of stubs in a folder: what pack.sh packs, a Python with torch, nvidia-smi. For tests of the scripts."""
import pathlib
import sys

FIRST_FACTS = """#!/bin/sh
[ -n "${STUB_START:-}" ] && echo "$STUB_START" >&2 && exit 127
[ $# = 0 ] && exit 2
echo "| fact | value |"
exit ${STUB_FACTS:-0}
"""
SUITE = """#!/bin/sh
if [ "${1:-}" = --gtest_list_tests ]; then
  printf 'Running main() of a stub\\nSome.\\n  Case\\n  Other  # GetParam() = 2\\n  Third\\nMore/Cases.\\n  Fourth/a\\n  Fifth/b\\n  Sixth/c\\n'
  exit 0
fi
if [ "${GTEST_SHARD_INDEX:-}" = 1 ] && [ "${STUB_SLEEP:-0}" != 0 ]; then
  printf '[==========] Running 2 tests\\n[ RUN      ] Some.Other\\n'
  sleep $STUB_SLEEP
fi
echo "[==========] 3 tests from 1 test suite ran."
echo "[  PASSED  ] 3 tests. shard ${GTEST_SHARD_INDEX:-none} of ${GTEST_TOTAL_SHARDS:-none}"
if [ "${GTEST_SHARD_INDEX:-}" = 2 ] && [ -n "${STUB_FAILS:-}" ]; then echo "[  FAILED  ] Some.Case"; exit 1; fi
echo "$LD_LIBRARY_PATH" >"${0%/*}/libraries"
exit 0
"""
HOG = """#!/bin/sh
echo "gpu_hog has 100 MiB, $1 MiB are left"
cat >/dev/null
"""
COPY_REPORT = """#!/bin/sh
echo "by copy engines, beside kernels"
"""
NVIDIA_SMI = """#!/bin/sh
echo "NVIDIA H100 80GB HBM3, 580.1, 81559"
"""
# Says what torch would, and is a rank of the peer; whatever else it is asked, the real one does.
PYTHON = """#!{python}
import json, os, sys
arguments, text = sys.argv[1:], " ".join(sys.argv[1:])
if os.environ.get("STUB_NO_TORCH") and "torch" in text and arguments[0] == "-c":
    sys.exit("ModuleNotFoundError: No module named 'torch'")
if arguments[0] == "-c" and "torch" in text:
    if "gpu/lib" in os.environ.get("LD_LIBRARY_PATH", ""):
        sys.exit("asked with our libraries in its way")
    print("750.0" if "8192" in text else "torch 2.11.0+cu130\\ncuda 13.0\\nnccl 2.28.9" if "nccl" in text else
          "2.11.0+cu130\\n{folder}/torch" if "__file__" in text else "2.11.0+cu130")
elif "torch_peer.py" in text:
    print(json.dumps({{"tokens_per_second": 900.0, "peak_bytes": [1]}}))
else:
    os.execv("{python}", ["{python}", *arguments])
"""
SIPHON = """#!{python}
import json, os, pathlib, re, sys
command, rest = sys.argv[1], sys.argv[2:]
if command == "topology":
    sys.exit(0)
job = pathlib.Path(rest[0]).read_text()
layers, hidden = (int(re.search(name + r": (\\d+)", job)[1]) for name in ("layers", "hidden"))
steps, directory = int(re.search(r"steps: (\\d+)", job)[1]), pathlib.Path(re.search(r'directory: "?([^"}}\\n ]+)', job)[1])
capacity = re.search(r"capacity: (\\d+)KiB", job)
deepest = 41 if os.environ.get("STUB_SHALLOW") else 100
total, activations = 100 << 30, 40 << 30
swap = re.search(r"strategy: (\\w+)", job)[1].replace("keep", "host_swap")
missing = max(0, total - int(capacity[1]) * 1024) if capacity else 0
if command == "memory":
    print(json.dumps({{"workers": [{{"activations": activations}}], "max_bytes": total}}))
elif command == "plan":
    print(json.dumps({{"fits": layers <= deepest, "choices": {{swap: missing}}, "kept_step_seconds": 1.0, "step_seconds": 1.02}}))
    sys.exit(0 if layers <= deepest else 3)
elif command == "simulate":
    print(json.dumps({{"channels": [{{"name": "device 0, copies to host", "bytes": missing}}, {{"name": "device 0, copies from host", "bytes": missing}}]}}))
elif "smoke" in rest[0] and os.environ.get("STUB_SMOKE", "none") in rest[0]:
    print("worker 1: a stub fails")
    sys.exit(1)
elif hidden == 16384:
    print("the job does not fit")
    sys.exit(3)
elif hidden == 2048:
    print("worker 0: its device has not the memory")
    sys.exit(1)
elif deepest == 41 and layers in (40, 38):
    print("worker 0: out of memory")
    sys.exit(1)
else:
    directory.mkdir(parents=True, exist_ok=True)
    line = {{"loss": 9.01 + 0.0002 * hidden, "step_seconds": 30.0, "tflops": 400.0, "swapped_out_bytes": {{"d2d": [0, missing] if swap == "d2d_swap" else [0], "host": [0 if swap == "d2d_swap" else missing]}}, "peak_bytes": [1]}}
    (directory / "metrics.jsonl").write_text((json.dumps(line) + "\\n") * steps)
"""


def make(folder):
    """Returns the packed folder and the one for PATH."""
    folder = pathlib.Path(folder)
    packed, path = folder / "gpu", folder / "bin"
    for made in (packed / "lib", packed / "mpi/usr/bin", path, folder / "nvidia/nccl/lib", folder / "torch/lib"):
        made.mkdir(parents=True)
    (folder / "nvidia/nccl/lib/libnccl.so.2").touch()
    for file in ("siphon_activity_recorder.so", "siphon_cuda.so", "torch_train.py"):
        (packed / file).touch()
    (packed / "commit").write_text("abc1234\n")
    programs = {packed / "first_facts": FIRST_FACTS, packed / "gpu_hog": HOG, packed / "copy_report": COPY_REPORT,
                packed / "siphon": SIPHON.format(python=sys.executable), path / "nvidia-smi": NVIDIA_SMI,
                path / "python3": PYTHON.format(python=sys.executable, folder=folder)}
    for suite in ("swap_cuda_test", "nccl_processes_test", "torch_cuda_test", "worker_conformance_test"):
        programs[packed / suite] = SUITE
    for file, text in programs.items():
        file.write_text(text)
        file.chmod(0o755)
    return packed, path
