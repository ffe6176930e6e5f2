# Sourced by run.sh: finds on this machine what was not packed, and says in `environment` what our programs need.
#
#   find_python       python, torch_problem, torch: asked before anything of ours is in its way; what it says is shown
#   find_environment  environment and start, for `env "${environment[@]}" "${start[@]}" PROGRAM`, and nccl, the library's path; why
#                     our programs do not start here (start_problem), or only with their own glibc and without LibTorch
#                     (glibc_problem); needs `here`, a folder as pack.sh makes it, and `work`
#   write_launcher    in `work` programs of ours that bring their environment with them, for whoever must not have it

# Of what LibTorch our programs were built with.
torch_version=2.11.0

find_python() {
  local said errors
  python=$(command -v python3) torch='' torch_problem=''
  errors=$(mktemp)
  if [ -z "$python" ]; then
    torch_problem="there is no python3"
  elif ! said=$("$python" -c 'import os, torch; print(torch.__version__); print(os.path.dirname(torch.__file__))' 2>"$errors"); then
    torch_problem="$python cannot import torch: $(tail -n 1 "$errors")"
    cat "$errors" >&2
  elif [[ $said != "$torch_version"+cu* ]]; then
    torch_problem="$python has torch ${said%%$'\n'*}, and our programs need $torch_version for CUDA"
  else
    torch=${said##*$'\n'}
  fi
  rm -f "$errors"
  # Its wheels without their Python's consent: enough for our programs, not for a peer.
  if [ -z "$torch" ] && compgen -G '.venv/lib/python3*/site-packages/nvidia/cudnn' >/dev/null; then
    torch=$(echo "$PWD"/.venv/lib/python3*/site-packages/torch)
  fi
}

find_environment() {
  local libraries=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} mpi=$here/mpi/usr/lib/x86_64-linux-gnu helper
  # NCCL is this machine's: that of LibTorch for CUDA, or of a toolkit.
  nccl=$(find -L ${torch:+"$torch/../nvidia"} .venv/lib /usr/local/cuda/lib64 /usr/local/cuda/lib /usr/lib/x86_64-linux-gnu -maxdepth 6 \
    -name libnccl.so.2 2>/dev/null | head -n 1)
  if [ -n "$nccl" ]; then libraries=$libraries:$(dirname "$nccl"); fi
  if [ -n "$torch" ]; then libraries=$libraries:$torch/lib:$mpi:$mpi/openmpi/lib; fi
  environment=(SIPHON_GPU=1 SIPHON_CUDA_MODULE="$here/siphon_cuda.so" SIPHON_TORCH_CUDA_MODULE="$here/siphon_torch_cuda.so"
    SIPHON_PROGRAM="$here/siphon" SIPHON_POOLING_PLUGIN="$here/pooling_plugin.so" LD_LIBRARY_PATH="$libraries"
    OMPI_MCA_plm=isolated OPAL_PREFIX="$here/mpi/usr" PMIX_INSTALL_PREFIX="$here/mpi/usr"
    PMIX_PKGLIBDIR="$here/mpi/usr/lib/x86_64-linux-gnu/pmix2/lib/pmix" PATH="$here/mpi/usr/bin:$PATH")
  # Where the machine's glibc is older than ours, ours starts the programs.
  local helpers=$here said
  start=() start_problem='' glibc_problem=''
  said=$(why_not_started)
  if [[ $said == *GLIBC_* ]]; then
    glibc_problem="this machine's glibc is older than ours: $said"
    start=("$here/glibc/ld-linux-x86-64.so.2" --library-path "$here/glibc:$libraries")
    helpers=$work
    for helper in cuda_lender cuda_ring_worker nccl_rank; do
      printf '#!/bin/sh\nexec %s "$@"\n' "${start[*]} $here/$helper" >"$work/$helper"
      chmod +x "$work/$helper"
    done
    said=$(why_not_started)
  fi
  start_problem=$said
  environment+=(SIPHON_CUDA_LENDER="$helpers/cuda_lender" SIPHON_CUDA_RING_WORKER="$helpers/cuda_ring_worker"
    SIPHON_NCCL_RANK="$helpers/nccl_rank")
}

# What first_facts says that does not get as far as asking for its arguments, which ends with 2; nothing where it does.
why_not_started() {
  local said code
  said=$(env "${environment[@]}" "${start[@]}" "$here/first_facts" 2>&1 </dev/null)
  code=$?
  if [ $code != 2 ]; then echo "first_facts ended with $code: ${said:-it said nothing}" | paste -sd ' ' | cut -c 1-600; fi
}

write_launcher() { # program...
  local program
  for program in "$@"; do
    { printf '#!/bin/sh\nexec env'; printf ' %q' "${environment[@]}" "${start[@]}" "$here/$program"; printf ' "$@"\n'; } >"$work/$program"
    chmod +x "$work/$program"
  done
}
