#!/usr/bin/env bash
# Gathers in build/gpu, and in the one file build/gpu.tar.gz, what another machine needs of this build: the programs, the CUDA
# modules, Open MPI, the libraries that they link, and the peer's script; LibTorch, CUDA and NCCL are the other machine's.
#
#   tests/gpu/pack.sh
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
packed=build/gpu
peer=../shared/peers/torch_train.py
# With the tree itself, which is 7 MB, it has to travel within 64 MiB.
most_mebibytes=40
programs=(build/tests/gpu/first_facts build/tests/gpu/gpu_hog build/tests/swap/swap_cuda_test build/tests/swap/cuda_lender
  build/tests/swap/cuda_ring_worker build/swap/siphon_cuda.so build/tests/pipeline/transport/nccl_processes_test
  build/tests/pipeline/transport/nccl_rank build/tests/gpu/siphon_to_pack build/pipeline/torch/siphon_torch_cuda.so
  build/tests/pipeline/torch/torch_cuda_test build/tests/gpu/worker_conformance_test build/tests/gpu/pooling_plugin.so)
targets=(first_facts gpu_hog swap_cuda_test nccl_processes_test siphon_cuda siphon_to_pack siphon_torch_cuda torch_cuda_test
  worker_conformance_test)
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

pack_libraries() {
  local libraries glibc='/(libc|libm|libdl|libpthread|librt)\.so\.[0-9]+$'
  # LibTorch and all of CUDA are the other machine's.
  libraries=$(find "$packed/mpi/usr" -type f \( -name '*.so*' -o -name orterun \) -print0 | xargs -0 ldd "${programs[@]}" 2>/dev/null |
    awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | grep -v -E '/torch/lib/|/nvidia/' | sort -u)
  grep -v -E "$glibc" <<<"$libraries" | xargs cp -L -t "$packed/lib" || return 1
  grep -E "$glibc" <<<"$libraries" | xargs cp -L -t "$packed/glibc" /lib64/ld-linux-x86-64.so.2
}

cmake --build build --target "${targets[@]}" || exit 1
rm -rf "$packed" "$packed.tar.gz"
mkdir -p "$packed/lib" "$packed/glibc" || exit 1
cp "${programs[@]}" "$packed/" || exit 1
mv "$packed/siphon_to_pack" "$packed/siphon" || exit 1
strip --strip-unneeded "$packed"/* 2>/dev/null
pack_mpi || exit 1
pack_libraries || exit 1
if [ -e "$peer" ]; then
  cp "$peer" "$packed/" || exit 1
else
  echo "gpu: the peer's script is not packed, because there is no $peer"
fi
{ git rev-parse --short HEAD && git diff --quiet HEAD || echo "and changes"; } 2>/dev/null | paste -sd ' ' >"$packed/commit"
tar -C build -cf - gpu | gzip -9 >"$packed.tar.gz" || exit 1
size=$(($(stat -c %s "$packed.tar.gz") >> 20))
echo "gpu: $packed.tar.gz has $size MiB, $(du -sm "$packed" | cut -f 1) MiB unpacked"
if [ "$size" -gt "$most_mebibytes" ]; then
  echo "gpu: that is more than the $most_mebibytes MiB that travel beside the tree"
  exit 1
fi
