#!/usr/bin/env bash
# Whether what needs CUDA also builds with CUDA 12, whose compilers still make code for sm_70 (a DGX-1V): every kernel by clang and
# the ptxas of that version, all other sources by c++ against its headers, and what they call looked up in its libcudart. Needs no
# GPU, driver or toolkit: NVIDIA's wheels of PyPI (40 MB a version) go into build/cuda12.
#
#   tests/gpu/cuda12.sh [VERSION ...]   of CUDA 12, the oldest and the newest where none is given (12.0 12.9)
#
# Exit code 1 when something does not build; 0 with a reason where it cannot be tried.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
if [ $# = 0 ]; then set -- 12.0 12.9; fi
case $1 in 12.*) ;; *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 2 ;; esac

skip() { echo "cuda12: skipped, because $1"; exit 0; }
pip=.venv/bin/pip
torch=$(echo .venv/lib/python3*/site-packages/torch/include)
[ -x $pip ] && [ -d "$torch" ] || skip "there is no .venv with LibTorch (launch/quickstart.sh makes it)"
clang=$(compgen -c clang++ | grep -E '^clang\+\+(-[0-9]+)?$' | sort -V | head -n 1)
[ -n "$clang" ] || skip "there is no clang++, which compiles the kernels"

# A file of the wheels' own layout is found by clang only where a toolkit has it.
fetch() {
  local wheels=build/cuda12/$1/wheels toolkit=build/cuda12/$1/toolkit
  if [ -e "$toolkit/complete" ]; then return; fi
  rm -rf "build/cuda12/$1"
  # The parts of a release have numbers of their own: the newest of each.
  $pip install --quiet --disable-pip-version-check --no-deps --target "$wheels" "nvidia-cuda-runtime-cu12==$1.*" "nvidia-cuda-nvcc-cu12==$1.*" \
    "nvidia-cuda-cccl-cu12==12.*" "nvidia-nvtx-cu12==12.*" || return 1
  mkdir -p "$toolkit/include" "$toolkit/bin" "$toolkit/lib64" "$toolkit/nvvm" || return 1
  local part
  for part in cuda_nvcc cuda_runtime cuda_cccl nvtx; do
    cp -rsf "$PWD/$wheels/nvidia/$part/include/." "$toolkit/include/" || return 1
  done
  ln -s "$PWD/$wheels/nvidia/cuda_nvcc/nvvm/libdevice" "$toolkit/nvvm/libdevice" || return 1
  ln -s "$PWD/$wheels/nvidia/cuda_nvcc/bin/ptxas" "$toolkit/bin/ptxas" && chmod +x "$toolkit/bin/ptxas" || return 1
  ln -s "$PWD/$wheels/nvidia/cuda_runtime/lib/libcudart.so.12" "$toolkit/lib64/" && touch "$toolkit/complete"
}

# clang 14 knows CUDA up to 11.5: newer ones have no texture references, which its own header speaks of.
kernel() {
  local toolkit=build/cuda12/$1/toolkit object=$3
  local flags=(-x cuda --cuda-path="$toolkit" --cuda-gpu-arch=sm_70 -Wno-unknown-cuda-version -D__CLANG_CUDA_TEXTURE_INTRINSICS_H__
    -std=c++17 -O2 -Wall -Wextra -Werror -I.)
  "$clang" "${flags[@]}" --cuda-device-only -c "$2" -o "$object.cubin" && "$clang" "${flags[@]}" --cuda-host-only -c "$2" -o "$object.o"
}

host_source() {
  c++ -std=c++20 -O1 -fPIC -Wall -Wextra -Wpedantic -Wno-missing-field-initializers -Werror -DSIPHON_NVTX -I. -isystem "build/cuda12/$1/toolkit/include" \
    -isystem "$torch" -isystem "$torch/torch/csrc/api/include" -c "$2" -o "$3.o"
}

status=0
for version in "$@"; do
  fetch "$version" || skip "the wheels of CUDA $version could not be had"
  objects=build/cuda12/$version/objects
  toolkit=build/cuda12/$version/toolkit
  rm -rf "$objects" && mkdir -p "$objects" || exit 1
  echo "CUDA $version: $("$toolkit/bin/ptxas" --version | tail -n 1), $("$clang" --version | head -n 1)"
  built=0
  while read -r file; do
    object=$objects/$(tr / . <<<"$file")
    case $file in *.cu) kernel "$version" "$file" "$object" ;; *) host_source "$version" "$file" "$object" ;; esac
    if [ $? = 0 ]; then built=$((built + 1)); else echo "FAILED $file"; status=1; fi
  done < <(git ls-files '*.cu' 'swap/device/cuda_*.cc' 'pipeline/transport/nccl_*.cc' 'pipeline/torch/device/cuda_*.cc' 'tests/gpu/first_facts.cc' \
    'tests/support/fake_cuda/*.cc' 'tests/support/fake_nccl/*.cc')
  # The fakes define some of them themselves.
  missing=$(comm -23 <(nm -u "$objects"/{swap,pipeline,tests.gpu}.*.o | grep -oE ' (__)?cuda[A-Za-z0-9_]+$' | sort -u) \
    <(nm -D --defined-only --without-symbol-versions "$toolkit/lib64/libcudart.so.12" | grep -oE ' (__)?cuda[A-Za-z0-9_]+$' | sort -u))
  called=$(nm -u "$objects"/{swap,pipeline,tests.gpu}.*.o | grep -oE ' (__)?cuda[A-Za-z0-9_]+$' | sort -u | wc -l)
  if [ -n "$missing" ]; then echo "FAILED: libcudart.so.12 has no" $missing; status=1; fi
  echo "CUDA $version: $built sources built, $(ls "$objects"/*.cubin | wc -l) of them kernels for sm_70; they call $called functions of libcudart.so.12"
done
exit $status
