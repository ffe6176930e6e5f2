# LibTorch from the PyPI wheel, as two IMPORTED targets of our own. find_package(Torch) is not used: with a CUDA wheel it
# demands a CUDA toolkit, and links CUDA, cuDNN and NCCL into every process. The CPU program needs two libraries only.
#
# Siphon::torch_cpu   libtorch_cpu + libc10 and the wheel's headers (as SYSTEM).

set(SIPHON_TORCH_ROOT "" CACHE PATH "The wheel's torch folder (site-packages/torch); found in .venv when empty")
if(NOT SIPHON_TORCH_ROOT)
  file(GLOB candidates ${CMAKE_CURRENT_LIST_DIR}/../../.venv/lib/python3*/site-packages/torch)
  list(LENGTH candidates count)
  if(count EQUAL 0)
    message(FATAL_ERROR "LibTorch not found: run launch/setup.sh, or set SIPHON_TORCH_ROOT to the wheel's torch folder")
  endif()
  list(GET candidates 0 first)
  cmake_path(NORMAL_PATH first)
  set(SIPHON_TORCH_ROOT ${first} CACHE PATH "" FORCE)
endif()
if(NOT EXISTS ${SIPHON_TORCH_ROOT}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "No lib/libtorch_cpu.so under SIPHON_TORCH_ROOT=${SIPHON_TORCH_ROOT}")
endif()

if(NOT TARGET Siphon::torch_cpu)
  add_library(Siphon::c10 SHARED IMPORTED GLOBAL)
  set_target_properties(Siphon::c10 PROPERTIES IMPORTED_LOCATION ${SIPHON_TORCH_ROOT}/lib/libc10.so)
  add_library(Siphon::torch_cpu SHARED IMPORTED GLOBAL)
  set_target_properties(Siphon::torch_cpu PROPERTIES IMPORTED_LOCATION ${SIPHON_TORCH_ROOT}/lib/libtorch_cpu.so)
  foreach(target Siphon::c10 Siphon::torch_cpu)
    target_include_directories(${target} SYSTEM INTERFACE
        ${SIPHON_TORCH_ROOT}/include ${SIPHON_TORCH_ROOT}/include/torch/csrc/api/include)
  endforeach()
  target_link_libraries(Siphon::torch_cpu INTERFACE Siphon::c10)
endif()
