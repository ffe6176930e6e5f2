#!/usr/bin/env python3
"""Compares the reference trainer with the same models written in PyTorch: Hugging Face's names and layouts, formulas spelled
out in float64. Loss within 1e-6 relative, each gradient within 1e-4 of its largest element.

usage: check_reference.py DUMP_REFERENCE_PROGRAM
Needs the full PyTorch wheel, in this Python or in the one that SIPHON_PYTORCH_PYTHON names; exit code 77 without.
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

LOSS_TOLERANCE = 1e-6
GRADIENT_TOLERANCE = 1e-4

try:
    import torch
    import torch.nn.functional as F
except Exception as error:  # a wheel without its dependencies fails with OSError
    other = os.environ.get("SIPHON_PYTORCH_PYTHON")
    if other and "SIPHON_PYTORCH_TRIED" not in os.environ:
        os.environ["SIPHON_PYTORCH_TRIED"] = "1"
        os.execv(other, [other, *sys.argv])
    print(f"skipped, because {sys.executable} cannot import torch ({error}); SIPHON_PYTORCH_PYTHON may name a Python that can")
    sys.exit(77)


def gelu_new(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu(x):
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def layer_norm(x, weight, bias, epsilon):
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + epsilon) * weight + bias


def attention(q, k, v, heads, causal):
    batch, length, hidden = q.shape
    q, k, v = (t.view(batch, length, heads, hidden // heads).transpose(1, 2) for t in (q, k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(hidden // heads)
    if causal:
        scores = scores + torch.full((length, length), -math.inf, dtype=scores.dtype).triu(1)
    return (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, hidden)


def gpt2_lm_head_model(case, weight, tokens):
    def conv1d(x, name):
        return x @ weight[name + ".weight"] + weight[name + ".bias"]

    def norm(x, name):
        return layer_norm(x, weight[name + ".weight"], weight[name + ".bias"], 1e-5)

    x = weight["transformer.wte.weight"][tokens] + weight["transformer.wpe.weight"][torch.arange(tokens.shape[1])]
    for block in range(case["layers"]):
        h = f"transformer.h.{block}."
        q, k, v = conv1d(norm(x, h + "ln_1"), h + "attn.c_attn").chunk(3, -1)
        x = x + conv1d(attention(q, k, v, case["heads"], causal=True), h + "attn.c_proj")
        x = x + conv1d(gelu_new(conv1d(norm(x, h + "ln_2"), h + "mlp.c_fc")), h + "mlp.c_proj")
    head = "transformer.wte.weight" if case["tie_embeddings"] else "lm_head.weight"
    return norm(x, "transformer.ln_f") @ weight[head].T


def bert_for_masked_lm(case, weight, tokens):
    def linear(x, name):
        return x @ weight[name + ".weight"].T + weight[name + ".bias"]

    def norm(x, name):
        return layer_norm(x, weight[name + ".weight"], weight[name + ".bias"], 1e-12)

    e = "bert.embeddings."
    x = (weight[e + "word_embeddings.weight"][tokens] + weight[e + "token_type_embeddings.weight"][torch.zeros_like(tokens)]
         + weight[e + "position_embeddings.weight"][torch.arange(tokens.shape[1])])
    x = norm(x, e + "LayerNorm")
    for block in range(case["layers"]):
        b = f"bert.encoder.layer.{block}."
        q, k, v = (linear(x, b + "attention.self." + name) for name in ("query", "key", "value"))
        mixed = linear(attention(q, k, v, case["heads"], causal=False), b + "attention.output.dense")
        x = norm(x + mixed, b + "attention.output.LayerNorm")
        wide = linear(gelu(linear(x, b + "intermediate.dense")), b + "output.dense")
        x = norm(x + wide, b + "output.LayerNorm")
    x = norm(gelu(linear(x, "cls.predictions.transform.dense")), "cls.predictions.transform.LayerNorm")
    decoder = e + "word_embeddings.weight" if case["tie_embeddings"] else "cls.predictions.decoder.weight"
    return x @ weight[decoder].T + weight["cls.predictions.bias"]


MODELS = {"gpt": gpt2_lm_head_model, "bert": bert_for_masked_lm}


def check(path):
    """Returns the list of what does not agree."""
    case = json.loads(path.read_text())
    raw = torch.frombuffer(bytearray(path.with_suffix(".bin").read_bytes()), dtype=torch.float32).double()

    def tensors(offsets):
        return {name: raw[offsets[name]:offsets[name] + math.prod(shape)].view(shape).clone()
                for name, shape in case["shapes"].items()}

    weight = {name: value.requires_grad_() for name, value in tensors(case["weights"]).items()}
    tokens = torch.tensor(case["input"]).view(-1, case["sequence_length"])
    targets = torch.tensor(case["target"]).view(-1)
    logits = MODELS[case["kind"]](case, weight, tokens)
    # The reference ignores -100 and divides by the targets of the whole batch: PyTorch's mean.
    loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets, ignore_index=-100)
    loss.backward()

    problems = []
    loss_error = abs(case["loss"] - loss.item()) / abs(loss.item())
    if not loss_error <= LOSS_TOLERANCE:
        problems.append(f"loss {case['loss']!r}, PyTorch {loss.item()!r}")
    worst = 0.0
    for name, value in tensors(case["gradients"]).items():
        expected = weight[name].grad
        error = ((value - expected).abs().max() / expected.abs().max().clamp(min=1e-6)).item()
        worst = max(worst, error)
        if not error <= GRADIENT_TOLERANCE:
            problems.append(f"gradient of {name}: off by {error:.2e} of its largest element")
    print(f"{path.stem}: loss {loss.item():.6f}, relative error {loss_error:.1e}; {len(weight)} gradients, "
          f"largest relative error {worst:.1e}")
    return problems


def main():
    print(f"torch {torch.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder], check=True)
        cases = sorted(pathlib.Path(folder).glob("*.json"))
        problems = [f"{path.stem}: {problem}" for path in cases for problem in check(path)]
    for problem in problems:
        print("FAILED " + problem)
    if not cases:
        print("FAILED: no cases were written")
    return 1 if problems or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
