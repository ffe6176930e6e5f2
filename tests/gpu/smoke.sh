#!/usr/bin/env bash
# Tiny jobs one after the other, the smallest first: whether anything runs here, before what takes minutes.
#
#   tests/gpu/smoke.sh SIPHON RESULTS [SECONDS]
#
# 1 worker in fp32, then in bf16; 2 workers that share a device; 2 that swap to the host, and 2 of which one parks at the other, with
# a checksum of each tensor out and back. The first failure ends it with exit code 1: then the job and all that it said are shown. All
# of it within SECONDS (85), whatever hangs. SIPHON_BACKEND=cpu tries it without a device.
set -uo pipefail
if [ $# != 2 ] && [ $# != 3 ]; then
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
  exit 2
fi
siphon=$1 results=$(realpath "$2") seconds=${3:-85} backend=${SIPHON_BACKEND:-cuda}
steps=3
kindness=5 # of what is left, for a job to end when it is told to
# What NCCL says of itself where it fails.
export NCCL_DEBUG=${NCCL_DEBUG:-WARN}

# A server with as many devices as workers: what is parked at a neighbour is in another process.
server() { # workers
  local device
  printf 'name: as many H200s as workers\ndevice: H200\ndevices: %s\ndevice_memory: 64GiB\ncopy_engines: one_for_all_peers\n' "$1"
  printf 'fabric_wires: 18\nwire_rate: 20.8GB/s\nlatency: 2.5us\nswitches:\n'
  for ((device = 0; device < $1; ++device)); do
    printf '  - {devices: [%s], to_host: 52.8GB/s, from_host: 55.6GB/s}\n' "$device"
  done
}

job() { # name workers precision strategy [capacity]
  local capacity=${5:+", capacity: $5"} partition=''
  # Two workers with as much to do have little to lend each other.
  if [ "$1" = d2d_swap ]; then partition=', partition: [5, 3]'; fi
  : >"$results/smoke_$1.log"
  server "$2" >"$results/smoke_$1.server.yaml"
  cat >"$results/smoke_$1.yaml" <<YAML
model: {kind: gpt, layers: 6, hidden: 128, heads: 2, vocabulary: 256}
data: {kind: synthetic, sequence_length: 64, samples: 64, validation_fraction: 0}
train: {steps: $steps, global_batch: 8, microbatch: 2, precision: $3}
pipeline: {stages: $2, backend: $backend$partition}
memory: {strategy: $4$capacity, check: full}
topology: {source: file, name: "$results/smoke_$1.server.yaml"}
checkpoint: {every_steps: 0}
output: {directory: "$results/smoke_$1_run", trace: false, report: false}
YAML
}

fail() { # name what
  echo "smoke: $1: FAILED: $2; the job, and all that it said:"
  cat "$results/smoke_$1.yaml" "$results/smoke_$1.log"
  exit 1
}

# Of JSON by `siphon memory`: what the tensors of the fullest worker take, and what it has beside them for messages and libraries.
tensors_and_beside() {
  python3 -c '
import json, sys
memory = json.load(sys.stdin)
beside = max(worker.get("communication", 0) for worker in memory["workers"])
print(memory["max_bytes"] - beside, beside)'
}

# Writes the job with the largest capacity whose plan moves something.
tighten() { # name workers strategy
  local file=$results/smoke_$1.yaml log=$results/smoke_$1.log tensors='' beside percent
  job "$1" "$2" fp32 keep
  read -r tensors beside < <(timeout 10 "$siphon" memory "$file" --format json 2>>"$log" | tensors_and_beside 2>>"$log")
  if [ -z "$tensors" ]; then fail "$1" "siphon memory says nothing"; fi
  for percent in 97 94 90 85 80 75 70 60 50; do
    job "$1" "$2" fp32 "$3" "$(((beside + tensors * percent / 100) / 1024))KiB"
    if timeout 10 "$siphon" plan "$file" --format json >"$log" 2>&1 && grep -q "\"$3\": *[1-9]" "$log"; then return; fi
  done
  fail "$1" "no plan of $3 fits, down to half of $tensors bytes"
}

# The losses of a job's steps; workers and strategies leave their bits alone.
losses() { # name
  grep -o '"loss": *[^,}]*' "$results/smoke_$1_run/metrics.jsonl" | paste -sd ' '
}

train() { # name [argument...]
  local name=$1 log=$results/smoke_$1.log begin=$SECONDS left=$((seconds - SECONDS - kindness)) code
  shift
  if ((left < 1)); then fail "$name" "the $seconds s were up before it began"; fi
  rm -rf "$results/smoke_${name}_run"
  timeout -k "$kindness" "$left" "$siphon" train "$results/smoke_$name.yaml" "$@" >"$log" 2>&1 </dev/null
  code=$?
  case $code in
    0) ;;
    124 | 137) fail "$name" "not done after $left s" ;;
    *) fail "$name" "exit code $code after $((SECONDS - begin)) s" ;;
  esac
  if [ "$(grep -c '"loss"' "$results/smoke_${name}_run/metrics.jsonl" 2>>"$log")" != "$steps" ]; then
    fail "$name" "its metrics.jsonl has not the losses of $steps steps"
  fi
  echo "smoke: $name: passed after $((SECONDS - begin)) s: $(losses "$name")"
}

# What was to move has moved, and computed as if it had stayed.
moved() { # name place
  if ! grep -q "\"$2\": *\[[0-9, ]*[1-9]" "$results/smoke_$1_run/metrics.jsonl"; then fail "$1" "nothing went to $2"; fi
  compare "$1"
}
compare() { # name
  if [ "$(losses "$1")" != "$(losses one_fp32)" ]; then differ+=" $1"; fi
}

devices() { # that CUDA shows
  if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then tr ',' '\n' <<<"$CUDA_VISIBLE_DEVICES" | grep -c .
  else nvidia-smi -L 2>/dev/null | grep -c '^GPU'; fi
}

differ=''
# More workers than devices: said to share them, which CPU workers need not.
share=(--share_gpu)
if [ "$backend" != cuda ] || [ "$(devices)" -ge 2 ]; then share=(); fi
job one_fp32 1 fp32 keep && train one_fp32
job one_bf16 1 bf16 keep && train one_bf16
job two_workers 2 fp32 keep && train two_workers "${share[@]}" && compare two_workers
tighten host_swap 2 host_swap && train host_swap "${share[@]}" && moved host_swap host
tighten d2d_swap 2 d2d_swap && train d2d_swap "${share[@]}" && moved d2d_swap d2d
echo "smoke: 5 jobs passed after $SECONDS s${differ:+; losses that DIFFER from those of one_fp32:$differ}"
