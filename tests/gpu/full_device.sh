#!/usr/bin/env bash
# What a job does on a device that is full: two checks, one line each, and exit code 1 when one of them fails.
#
#   tests/gpu/full_device.sh SIPHON GPU_HOG RESULTS
#
# 1. Another process has taken the device's memory: the job ends with exit code 1 and a report, and does not hang.
# 2. The job is too large for the device: it is refused before anything starts, with exit code 3.
set -uo pipefail
if [ $# != 3 ]; then
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
  exit 2
fi
siphon=$1 hog=$2 results=$3
failed=0

job() { # hidden layers, to standard output
  cat <<YAML
model: {kind: gpt, layers: $2, hidden: $1, heads: 8, vocabulary: 8192}
data: {kind: synthetic, sequence_length: 1024, samples: 64, validation_fraction: 0}
train: {steps: 3, global_batch: 8, microbatch: 4, precision: bf16}
pipeline: {stages: 1, backend: ${SIPHON_BACKEND:-cuda}}
memory: {strategy: keep}
checkpoint: {every_steps: 0}
output: {directory: "$results/full_device_run", trace: false, report: false}
YAML
}

# Runs a job and holds its exit code against the right one; a report says more than one word.
expect() { # name code
  local begin=$SECONDS code seconds verdict=passed
  timeout -k 10 "${SIPHON_PATIENCE:-90}" "$siphon" train "$results/full_device.yaml" >"$results/full_device_$1.log" 2>&1
  code=$?
  seconds=$((SECONDS - begin))
  if [ "$code" != "$2" ] || ! grep -q -i -E 'memory|fit' "$results/full_device_$1.log"; then
    verdict=FAILED
    failed=1
  fi
  echo "full device, $1: $verdict, exit code $code (right: $2) after $seconds s: $(grep -i -m 1 -E 'memory|fit' "$results/full_device_$1.log" | cut -c 1-200)"
}

job 2048 8 >"$results/full_device.yaml"
# It holds the memory until its input ends, which is ours.
coproc HOG { exec "$hog" 1024 2>&1; }
hog_pid=$HOG_PID
exec {to_hog}>&"${HOG[1]}"
if read -r -t 60 taken <&"${HOG[0]}" && [[ $taken == gpu_hog\ has* ]]; then
  echo "full device: $taken"
  expect taken_by_another 1
else
  echo "full device, taken_by_another: FAILED, gpu_hog said: ${taken:-nothing}"
  failed=1
fi
exec {to_hog}>&-
# Bash's own end of the pipe as well.
if [ -n "${HOG[1]:-}" ]; then eval "exec ${HOG[1]}>&-"; fi
for ((tenth = 0; tenth < 100; ++tenth)); do
  kill -0 "$hog_pid" 2>/dev/null || break
  sleep 0.1
done
kill "$hog_pid" 2>/dev/null
wait "$hog_pid" 2>/dev/null

job 16384 40 >"$results/full_device.yaml"
expect too_large 3
exit $failed
