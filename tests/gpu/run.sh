#!/usr/bin/env bash
# What needs a real GPU.
#
#   tests/gpu/run.sh pack                  gathers in build/gpu.tar.gz what another machine needs of this build (pack.sh)
#
# On that machine, with the same tree and that file, each under 9 minutes:
#
#   tests/gpu/run.sh smoke                 tiny jobs, the smallest first, in 90 s; the first failure is shown in full and ends it
#   tests/gpu/run.sh facts                 what the device and its copies are like; what a job does on a full device
#   tests/gpu/run.sh conformance           the tests that need a device, one program at a time, whole jobs in 4 shards beside each other
#   tests/gpu/run.sh figures [NAME...]     speed and size, with goals: one_worker host_swap two_workers largest determinism
#   tests/gpu/run.sh                       all of it within 10 minutes, unless smoke fails: what does not fit into that says so
#
# Results go to $OUT, or build/gpu/results: summary.md, first_facts.md, copies.md, figures.json, figures.md, logs.tar.gz. Exit code 1
# when something failed, was skipped, left out or missed its goal; 0 with a reason where there is no GPU.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 2; }
what=${1:-all}
case $what in
  pack) exec tests/gpu/pack.sh ;;
  smoke | facts | conformance | all) [ $# -le 1 ] || usage ;;
  figures) shift ;;
  *) usage ;;
esac

packed=${SIPHON_GPU_PACKED:-build/gpu}
# A machine that is kept may have an older one unpacked.
if [ -e "$packed.tar.gz" ] && [ "$(cksum <"$packed.tar.gz")" != "$(cat "$packed/unpacked" 2>/dev/null)" ]; then
  tar -C "$(dirname "$packed")" -xzf "$packed.tar.gz" && cksum <"$packed.tar.gz" >"$packed/unpacked" || exit 1
fi
if [ ! -x "$packed/first_facts" ]; then
  if [ ! -x build/tests/gpu/first_facts ]; then
    echo "gpu: skipped, because there is neither $packed.tar.gz (tests/gpu/run.sh pack) nor a build with CUDA"
    exit 0
  fi
  tests/gpu/pack.sh || exit 1
fi

here=$(realpath "$packed")
results=$(mkdir -p "${OUT:-$packed/results}" && realpath "${OUT:-$packed/results}")
work=$here/work machine='no GPU has answered'
rm -rf "$work" && mkdir -p "$work/logs" "$work/rows" || exit 1
# GiB of the host that a job may have; 128 are there.
host_gib=${SIPHON_GPU_HOST_GIB:-108}
if [ "$what" = all ]; then deadline=${SIPHON_GPU_SECONDS:-570}; else deadline=${SIPHON_GPU_SECONDS:-525}; fi

# What ends this script, ends it with a summary of what there is.
finish() {
  local row
  trap '' TERM INT
  {
    printf '%s\n\n' "$machine"
    echo "| step | result | s | what it says |"
    echo "|---|---|---|---|"
    for row in "$work"/rows/*; do if [ -e "$row" ]; then cat "$row"; fi; done
    if [ -e "$results/figures.md" ]; then printf '\n'; cat "$results/figures.md"; fi
  } >"$results/summary.md"
  tar -C "$work" --exclude='*.safetensors' --exclude=siphon_run -czf "$results/logs.tar.gz" logs 2>/dev/null
  cat "$results/summary.md"
  echo "gpu: $SECONDS s; all of it is in $results"
}
trap finish EXIT
trap 'exit 1' TERM INT

# shellcheck source=tests/gpu/packed_environment.sh
source tests/gpu/packed_environment.sh
# shellcheck source=tests/gpu/suite.sh
source tests/gpu/suite.sh

# The line that says most of a log: of GoogleTest's its count and names, of tiny jobs what failed, else the last.
gist() {
  if grep -q '^smoke: .*: FAILED' "$1"; then
    grep -m 1 '^smoke: .*: FAILED' "$1" | sed 's/; the job, and.*//'
  elif grep -q -E '^\[==========\]' "$1"; then
    grep -E '^\[  (PASSED|SKIPPED|FAILED) *\]|^skipped' "$1" | sort -u | sed 's/^\[ *\([A-Z]*\) *\] */\1 /' | paste -sd ';' | cut -c 1-600
  else
    grep -v '^$' "$1" | tail -n 1 | cut -c 1-300
  fi | tr '|' '/'
}

say() { # step result seconds what
  printf '| %s | %s | %s | %s |\n' "$1" "$2" "$3" "$4" >"$work/rows/$(printf '%03d' "$order")_$1"
  echo "gpu: $1: $2 ($3 s) $4"
}

# Runs a command within its limit and what is left of all time; what it says is in logs/NAME.log.
order=0 suite=()
step() { # name limit command...
  local name=$1 limit=$2 left=$((deadline - SECONDS)) begin=$SECONDS code result cut=''
  shift 2
  if ((left < limit)); then limit=$left; fi
  if ((limit < 5)); then
    say "$name" "LEFT OUT" 0 "the time was up$(unfinished_cases "$work/logs/$name.log")"
    return 1
  fi
  echo "gpu: $name begins at $begin s, within $limit s"
  timeout -k 10 "$limit" "$@" >"$work/logs/$name.log" 2>&1 </dev/null
  code=$?
  case $code in
    0) result=passed ;;
    77) result=skipped ;;
    3) result="goal MISSED" ;;
    124 | 137)
      result="FAILED: not done after $limit s"
      cut=$(unfinished_cases "$work/logs/$name.log")
      ;;
    *) result="FAILED: exit code $code" ;;
  esac
  say "$name" "$result" $((SECONDS - begin)) "$(gist "$work/logs/$name.log")$cut"
  return $code
}
next() { order=$((order + 1)); }
skip() { next; say "$1" skipped 0 "because $2"; }
# A table of a step, as a result by itself.
keep() { # log result
  { printf '%s\n\n' "$machine"; cat "$work/logs/$1"; } >"$results/$2"
}

# The device, for every file of results; where nvidia-smi is not there, as the runtime names it.
describe_machine() {
  local device
  device=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader,nounits 2>/dev/null |
    awk -F ', ' 'NR == 1 { printf "%s (%s MiB), driver %s", $1, $3, $2 }')
  if [ -z "$device" ]; then
    device=$(awk -F ' *[|] *' '$2 == "device" || $2 == "memory, free" { printf "%s%s", between, $3; between = ", " }' "$work/logs/device.log")
  fi
  echo "$(date -u '+%Y-%m-%d %H:%M UTC'): ${device:-a device without a name}; commit $(cat "$here/commit" 2>/dev/null || echo unknown)"
}

# Where our programs with LibTorch can run; else why not.
no_torch() {
  if [ -z "$torch" ]; then echo "$torch_problem"; else echo "$glibc_problem"; fi
}

# What plans of figures are made for.
probe() { next; step probe 60 "$work/siphon" topology --probe --output "$work/logs/server.yaml"; }

# Fails where nothing else needs to be tried.
smoke() {
  local why code
  why=$(no_torch)
  if [ -n "$why" ]; then skip smoke "$why"; return 0; fi
  next; step smoke 92 tests/gpu/smoke.sh "$work/siphon" "$work/logs" 85
  code=$?
  if [ -e "$work/logs/smoke.log" ]; then cat "$work/logs/smoke.log"; fi
  return $code
}

facts() {
  next; step first_facts 90 "${ours[@]}" "${start[@]}" "$here/first_facts" "$here/siphon_cuda.so"
  if [ -e "$work/logs/first_facts.log" ]; then keep first_facts.log first_facts.md; fi
  local why name
  why=$(no_torch)
  if [ -n "$why" ]; then
    for name in probe full_device copies; do skip $name "$why"; done
    return
  fi
  probe
  next; step full_device 150 env SIPHON_PATIENCE=60 tests/gpu/full_device.sh "$work/siphon" "$work/gpu_hog" "$work/logs"
  if [ -e "$here/siphon_activity_recorder.so" ]; then
    next; step copies 120 tests/gpu/recorded_copies.sh "$work/siphon" "$here/siphon_activity_recorder.so" "$work/copy_report" "$work/logs"
    if [ -e "$work/logs/copies.md" ]; then keep copies.md copies.md; fi
  else
    skip copies "what was packed has no recorder (its toolkit had no CUPTI)"
  fi
}

# Whole jobs that matter most: a model, a precision and each way of parking by few workers, a resume, a worker that is killed.
first_jobs='*EveryModel.*/gpt:*EveryPrecision.*/bf16:*EveryStrategy.*/host_swap_on_2:*EveryStrategy.*/d2d_swap_on_2'
first_jobs+=':*EveryStrategy.*/auto_on_4:*ParkingAtNeighbours.*/on_2:WorkerConformance.GoesOn*:*AKilledWorker.*/2_1B1'

conformance() {
  local why part shard shards=4 patience=2
  if [ "$what" = all ]; then patience=1; fi
  # A device has one at a time: what others take of it would be in the way of figures, limits and waits.
  next; suite swap_cuda_test $((50 * patience)) swap_cuda_test '*' 0 1
  why=$(no_torch)
  if [ -n "$nccl" ]; then
    next; suite nccl_processes_test $((60 * patience)) nccl_processes_test '-*OnADeviceEach' 0 1
  else
    skip nccl_processes_test "this machine has no libnccl.so.2"
  fi
  if [ -n "$why" ]; then
    skip torch_cuda_test "$why"
    skip worker_conformance_test "$why"
    return
  fi
  next; suite torch_cuda_test $((25 * patience)) torch_cuda_test '*' 0 1
  # As workers have it.
  next; suite torch_cuda_test_expandable $((25 * patience)) torch_cuda_test '*' 0 1 PYTORCH_ALLOC_CONF=expandable_segments:True
  # These do not mind each other; a job's start is most of its time.
  for part in "first $first_jobs" "rest -$first_jobs"; do
    for ((shard = 0; shard < shards; ++shard)); do
      next
      suite "worker_conformance_${part%% *}_$shard" 400 worker_conformance_test "${part#* }" $shard $shards &
    done
    wait
  done
  # With one device the most that NCCL has to do here, and no other way than that of two ranks.
  if [ -n "$nccl" ]; then next; suite nccl_processes_test_of_3 $((90 * patience)) nccl_processes_test '*OnADeviceEach' 0 1; fi
}

figures() {
  local why left file server=()
  why=$(no_torch)
  if [ -n "$why" ]; then skip figures "$why"; return; fi
  if [ "$what" = figures ]; then probe; fi
  if [ -e "$work/logs/server.yaml" ]; then server=(--server "$work/logs/server.yaml"); fi
  left=$((deadline - SECONDS - 15))
  # Without our libraries: the Python that runs it asks torch, and our program comes with its own.
  next; step figures $((left + 10)) "$python" tests/gpu/figures "$@" --siphon "$work/siphon" --peer "$here/torch_train.py" --python "$python" \
    --commit "$here/commit" --results "$work/logs" --seconds "$left" --host-gib "$host_gib" "${server[@]}"
  for file in figures.json figures.md; do
    if [ -e "$work/logs/$file" ]; then cp "$work/logs/$file" "$results/"; fi
  done
}

find_python
find_environment
ours=(env "${environment[@]}")
write_launcher siphon gpu_hog copy_report
if [ -n "$torch_problem" ]; then echo "gpu: $torch_problem"; fi

# Of all time: what comes first may not take it from what comes after.
within() { # seconds function
  local all=$deadline
  if ((SECONDS + $1 < deadline)); then deadline=$((SECONDS + $1)); fi
  "$2"
  deadline=$all
}
if [ -n "$start_problem" ]; then
  echo "gpu: our programs do not start here: $start_problem"
  exit 1
fi
timeout -k 5 60 "${ours[@]}" "${start[@]}" "$here/first_facts" "$here/siphon_cuda.so" 1 >"$work/logs/device.log" 2>&1
code=$?
if [ $code = 77 ] && nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then
  echo "gpu: nvidia-smi shows a GPU, and our programs see none: $(tail -n 1 "$work/logs/device.log")"
  exit 1
fi
if [ $code = 77 ]; then
  echo "gpu: skipped, because this machine has no GPU: $(tail -n 1 "$work/logs/device.log")"
  exit 0
fi
machine=$(describe_machine)
echo "gpu: $machine"
cat "$work/logs/device.log"
# All the same whether goals of small copies are met (3). Anything else: a device is there, and does not do as it should.
if [ $code != 0 ] && [ $code != 3 ]; then
  next; say device "FAILED: exit code $code" "$SECONDS" "$(gist "$work/logs/device.log")"
  exit 1
fi
host_memory() { next; step host_memory 45 python3 tests/gpu/grow_host.py "$host_gib" 30; }
case $what in
  smoke) smoke ;;
  all)
    if smoke; then
      host_memory
      within 120 facts
      order=20
      within 230 conformance
      order=40
      figures
    fi
    ;;
  figures) host_memory; figures "$@" ;;
  *) host_memory; "$what" ;;
esac
! grep -q -E '^\| [^|]* \| (FAILED|LEFT OUT|goal MISSED|skipped)' "$work"/rows/* 2>/dev/null
