"""What is trained: one shape for Siphon and for its peer, and Siphon's job file of it."""
import dataclasses
import math

# One device, and the way to the host of a PCIe 5.0 slot (configs/topologies/hgx_h200.yaml); where `siphon topology --probe` has
# measured the machine, its file is taken instead.
ONE_DEVICE = """\
name: one device
device: {device}
devices: 1
device_memory: {memory}GiB
copy_engines: one_for_all_peers
switches:
  - {{devices: [0], to_host: 52.8GB/s, from_host: 55.6GB/s, latency: 9us}}
"""


@dataclasses.dataclass(frozen=True)
class Shape:
    """A GPT with untied output and exact GELU, as the peer's script has it."""
    layers: int
    hidden: int
    heads: int
    sequence: int
    microbatch: int
    microbatches: int
    vocabulary: int = 8192

    def parameters(self):
        block = 12 * self.hidden ** 2 + 13 * self.hidden
        return self.layers * block + (2 * self.vocabulary + self.sequence + 2) * self.hidden

    def tokens(self):
        return self.sequence * self.microbatch * self.microbatches

    def first_loss(self):
        """Of parameters as they start: normed activations by output weights of deviation 0.02 are logits of variance 0.02^2 hidden."""
        return math.log(self.vocabulary) + 0.02 ** 2 * self.hidden / 2

    def text(self):
        return (f"GPT of {self.parameters() / 1e9:.2f}B parameters: {self.layers} layers, hidden {self.hidden}, {self.heads} heads, "
                f"sequence {self.sequence}, {self.microbatches} microbatches of {self.microbatch}, vocabulary {self.vocabulary}")


@dataclasses.dataclass(frozen=True)
class Job:
    shape: Shape
    steps: int
    workers: int = 1
    schedule: str = "1f1b"
    threads: int = 1
    strategy: str = "keep"
    capacity: str = ""       # "40GiB"; empty: what the device has
    host_capacity: str = ""
    deterministic: bool = True

    def yaml(self, directory, backend, server):
        shape, capacity = self.shape, f", capacity: {self.capacity}" if self.capacity else ""
        host = f", host_capacity: {self.host_capacity}" if self.host_capacity else ""
        return f"""\
model: {{kind: gpt, layers: {shape.layers}, hidden: {shape.hidden}, heads: {shape.heads}, vocabulary: {shape.vocabulary},
        tie_embeddings: false, activation: gelu}}
data: {{kind: synthetic, sequence_length: {shape.sequence}, samples: 1024, validation_fraction: 0}}
train: {{steps: {self.steps}, global_batch: {shape.microbatch * shape.microbatches}, microbatch: {shape.microbatch},
        precision: bf16, optimizer: adamw, learning_rate: 0.0001, schedule: constant, weight_decay: 0.01, clip_norm: 0,
        deterministic: {str(self.deterministic).lower()}}}
pipeline: {{stages: {self.workers}, schedule: {self.schedule}, backend: {backend}, threads_per_worker: {self.threads}}}
memory: {{strategy: {self.strategy}{capacity}{host}, replan: false}}
topology: {{source: file, name: "{server}"}}
checkpoint: {{every_steps: 0}}
output: {{directory: "{directory}", trace: false, report: false}}
"""

    def peer_arguments(self, device):
        shape = self.shape
        wanted = dict(stages=self.workers, threads=self.threads, steps=self.steps, layers=shape.layers, hidden=shape.hidden,
                      heads=shape.heads, sequence=shape.sequence, vocabulary=shape.vocabulary, microbatch=shape.microbatch,
                      microbatches=shape.microbatches, device=device)
        return [part for name, value in wanted.items() for part in (f"--{name}", str(value))]
