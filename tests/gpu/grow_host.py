#!/usr/bin/env python3
"""Makes a virtual machine whose memory grows with its use show what it has, since programs are refused what they cannot see.

    grow_host.py GIB [SECONDS]      touches up to GIB for at most so long, gives it back, and says what MemTotal was meanwhile

Where the machine shows that much at once, nothing is touched. Never an error: what comes of it is a fact of the machine.
"""
import mmap
import multiprocessing
import pathlib
import sys
import time

GIB = 1 << 30
PROCESSES = 8
BLOCK = 128 << 20
# Left to everybody else while the machine has not grown yet, whatever all processes take at once.
SPARE = (512 << 20) + PROCESSES * BLOCK


def meminfo(name, file="/proc/meminfo"):
    for line in pathlib.Path(file).read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0


def touch(gibibytes, deadline, done):
    # Whoever runs out of memory is this process.
    pathlib.Path("/proc/self/oom_score_adj").write_text("1000", encoding="utf-8")
    held = []
    while len(held) * BLOCK < gibibytes * GIB and time.monotonic() < deadline:
        if meminfo("MemAvailable") < SPARE:
            time.sleep(0.2)
            continue
        held.append(mmap.mmap(-1, BLOCK, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE))
        with done.get_lock():
            done.value += BLOCK
    # As long as the others are at it.
    while time.monotonic() < deadline and done.value < gibibytes * GIB * PROCESSES:
        time.sleep(0.1)


def grow(gibibytes, seconds):
    """Returns MemTotal before, at its largest and afterwards, and the GiB that were in use."""
    before = most = meminfo("MemTotal")
    if before >= gibibytes * GIB:
        return before, before, before, 0
    deadline, done = time.monotonic() + seconds, multiprocessing.Value("q", 0)
    each = -(-gibibytes // PROCESSES)
    workers = [multiprocessing.Process(target=touch, args=(each, deadline, done)) for _ in range(PROCESSES)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers) and time.monotonic() < deadline + 5:
        most = max(most, meminfo("MemTotal"))
        time.sleep(0.1)
    for worker in workers:
        worker.kill()
        worker.join()
    return before, most, meminfo("MemTotal"), done.value // GIB


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    before, most, after, used = grow(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) == 3 else 60)
    print(f"the host shows {before / GIB:.1f} GiB at first, {most / GIB:.1f} GiB with {used} GiB in use, {after / GIB:.1f} GiB afterwards")
    return 0


if __name__ == "__main__":
    sys.exit(main())
