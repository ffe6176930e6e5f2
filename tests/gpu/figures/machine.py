"""What the figures were measured on, and what the chip does by itself."""
import datetime
import os
import pathlib
import platform
import subprocess

# What an H100 and an H200 do in an 8192^3 product in bf16 of random data, by PyTorch.
NOMINAL_TFLOPS = 790.0

# NumPy is what ranks of the peer talk with.
VERSIONS = """
import numpy, torch
print('torch', torch.__version__)
print('cuda', torch.version.cuda)
print('nccl', '.'.join(map(str, torch.cuda.nccl.version())) if torch.cuda.is_available() else 'not asked')
"""

# A product takes 1.4 ms: hundreds of them, in rounds, of which the median counts.
CHIP = """
import statistics, torch
a, b = (torch.randn(8192, 8192, device='cuda', dtype=torch.bfloat16) for _ in range(2))
out, rates = torch.empty_like(a), []
for _ in range(12):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(20):
        torch.mm(a, b, out=out)
    end.record()
    torch.cuda.synchronize()
    rates.append(20 * 2 * 8192 ** 3 / (begin.elapsed_time(end) * 1e-3) / 1e12)
print(statistics.median(rates[2:]))
"""


def answer(command, limit=120):
    """Standard output and, where the command fails, nothing and what it said."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", str(error)
    return (done.stdout.strip(), "") if done.returncode == 0 else ("", done.stderr.strip()[-500:])


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def device():
    """Name, driver and MiB of the first GPU, or nothing."""
    said, _ = answer(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader,nounits"], 60)
    if not said:
        return {}
    name, driver, memory = [part.strip() for part in said.splitlines()[0].split(",")]
    return {"gpu": name, "driver": driver, "memory_mib": int(memory)}


def facts(python, commit_file):
    """Of the machine; `torch_problem` says why its Python has no torch."""
    known = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), "processor": processor(),
             "cores": os.cpu_count(),
             "host_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") / 2 ** 30, 1), "system": f"{platform.system()} {platform.release()}", **device()}
    versions, problem = answer([python, "-c", VERSIONS]) if python else ("", "no Python for it")
    known.update(line.split(" ", 1) for line in versions.splitlines())
    if problem:
        known["torch_problem"] = problem
    commit = pathlib.Path(commit_file)
    known["commit"] = commit.read_text(encoding="utf-8").strip() if commit.exists() else \
        answer(["git", "rev-parse", "--short", "HEAD"], 10)[0] or "unknown"
    return known


def chip_tflops(python):
    """What this chip does in bf16, and why it is not known."""
    said, problem = answer([python, "-c", CHIP])
    return (float(said.splitlines()[-1]), "") if said else (0.0, problem)


def device_kind(known):
    """As `siphon simulate --device` calls it."""
    for kind in ("H200", "H100", "A100-80", "A100", "V100", "B300"):
        if kind.partition("-")[0] in known.get("gpu", ""):
            return kind
    return "H200"
