"""Figures of speed and size of Siphon on a GPU, each with its goal: figures.json and a table, figures.md.

    python3 tests/gpu/figures [NAME...]     see NAMES; all of them without a name

Rounds are pairs of runs in turns, of Siphon and its peer or of Siphon in two ways; each figure has one before any has a second, as
long as there is time. On a CPU, `--device cpu --tiny` runs all of it in small, and the figures say nothing. Exit code 0 when all that was
asked for was measured and every goal met; 1 when a run failed or was left out; 3 when a goal was missed; 77 without a GPU.
"""
import argparse
import pathlib
import sys
import time

import machine
import measurements as m
import summary
from jobs import ONE_DEVICE
from runs import Bench, Failed, say

ROOT = pathlib.Path(__file__).resolve().parents[3]
NAMES = ["one_worker", "host_swap", "two_workers", "largest", "determinism"]
# Of nvidia-smi's figure: what the driver keeps, a context, and parts of blocks that are in nobody's use.
NOT_FOR_TENSORS_MIB = 2048
# Less than what Siphon lets workers lock of a machine's memory, seven eighths.
PART_OF_HOST = 0.85


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="figures, in the order in which they are measured")
    parser.add_argument("--siphon", type=pathlib.Path, default=ROOT / "build/siphon")
    parser.add_argument("--peer", type=pathlib.Path, default=ROOT / "build/gpu/torch_train.py")
    parser.add_argument("--python", default=sys.executable, help="one that imports torch; empty: no peer")
    parser.add_argument("--server", type=pathlib.Path, help="a topology file of this machine; default: one device of its kind")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "build/gpu/results")
    parser.add_argument("--commit", type=pathlib.Path, default=ROOT / "build/gpu/commit")
    parser.add_argument("--seconds", type=float, default=500, help="how long it may take")
    parser.add_argument("--host-gib", type=int, default=108, help="what the largest GPT may have of the host, if that shows so much")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--tiny", action="store_true")
    args = parser.parse_args()
    unknown = sorted(set(args.names) - set(NAMES))
    if unknown:
        parser.error(f"no figure {', '.join(unknown)}; there are {', '.join(NAMES)}")
    args.names = args.names or NAMES
    return args


def server_file(args, known):
    if args.server is not None and args.server.exists():
        return args.server.resolve()
    file = args.results / "one_device.yaml"
    file.write_text(ONE_DEVICE.format(device=machine.device_kind(known), memory=known.get("memory_mib", 139 << 10) >> 10), encoding="utf-8")
    return file.resolve()


def wanted(args, bench, known, notes):
    """The measurements, as made for this machine or tiny."""
    peer_missing = known.get("torch_problem", "")
    if not peer_missing and not args.peer.exists():
        peer_missing = f"there is no {args.peer}"
    chip = (machine.NOMINAL_TFLOPS, 0.0)
    if args.device == "cuda" and "torch" in known:
        measured, problem = machine.chip_tflops(args.python)
        chip = (machine.NOMINAL_TFLOPS, measured)
        if problem:
            notes.append(f"the chip's own rate was not measured: {problem}")
    one, swapped, deepest = (m.TINY,) * 3 if args.tiny else (m.ONE_WORKER, m.SWAPPED, m.DEEPEST)
    if args.tiny:
        memory = bench.ask("memory", m.Job(deepest, steps=4), "largest")
        largest = m.Largest(bench, deepest, 1, 1, f"{memory['max_bytes'] * 3 // 4 // 1024}KiB", "1MiB", 1)
    else:
        capacity = known.get("memory_mib", 140 << 10) - NOT_FOR_TENSORS_MIB
        host = int(min(args.host_gib, PART_OF_HOST * known["host_gib"]))
        largest = m.Largest(bench, deepest, 2, 8, f"{capacity}MiB", f"{host}GiB", 16)
    rounds = 1 if args.tiny else 3
    made = {"one_worker": m.AgainstPeer(bench, "one_worker", one, 1, rounds, peer_missing, chip),
            "two_workers": m.AgainstPeer(bench, "two_workers", one, 2, min(rounds, 2), peer_missing, chip),
            "host_swap": m.HostSwap(bench, swapped, rounds), "largest": largest,
            "determinism": m.Determinism(bench, one, min(rounds, 2))}
    return [made[name] for name in args.names]


def measure(args, bench, known, asked, notes):
    """Returns whether every round that was begun succeeded."""
    all_well, broken = True, set()
    for number in range(max(one.rounds for one in asked)):
        for one in asked:
            if number >= one.rounds or one.name in broken:
                continue
            # Whatever else has room, what was asked for first is tried.
            if one.guess > bench.left() and (number, one) != (0, asked[0]):
                notes.append(f"{one.name}: round {number + 1} left out, as about {one.guess:.0f} s of it did not fit into "
                             f"{bench.left():.0f} s")
                all_well = all_well and number > 0
                continue
            begin = time.monotonic()
            say(f"{one.name}, round {number + 1}: {bench.left():.0f} s left")
            try:
                one.run_round(number)
                one.guess = 1.1 * (time.monotonic() - begin)
            except (Failed, KeyError, ValueError, OSError) as error:
                all_well = False
                broken.add(one.name)
                notes.append(f"{one.name}: round {number + 1} failed: {type(error).__name__}: {' / '.join(str(error).splitlines())}")
                say(notes[-1])
            summary.write(args.results, known, asked, notes)
            for row in one.rows():
                say(f"  {row['figure']}: {row['value']}, goal {row['goal'] or '-'}, met: {summary.MET[row['met']]}")
    return all_well


def main():
    deadline = time.monotonic()
    args = arguments()
    deadline += args.seconds
    if not args.siphon.exists():
        print(f"skipped, because {args.siphon} is not there")
        return 77
    args.results.mkdir(parents=True, exist_ok=True)
    known, notes = machine.facts(args.python, args.commit), []
    if args.device == "cuda" and "gpu" not in known:
        print("skipped, because nvidia-smi shows no GPU")
        return 77
    bench = Bench(args.siphon.resolve(), args.peer.resolve(), args.python, server_file(args, known), args.results / "figures_logs",
                  args.device, deadline)
    asked = wanted(args, bench, known, notes)
    all_well = measure(args, bench, known, asked, notes)
    rows, text = summary.write(args.results, known, asked, notes)
    print(text)
    missed = [row["figure"] for row in rows if row["met"] is False]
    print(f"{sum(row['met'] is True for row in rows)} goals met, missed: {', '.join(missed) or 'none'}"
          + ("" if all_well else "; not everything was measured"))
    if not all_well:
        return 1
    return 3 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
