"""What is measured, one class a figure: its rounds, each a pair of runs in turns, and what they come to."""
import dataclasses
import statistics

from jobs import Job, Shape
from runs import Failed, median_of_later, say


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "rounds": len(values)}


def text_of(ratios):
    return f"{ratios['median']:.3f} ({ratios['min']:.3f} to {ratios['max']:.3f}, {ratios['rounds']} rounds)"


def row(figure, value, goal, met, why=""):
    """A line of the table; `met` is None where nothing can be said, as of a CPU."""
    return {"figure": figure, "value": value, "goal": goal, "met": met, "why": why}


class AgainstPeer:
    """Tokens a second of `workers`, beside the peer's ranks."""

    def __init__(self, bench, name, shape, workers, rounds, peer_missing, chip):
        self.bench, self.name, self.rounds, self.peer_missing, self.chip = bench, name, rounds, peer_missing, chip
        self.job = Job(shape, steps=6, workers=workers)
        self.guess, self.ours, self.theirs = 50, [], []

    def run_round(self, number):
        runs = [lambda: self.ours.append(self.bench.speed(self.job, self.name))]
        if not self.peer_missing:
            runs.append(lambda: self.theirs.append(self.bench.peer_speed(self.job, f"{self.name}_peer")))
        for one in runs if number % 2 == 0 else reversed(runs):  # who goes first changes
            one()

    def rows(self):
        if not self.ours:
            return [row(f"{self.name}: tokens/s", "not measured", "1.0 of the peer", None, self.peer_missing)]
        ours, rows = statistics.median(run["tokens_per_second"] for run in self.ours), []
        if self.theirs:
            theirs = statistics.median(run["tokens_per_second"] for run in self.theirs)
            ratios = spread([mine["tokens_per_second"] / its["tokens_per_second"] for mine, its in zip(self.ours, self.theirs)])
            rows.append(row(f"{self.name}: tokens/s of the peer's", f"{text_of(ratios)}: {ours:.0f} and {theirs:.0f} tokens/s",
                            "at least 1.0", self.bench.judged(ratios["median"] >= 1.0), self.job.shape.text()))
        else:
            rows.append(row(f"{self.name}: tokens/s of the peer's", f"{ours:.0f} tokens/s alone", "at least 1.0", None,
                            f"skipped, because {self.peer_missing}" if self.peer_missing else "the peer did not end"))
        if self.job.workers == 1:
            rows += self.of_the_chip()
        return rows

    def of_the_chip(self):
        tflops = statistics.median(run["tflops"] for run in self.ours)
        nominal, measured = self.chip
        rows = [row(f"{self.name}: of {nominal:.0f} TFLOP/s", f"{tflops / nominal:.1%}, {tflops:.1f} TFLOP/s", "at least 50 %",
                    self.bench.judged(tflops >= 0.5 * nominal))]
        if measured:
            rows.append(row(f"{self.name}: of an 8192^3 bf16 product here", f"{tflops / measured:.1%} of {measured:.0f} TFLOP/s",
                            "", None))
        return rows

    def details(self):
        return {"shape": dataclasses.asdict(self.job.shape), "workers": self.job.workers, "siphon": self.ours, "peer": self.theirs}


class HostSwap:
    """With at least `SHARE` of a step's activations swapped to the host, beside a run that keeps them."""
    SHARE, GOAL = 0.40, 0.97

    def __init__(self, bench, shape, rounds):
        self.bench, self.name, self.rounds, self.guess = bench, "host_swap", rounds, 60
        self.kept = Job(shape, steps=6, schedule="gpipe")
        self.swapped, self.activations, self.planned, self.candidates = None, 0, {}, self.plans()
        self.pairs = []

    def plans(self):
        """Jobs whose plan swaps so much, those with the largest capacity first, in steps of an eightieth of the activations."""
        memory = self.bench.ask("memory", self.kept, self.name)
        self.activations = memory["workers"][0]["activations"]
        for part in range(20, 66):
            capacity = memory["max_bytes"] - self.activations * part // 80
            job = dataclasses.replace(self.kept, strategy="host_swap", capacity=f"{capacity // 1024}KiB")
            plan = self.bench.ask("plan", job, self.name)
            if not plan["fits"]:
                continue
            channels = self.bench.ask("simulate", job, self.name)["channels"]
            swapped = sum(channel["bytes"] for channel in channels if channel["name"].endswith(", copies to host"))
            if swapped >= self.SHARE * self.activations:
                yield job, {"host_bytes": swapped, "capacity": job.capacity,
                            "ratio": plan["kept_step_seconds"] / plan["step_seconds"]}

    def run_swapped(self):
        """Live workers may swap less than the plan by the simulation alone, as they leave copies more time: then with less memory."""
        while True:
            if self.swapped is None:
                self.swapped, self.planned = next(self.candidates, (None, {}))
            if self.swapped is None:
                raise Failed(f"with no capacity a step swaps {self.SHARE:.0%} of {self.activations} bytes")
            done = self.bench.speed(self.swapped, f"{self.name}_swapped")
            if done["host_bytes"] >= self.SHARE * self.activations:
                return done
            self.swapped = None

    def run_round(self, number):
        runs = [("kept", lambda: self.bench.speed(self.kept, f"{self.name}_kept")), ("swapped", self.run_swapped)]
        self.pairs.append({what: run() for what, run in (runs if number % 2 == 0 else reversed(runs))})

    def rows(self):
        figure, goal = f"host swap of {self.SHARE:.0%} of the activations: speed of no swap", f"at least {self.GOAL}"
        if not self.pairs:
            return [row(figure, "not measured", goal, None)]
        ratios = spread([pair["swapped"]["tokens_per_second"] / pair["kept"]["tokens_per_second"] for pair in self.pairs])
        share = self.pairs[0]["swapped"]["host_bytes"] / self.activations
        return [row(figure, f"{text_of(ratios)}; {share:.0%} swapped, planned {self.planned['ratio']:.3f}", goal,
                    self.bench.judged(ratios["median"] >= self.GOAL), self.kept.shape.text())]

    def details(self):
        return {"shape": dataclasses.asdict(self.kept.shape), "activations": self.activations, "planned": self.planned,
                "pairs": self.pairs}


class Determinism:
    """What train.deterministic costs: a run without it beside one with it."""

    def __init__(self, bench, shape, rounds):
        self.bench, self.name, self.rounds, self.guess = bench, "determinism", rounds, 30
        self.job, self.pairs = Job(shape, steps=6), []

    def run_round(self, number):
        runs = [("required", self.job), ("free", dataclasses.replace(self.job, deterministic=False))]
        self.pairs.append({what: self.bench.speed(job, f"{self.name}_{what}") for what, job in
                           (runs if number % 2 == 0 else reversed(runs))})

    def rows(self):
        figure = "determinism: speed with it, of that without"
        if not self.pairs:
            return [row(figure, "not measured", "", None)]
        return [row(figure, text_of(spread([pair["required"]["tokens_per_second"] / pair["free"]["tokens_per_second"]
                                            for pair in self.pairs])), "", None, self.job.shape.text())]

    def details(self):
        return {"shape": dataclasses.asdict(self.job.shape), "pairs": self.pairs}


class Largest:
    """The deepest GPT that trains: fewer layers wherever no plan fits or a run ends for want of memory."""
    GOAL = 13e9

    def __init__(self, bench, shape, step_down, least, capacity, host_capacity, threads):
        self.bench, self.name, self.rounds, self.guess = bench, "largest", 1, 120
        self.job = Job(shape, steps=3, strategy="auto", capacity=capacity, host_capacity=host_capacity, threads=threads)
        self.step_down, self.least, self.tries, self.found = step_down, least, [], None

    def run_round(self, _):
        for layers in range(self.job.shape.layers, self.least - 1, -self.step_down):
            job = dataclasses.replace(self.job, shape=dataclasses.replace(self.job.shape, layers=layers))
            if not self.bench.ask("plan", job, self.name)["fits"]:
                self.tries.append({"layers": layers, "ended": "no plan fits"})
                continue
            code, steps, seconds = self.bench.train(job, self.name)
            say(f"  {layers} layers: exit code {code}, {len(steps)} steps, {seconds:.0f} s")
            self.tries.append({"layers": layers, "ended": code, "steps": len(steps), "seconds": seconds})
            if code == 0 and len(steps) == job.steps:
                self.found = {"parameters": job.shape.parameters(), "layers": layers,
                              "tokens_per_second": job.shape.tokens() / median_of_later([step["step_seconds"] for step in steps]),
                              "host_bytes": max(sum(step["swapped_out_bytes"]["host"]) for step in steps)}
                return
            if code not in (1, 3):
                raise Failed(f"{layers} layers ended with {code} after {seconds:.0f} s and {len(steps)} steps")
        raise Failed(f"none of {len(self.tries)} depths trains")

    def rows(self):
        figure, goal = "largest GPT on one GPU, the host taking the rest", f"{self.GOAL / 1e9:.0f}B parameters"
        if self.found is None:
            return [row(figure, "not measured", goal, None)]
        found = self.found
        shape = dataclasses.replace(self.job.shape, layers=found["layers"])
        return [row(figure, f"{found['parameters'] / 1e9:.2f}B parameters at {found['tokens_per_second']:.0f} tokens/s", goal,
                    self.bench.judged(found["parameters"] >= self.GOAL), shape.text())]

    def details(self):
        return {"tries": self.tries, "found": self.found, "capacity": self.job.capacity, "host_capacity": self.job.host_capacity}


ONE_WORKER = Shape(layers=8, hidden=4096, heads=32, sequence=2048, microbatch=4, microbatches=4)
SWAPPED = Shape(layers=4, hidden=6144, heads=48, sequence=2048, microbatch=1, microbatches=20)
DEEPEST = Shape(layers=42, hidden=5120, heads=40, sequence=2048, microbatch=2, microbatches=4)
TINY = Shape(layers=4, hidden=64, heads=2, sequence=32, microbatch=2, microbatches=4, vocabulary=256)
