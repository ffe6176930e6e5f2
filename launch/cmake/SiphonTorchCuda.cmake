# LibTorch's CUDA half, as the wheel brings it: what the module siphon_torch_cuda is compiled against. Of it only libc10_cuda is
# linked (the allocator and the streams, which need libcudart alone); libtorch_cuda, with cuBLAS, cuDNN and NCCL behind it, is
# loaded when a job asks for CUDA.
#
# Siphon::c10_cuda   libc10_cuda and its headers (as SYSTEM).

set(SIPHON_TORCH_CUDA_FOUND OFF)
if(NOT SIPHON_CUDA_FOUND)
  set(missing "there is no CUDA toolkit")
elseif(NOT EXISTS ${SIPHON_TORCH_ROOT}/lib/libc10_cuda.so OR NOT EXISTS ${SIPHON_TORCH_ROOT}/include/c10/cuda/CUDAStream.h)
  set(missing "LibTorch is one for the CPU")
else()
  # Both halves of a process use one libcudart.
  file(STRINGS ${SIPHON_TORCH_ROOT}/version.py line REGEX "^cuda")
  string(REGEX MATCH "[0-9]+" major "${line}")
  if(major STREQUAL CUDAToolkit_VERSION_MAJOR)
    set(SIPHON_TORCH_CUDA_FOUND ON)
  else()
    set(missing "LibTorch is for CUDA ${major}, the toolkit is ${CUDAToolkit_VERSION}")
  endif()
endif()

if(NOT SIPHON_TORCH_CUDA_FOUND)
  message(STATUS "LibTorch on CUDA: skipped, because ${missing}")
elseif(NOT TARGET Siphon::c10_cuda)
  add_library(Siphon::c10_cuda SHARED IMPORTED GLOBAL)
  set_target_properties(Siphon::c10_cuda PROPERTIES IMPORTED_LOCATION ${SIPHON_TORCH_ROOT}/lib/libc10_cuda.so)
  target_include_directories(Siphon::c10_cuda SYSTEM INTERFACE ${SIPHON_TORCH_ROOT}/include)
  target_link_libraries(Siphon::c10_cuda INTERFACE Siphon::torch_cpu)
endif()
