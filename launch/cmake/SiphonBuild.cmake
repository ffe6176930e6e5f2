# Compiler settings and the two functions by which every target of the project is made.

set(SIPHON_TORCH ON CACHE STRING "ON; OFF: no targets that need LibTorch; STAGES: of those only pipeline/torch with a few tests")
# The siphon program, and what else trains whole jobs.
set(SIPHON_PROGRAM OFF)
if(SIPHON_TORCH AND NOT SIPHON_TORCH STREQUAL "STAGES")
  set(SIPHON_PROGRAM ON)
endif()
option(SIPHON_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(SIPHON_WERROR "Treat warnings in our own code as errors" OFF)
option(SIPHON_FUZZ "Give the fuzz targets libFuzzer (needs clang++)" OFF)
set(SIPHON_SANITIZE "" CACHE STRING "Value for -fsanitize=, for example address,undefined or thread")
# The thread sanitizer sees nothing in what has one thread: it gets the tests that start some, and what these need.
set(SIPHON_THREADS_ONLY OFF)
if(SIPHON_SANITIZE MATCHES thread)
  set(SIPHON_THREADS_ONLY ON)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # plugins and the CUDA module link our static libraries
# Nobody puts another function of ours in the place of one: without this the compiler inlines none that other files can call.
add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fno-semantic-interposition>)
set(CMAKE_INTERPROCEDURAL_OPTIMIZATION OFF)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# -O3 gives false -Wrestrict warnings with GCC 12 and buys nothing here: the time goes into LibTorch.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

find_program(SIPHON_CCACHE ccache)
if(SIPHON_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache refuses translation units with a precompiled header unless told that macros and time stamps do not matter.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${SIPHON_CCACHE})
endif()
find_program(SIPHON_MOLD mold)
if(SIPHON_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
if(SIPHON_SANITIZE)
  # Not of .cu files, whose compiler has no sanitizers.
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${SIPHON_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>")
  add_link_options(-fsanitize=${SIPHON_SANITIZE})
endif()

# What every target of ours is compiled with.
function(siphon_settings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wno-missing-field-initializers)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # False alarms of GCC 12 in std::string.
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
    if(SIPHON_SANITIZE)
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)  # likewise, in <regex> when instrumented
    endif()
  endif()
  if(SIPHON_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# For a target that takes longer to compile than to run: two thirds of the time.
function(siphon_optimise_little target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
endfunction()

# The target whose precompiled headers libraries share, unless their folder sets another.
set(SIPHON_COMMON_HEADERS siphon_common_headers)

# siphon_library(NAME SOURCES a.cc ... LINKS targets ... [LOCAL] [OWN_HEADERS] [COLD]): one static library for one folder
# or named sub-folder. Includes are rooted at the project ("planner/action.h"), and at include/siphon once installed. LOCAL: is not
# installed. OWN_HEADERS: precompiles other headers than planner/common_headers.h, or none. COLD: siphon_optimise_little.
function(siphon_library name)
  cmake_parse_arguments(ARG "LOCAL;OWN_HEADERS;COLD" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  if(SIPHON_THREADS_ONLY)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  string(REGEX REPLACE "^siphon_" "" short ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${short})
  add_library(Siphon::${short} ALIAS ${name})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                            $<INSTALL_INTERFACE:include/siphon>)
  target_link_libraries(${name} PUBLIC ${ARG_LINKS} PRIVATE ${ARG_PRIVATE_LINKS})
  target_compile_features(${name} PUBLIC cxx_std_20)
  siphon_settings(${name})
  if(ARG_COLD)
    siphon_optimise_little(${name})
  endif()
  if(NOT ARG_OWN_HEADERS)
    siphon_precompiled(${name} REUSE_FROM ${SIPHON_COMMON_HEADERS})
  endif()
  siphon_compile_in_units(${name})
  if(NOT ARG_LOCAL)
    set_property(GLOBAL APPEND PROPERTY SIPHON_LIBRARIES ${name})
  endif()
endfunction()

# Lets a target use the precompiled headers of another one, which must be compiled with the same flags: executables as
# libraries, with -fPIC.
function(siphon_reuse_headers target from)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC)
  siphon_precompiled(${target} REUSE_FROM ${from})
endfunction()
# target_precompile_headers, so that ccache understands it.
function(siphon_precompiled target)
  target_precompile_headers(${target} ${ARGN})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # A file that cannot use them (other macros) is compiled without.
    target_compile_options(${target} PRIVATE -fpch-preprocess -Wno-error=invalid-pch)
  endif()
endfunction()

# siphon_test(NAME SOURCES a_test.cc ... LINKS targets ... [LABEL unit] [TIMEOUT 300] [SHARDS 1] [ALONE] [MAIN] [SERIAL] [TORCH]
# [THREADS] [FAKE_CUDA] [FAKE_NCCL]):
# a GoogleTest program, one CTest test for each suite in it, whose cases share a process. SHARDS: so many processes at most share
# the cases of a suite. ALONE: each case has a process of its own. TIMEOUT: of a process, in seconds. MAIN: the sources bring
# their own main(). SERIAL: runs beside no other test. TORCH: most sources include LibTorch's headers, which are then the ones
# that are precompiled. THREADS: the tests, or what they call, start threads; builds with the thread sanitizer make no others.
# FAKE_CUDA: the tests load the CUDA module, on the fake runtime; FAKE_NCCL: and on the fake NCCL.
function(siphon_test name)
  cmake_parse_arguments(ARG "ALONE;MAIN;SERIAL;TORCH;THREADS;FAKE_CUDA;FAKE_NCCL" "LABEL;TIMEOUT;SHARDS" "SOURCES;LINKS" ${ARGN})
  if(SIPHON_THREADS_ONLY AND NOT ARG_THREADS)
    return()
  endif()
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)  # for all cases of a suite, and with sanitizers
  endif()
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} GTest::gmock GTest::gtest)
  if(NOT ARG_MAIN)
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
  endif()
  siphon_settings(${name})
  siphon_optimise_little(${name})
  if(SIPHON_SANITIZE MATCHES undefined)
    # Checks at each use of a pointer, which the address sanitizer mostly sees too: in the tests' own code they take a third of
    # the time to compile and find nothing. What is tested has them.
    target_compile_options(${name} PRIVATE -fno-sanitize=null,alignment,object-size,vptr,function)
  endif()
  if(ARG_TORCH)
    siphon_reuse_headers(${name} siphon_torch)
  else()
    siphon_reuse_headers(${name} siphon_test_headers)
  endif()
  siphon_compile_in_units(${name})
  # What may take longest starts first.
  set(properties LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} COST ${ARG_TIMEOUT})
  if(ARG_SERIAL)
    list(APPEND properties RUN_SERIAL ON)
  endif()
  if(SIPHON_SANITIZE MATCHES address)
    # A machine without memory for it says so to the program; the sanitizer would end it.
    list(APPEND properties ENVIRONMENT ASAN_OPTIONS=allocator_may_return_null=1)
  endif()
  set(prefix "")
  if(ARG_FAKE_CUDA OR ARG_FAKE_NCCL)
    set(prefix OnCuda.)  # suites that run over other backends too have one name
    target_compile_definitions(${name} PRIVATE SIPHON_CUDA_MODULE="$<TARGET_FILE:siphon_cuda>")
    add_dependencies(${name} siphon_cuda siphon_fake_cuda)
    set(fakes ${PROJECT_BINARY_DIR}/tests/support/fake_cuda/libcudart.so.${CUDAToolkit_VERSION_MAJOR})
    if(ARG_FAKE_NCCL)
      add_dependencies(${name} siphon_fake_nccl)
      string(APPEND fakes ":${PROJECT_BINARY_DIR}/tests/support/fake_nccl/libnccl.so.2")
    endif()
    list(APPEND properties ENVIRONMENT_MODIFICATION LD_PRELOAD=set:${fakes})
  endif()
  if(ARG_ALONE)
    gtest_discover_tests(${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${prefix}"
                         DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
  else()
    siphon_discover_suites(${name} SHARDS ${ARG_SHARDS} PREFIX "${prefix}" PROPERTIES ${properties})
  endif()
endfunction()
