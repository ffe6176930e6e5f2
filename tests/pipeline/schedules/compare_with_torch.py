#!/usr/bin/env python3
"""Compares our schedules with torch.distributed.pipelining's: compute cells one by one (idle cells dropped), messages one by one,
and torch's own reader on our files.

usage: compare_with_torch.py PRINT_SCHEDULE_PROGRAM
Needs the full PyTorch wheel, in this Python or in the one that SIPHON_PYTORCH_PYTHON names; exit code 77 without.
"""
import csv
import logging
import os
import pathlib
import subprocess
import sys
import tempfile

# Chunks, microbatches and workers: the triples of torch's own tests of its schedules.
TRIPLES = [(2, 2, 2), (2, 4, 4), (2, 8, 2), (2, 8, 4), (2, 8, 8), (4, 4, 4), (4, 8, 4), (4, 8, 8), (4, 16, 4), (4, 32, 4), (4, 64, 4),
           (4, 16, 16), (4, 32, 32), (4, 128, 64), (3, 2, 2), (3, 8, 2), (3, 12, 4), (4, 6, 3), (4, 10, 5),
           (2, 3, 4), (2, 4, 4), (2, 10, 4), (2, 15, 4)]
# Ours, torch's class, and the chunks where it takes no other.
SCHEDULES = [("gpipe", "ScheduleGPipe", 1), ("1f1b", "Schedule1F1B", 1),
             ("interleaved_1f1b", "ScheduleInterleaved1F1B", None), ("looped_bfs", "ScheduleLoopedBFS", None),
             ("interleaved_zero_bubble", "ScheduleInterleavedZeroBubble", None),
             ("zbv", "ScheduleZBVZeroBubble", 2), ("dualpipev", "ScheduleDualPipeV", 2)]

try:
    import torch.distributed.pipelining.schedules as torch_schedules
except Exception as error:  # a wheel without its dependencies fails with OSError
    other = os.environ.get("SIPHON_PYTORCH_PYTHON")
    if other and "SIPHON_PYTORCH_TRIED" not in os.environ:
        os.environ["SIPHON_PYTORCH_TRIED"] = "1"
        os.execv(other, [other, *sys.argv])
    print(f"skipped, because {sys.executable} cannot import torch ({error}); SIPHON_PYTORCH_PYTHON may name a Python that can")
    sys.exit(77)
logging.disable(logging.WARNING)


class FakeStage:
    """As much of a pipeline stage as a schedule looks at before it runs."""

    def __init__(self, workers, stages):
        self.group = None
        self.group_rank = 0
        self.group_size = workers
        self.num_stages = stages
        self.stage_index = 0
        self.is_first = True
        self.is_last = False
        self.has_backward = True
        self.submod = None


def build(class_name, workers, chunks, microbatches):
    """torch's schedule object, or the ValueError with which it refuses the shape."""
    schedule_class = getattr(torch_schedules, class_name)
    stages = [FakeStage(workers, workers * chunks) for _ in range(chunks)]
    try:
        if issubclass(schedule_class, torch_schedules.PipelineScheduleSingle):
            return schedule_class(stages[0], microbatches)
        return schedule_class(stages, microbatches)
    except ValueError as error:
        return error


def cells(order, keep):
    return [[str(action) for action in order[rank] if action is not None and keep(str(action))] for rank in sorted(order)]


def without_phantom_microbatch(row, microbatches):
    """Schedule1F1B of torch 2.11 prints the last worker's forwards as 1 .. m, one too high; what it runs is 0 .. m - 1."""
    forwards = [cell for cell in row if "F" in cell]
    if not forwards or not forwards[-1].endswith(f"F{microbatches}"):
        return row
    stage = forwards[0].split("F")[0]
    return [f"{stage}F{int(cell.split('F')[1]) - 1}" if "F" in cell else cell for cell in row]


def is_compute(cell):
    return "REDUCE_GRAD" not in cell


class Ours:
    """Asks the program once for everything."""

    def __init__(self, program, requests):
        answers = iter(subprocess.run([program], input="".join(" ".join(map(str, r)) + "\n" for r in requests),
                                      text=True, capture_output=True, check=True).stdout.splitlines())
        self.answer_of = {}
        for request in requests:
            word, rest = next(answers).split(" ", 1)
            self.answer_of[request] = [next(answers) for _ in range(int(rest))] if word == "ok" else None
            if word == "refused":
                self.answer_of[request] = rest

    def rows(self, *request):
        answer = self.answer_of[request]
        return None if isinstance(answer, str) else [row.split(",") for row in answer]

    def text(self, *request):
        return "\n".join(self.answer_of[request]) + "\n"


def check_equal(what, ours, theirs):
    if ours == theirs:
        return
    for worker, (our_row, their_row) in enumerate(zip(ours, theirs)):
        for place in range(max(len(our_row), len(their_row))):
            pair = [row[place] if place < len(row) else "nothing" for row in (our_row, their_row)]
            if pair[0] != pair[1]:
                sys.exit(f"{what}: worker {worker}, cell {place}: ours {pair[0]}, torch {pair[1]}")
    sys.exit(f"{what}: {len(ours)} workers, torch {len(theirs)}")


def with_messages(live):
    """torch's lowering of its compute cells alone, without those that fully sharded replicas add."""
    compute = {rank: [action for action in order if action is not None] for rank, order in live.pipeline_order.items()}
    return cells(torch_schedules._add_send_recv(compute, lambda stage: live.stage_index_to_group_rank[stage], live._num_stages),
                 lambda _: True)


def check_loads(what, live, text, csv_format):
    """torch's own reader takes our file, and understands the same actions."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "schedule.csv")
        file.write_text(text)
        stages = [FakeStage(live.pp_group_size, live._num_stages) for _ in live._stages]
        reader = torch_schedules._PipelineScheduleRuntime(stages, live._n_microbatches)
        reader._load_csv(str(file), format=csv_format)
    order = reader.pipeline_order if csv_format == "compute_only" else reader.pipeline_order_with_comms
    check_equal(f"{what}, read by torch as {csv_format}", cells(order, lambda _: True), list(csv.reader(text.splitlines())))
    if list(reader.stage_index_to_group_rank.items()) != list(live.stage_index_to_group_rank.items()):
        sys.exit(f"{what}, read by torch: stages on workers {reader.stage_index_to_group_rank}, not {live.stage_index_to_group_rank}")


def main():
    shapes = {(name, class_name, workers, fixed or chunks, microbatches)
              for name, class_name, fixed in SCHEDULES for chunks, microbatches, workers in TRIPLES
              if fixed in (None, 1, chunks)}
    # Chunks that a V does not take.
    shapes |= {(name, class_name, 4, 3, 12) for name, class_name, fixed in SCHEDULES if fixed == 2}
    requests = [(csv_format, name, workers, chunks, microbatches) for name, _, workers, chunks, microbatches in sorted(shapes)
                for csv_format in ("compute_only", "compute_comms")]
    ours = Ours(sys.argv[1], requests)
    compared = {name: 0 for name, _, _ in SCHEDULES}
    both_refuse = 0
    for name, class_name, workers, chunks, microbatches in sorted(shapes):
        what = f"{name}, {workers} workers, {chunks} chunks, {microbatches} microbatches"
        shape = (name, workers, chunks, microbatches)
        live = build(class_name, workers, chunks, microbatches)
        rows = ours.rows("compute_only", *shape)
        if isinstance(live, ValueError):
            if rows is None:
                both_refuse += 1
            continue
        if rows is None:
            sys.exit(f"{what}: torch takes it, but ours is refused: {ours.answer_of[('compute_only', *shape)]}")
        theirs = cells(live.pipeline_order, is_compute)
        if class_name == "Schedule1F1B":
            theirs[-1] = without_phantom_microbatch(theirs[-1], microbatches)
        check_equal(what, rows, theirs)
        compared[name] += 1
        if isinstance(live, torch_schedules.PipelineScheduleSingle):
            continue
        check_equal(f"{what}, with messages", ours.rows("compute_comms", *shape), with_messages(live))
        check_loads(what, live, ours.text("compute_only", *shape), "compute_only")
        check_loads(what, live, ours.text("compute_comms", *shape), "compute_comms")
    for name, count in compared.items():
        print(f"{name}: equal in {count} shapes")
    print(f"refused by both: {both_refuse} shapes")
    if min(compared.values()) == 0:
        sys.exit("a schedule was compared in no shape")


main()
