# Every third-party library, found in one place. All but LibTorch are Debian packages (launch/packages.txt).

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(CLI11 REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(pugixml REQUIRED)
find_package(MPI REQUIRED COMPONENTS C)
if(SIPHON_TESTS)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
  include(GoogleTest)
endif()
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp INTERFACE IMPORTED GLOBAL)
  target_link_libraries(yaml-cpp::yaml-cpp INTERFACE yaml-cpp)
endif()
include(SiphonCbc)  # optional: planner/bounds does with less without it
include(SiphonHwloc)  # optional: without it memory is on the NUMA node that it comes to
include(SiphonUring)  # optional: swap/device/nvme_* uses threads without it
include(SiphonCuda)  # optional: no CUDA module without it
if(SIPHON_TORCH)
  include(SiphonLibTorch)
  include(SiphonTorchCuda)  # optional: nothing computes on CUDA devices without it
endif()
