#!/usr/bin/env bash
# What needs a real GPU.
#
#   tests/gpu/run.sh pack   gathers in build/gpu what another machine needs of this build: the programs, the CUDA modules, Open MPI
#                           and the libraries that they link; LibTorch, CUDA and NCCL are the other machine's (56 MB)
#   tests/gpu/run.sh        runs it, from build/gpu, on this machine's first GPU; some minutes
#
# Results go to $OUT, or build/gpu/results. Exit code 1 when something failed; 0 with a reason where there is no GPU.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
packed=build/gpu
programs=(build/tests/gpu/first_facts build/tests/swap/swap_cuda_test build/tests/swap/cuda_lender
  build/tests/swap/cuda_ring_worker build/swap/siphon_cuda.so build/tests/pipeline/transport/nccl_processes_test
  build/tests/pipeline/transport/nccl_rank build/siphon build/pipeline/torch/siphon_torch_cuda.so
  build/tests/pipeline/torch/torch_cuda_test build/tests/gpu/worker_conformance_test)
targets=(first_facts swap_cuda_test nccl_processes_test siphon_cuda siphon siphon_torch_cuda torch_cuda_test worker_conformance_test)
# Where this machine's toolkit has CUPTI's headers: what records copies, and what reads that.
if grep -q '^SIPHON_CUPTI_HEADERS:PATH=/' build/CMakeCache.txt 2>/dev/null; then
  programs+=(build/tests/gpu/siphon_activity_recorder.so build/tests/gpu/copy_report)
  targets+=(siphon_activity_recorder copy_report)
fi

# Open MPI, as it lies in /usr; OPAL_PREFIX tells it where that is there.
pack_mpi() {
  mkdir -p "$packed/mpi" || return 1
  # What starts processes and talks within a machine; its libraries come with all others.
  dpkg -L libopenmpi3 openmpi-bin openmpi-common libpmix2 |
    grep -E '^/usr/(bin/(orterun|orted)$|lib/x86_64-linux-gnu/(openmpi/lib/openmpi3|pmix2)/|share/(openmpi|pmix)/)' |
    grep -v -E 'mca_(atomic|memheap|scoll|spml|sshmem)_|ucx|ofi|psm|openib' | while read -r file; do
    if [ ! -d "$file" ]; then echo "${file#/}"; fi
  done | sort -u | tar -C / -cf - --no-recursion -T - | tar -C "$packed/mpi" -xf - || return 1
  # Its configuration is beside the system's.
  mkdir -p "$packed/mpi/usr/etc" && cp -r /etc/openmpi "$packed/mpi/usr/etc/" || return 1
  # The name is an alternative of Debian's, which no package lists.
  ln -sf orterun "$packed/mpi/usr/bin/mpirun"
}

pack() {
  cmake --build build --target "${targets[@]}" || exit 1
  rm -rf "$packed"
  mkdir -p "$packed/lib" "$packed/glibc" || exit 1
  cp "${programs[@]}" "$packed/" || exit 1
  strip --strip-unneeded "$packed"/* 2>/dev/null
  pack_mpi || exit 1
  # LibTorch and all of CUDA are the other machine's.
  local libraries glibc='/(libc|libm|libdl|libpthread|librt)\.so\.[0-9]+$'
  libraries=$(find "$packed/mpi/usr" -type f \( -name '*.so*' -o -name orterun \) -print0 | xargs -0 ldd "${programs[@]}" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | grep -v -E '/torch/lib/|/nvidia/' | sort -u)
  grep -v -E "$glibc" <<<"$libraries" | xargs cp -L -t "$packed/lib" || exit 1
  grep -E "$glibc" <<<"$libraries" | xargs cp -L -t "$packed/glibc" /lib64/ld-linux-x86-64.so.2 || exit 1
  du -sh "$packed"
}

case ${1:-} in
  pack) pack; exit ;;
  "") ;;
  *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 2 ;;
esac

if [ ! -x "$packed/first_facts" ]; then
  if [ ! -x build/tests/gpu/first_facts ]; then
    echo "gpu: skipped, because there is neither $packed (tests/gpu/run.sh pack) nor a build with CUDA"
    exit 0
  fi
  pack
fi

results=${OUT:-$packed/results}
mkdir -p "$results"
here=$PWD/$packed
export SIPHON_GPU=1 SIPHON_CUDA_MODULE=$here/siphon_cuda.so SIPHON_CUDA_LENDER=$here/cuda_lender
export SIPHON_CUDA_RING_WORKER=$here/cuda_ring_worker
export SIPHON_NCCL_RANK=$here/nccl_rank
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# NCCL is this machine's: that of LibTorch for CUDA, or of a toolkit.
nccl=$(find -L .venv/lib "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null)" /usr/local/cuda/lib* \
  /usr/lib/x86_64-linux-gnu -maxdepth 6 -name libnccl.so.2 2>/dev/null | head -n 1)
if [ -n "$nccl" ]; then
  LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$(dirname "$nccl")
fi

# Where the machine's glibc is older than ours, ours starts the programs. (Without arguments the program ends with 2.)
start=()
"$here/first_facts" >/dev/null 2>&1
if [ $? != 2 ]; then
  start=("$here/glibc/ld-linux-x86-64.so.2" --library-path "$here/glibc:$LD_LIBRARY_PATH")
  for helper in cuda_lender cuda_ring_worker nccl_rank; do
    printf '#!/bin/sh\nexec %s "$@"\n' "${start[*]} $here/$helper" >"$results/$helper"
    chmod +x "$results/$helper"
  done
  export SIPHON_CUDA_LENDER=$results/cuda_lender SIPHON_CUDA_RING_WORKER=$results/cuda_ring_worker SIPHON_NCCL_RANK=$results/nccl_rank
fi

"${start[@]}" "$here/first_facts" "$SIPHON_CUDA_MODULE" >"$results/first_facts.md" 2>"$results/first_facts.err"
facts=$?
cat "$results/first_facts.md" "$results/first_facts.err"
if [ "$facts" = 77 ]; then
  echo "gpu: skipped, because this machine has no GPU"
  exit 0
fi
# LibTorch is this machine's, of the version that we were built with.
torch=$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__) if torch.__version__.startswith("2.11.0+cu") else "")' 2>/dev/null)
if [ -z "$torch" ] && [ -e .venv/lib/python3*/site-packages/nvidia/cudnn ]; then torch=$(echo .venv/lib/python3*/site-packages/torch); fi
"${start[@]}" "$here/swap_cuda_test" 2>&1 | tee "$results/swap_cuda_test.log" | grep -E '^\[ +(FAILED|PASSED|SKIPPED)|^skipped|Failure' | sort -u
tests=${PIPESTATUS[0]}
messages=0
if [ -n "$nccl" ]; then
  "${start[@]}" "$here/nccl_processes_test" 2>&1 | tee "$results/nccl_processes_test.log" | grep -E '^\[ +(FAILED|PASSED|SKIPPED)|^NCCL|Failure' | sort -u
  messages=${PIPESTATUS[0]}
else
  echo "gpu: nccl_processes_test skipped, because this machine has no libnccl.so.2"
fi
workers=0
memory=0
copies=0
if [ -z "$torch" ]; then
  echo "gpu: torch_cuda_test and worker_conformance_test skipped, because this machine's python3 has no torch 2.11.0 for CUDA"
elif [ ${#start[@]} != 0 ]; then
  echo "gpu: torch_cuda_test and worker_conformance_test skipped, because this machine's glibc is older than ours"
else
  export SIPHON_TORCH_CUDA_MODULE=$here/siphon_torch_cuda.so SIPHON_PROGRAM=$here/siphon
  export OPAL_PREFIX=$here/mpi/usr PMIX_INSTALL_PREFIX=$here/mpi/usr PATH=$here/mpi/usr/bin:$PATH
  mpi=$here/mpi/usr/lib/x86_64-linux-gnu
  export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$torch/lib:$mpi:$mpi/openmpi/lib
  "$here/torch_cuda_test" 2>&1 | tee "$results/torch_cuda_test.log" | grep -E '^\[ +(FAILED|PASSED|SKIPPED)|Failure' | sort -u
  memory=${PIPESTATUS[0]}
  "$here/worker_conformance_test" 2>&1 | tee "$results/worker_conformance_test.log" | grep -E '^\[ +(FAILED|PASSED|SKIPPED)|Failure' | sort -u
  workers=${PIPESTATUS[0]}
  if [ -e "$here/siphon_activity_recorder.so" ]; then
    # The driver loads the recorder into each worker.
    rm -rf "$results/activity" && mkdir -p "$results/activity"
    if SIPHON_ACTIVITY_FOLDER=$(realpath "$results/activity") CUDA_INJECTION64_PATH=$here/siphon_activity_recorder.so \
      "$here/siphon" train tests/gpu/swap_job.yaml --set output.directory="$results/swap_job" >"$results/swap_job.log" 2>&1; then
      "$here/copy_report" "$results"/activity/*.activity | tee "$results/copies.md"
      copies=${PIPESTATUS[0]}
    else
      copies=1
      tail -n 5 "$results/swap_job.log"
    fi
    echo "gpu: the record of copies ended with $copies"
  else
    echo "gpu: copies are not recorded, because what was packed has no recorder (its toolkit had no CUPTI)"
  fi
fi
echo "gpu: torch_cuda_test ended with $memory, worker_conformance_test with $workers"
echo "gpu: first_facts ended with $facts, swap_cuda_test with $tests, nccl_processes_test with $messages; all of it is in $results"
[ "$facts" = 0 ] && [ "$tests" = 0 ] && [ "$messages" = 0 ] && [ "$memory" = 0 ] && [ "$workers" = 0 ] && [ "$copies" = 0 ]
