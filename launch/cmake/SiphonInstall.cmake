# `cmake --install`: libraries, headers and what find_package(Siphon) reads, and the program. Included last, when all targets
# are known.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Siphon)

get_property(libraries GLOBAL PROPERTY SIPHON_LIBRARIES)
foreach(library IN LISTS libraries)
  get_target_property(source_dir ${library} SOURCE_DIR)
  cmake_path(IS_PREFIX PROJECT_SOURCE_DIR ${source_dir} is_ours)
  cmake_path(RELATIVE_PATH source_dir BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
  if(is_ours AND NOT folder MATCHES "^tests")
    list(APPEND installed ${library})
  endif()
endforeach()
install(TARGETS ${installed} EXPORT SiphonTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/siphon)
install(EXPORT SiphonTargets NAMESPACE Siphon:: DESTINATION ${package_dir})

# As in the sources, so that an #include is the same inside and outside: "launch/run/trainer.h". Tables (*.def) are headers.
install(DIRECTORY planner partitioner swap pipeline launch DESTINATION include/siphon
        FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "cmake" EXCLUDE)

if(TARGET siphon)
  # LibTorch stays where it is, and the installed program finds it there. (INSTALL_RPATH_USE_LINK_PATH leaves out folders of
  # the project, as .venv is.)
  set_target_properties(siphon PROPERTIES INSTALL_RPATH ${SIPHON_TORCH_ROOT}/lib INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS siphon RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

if(TARGET Siphon::cbc)
  set(SIPHON_CBC ON)
else()
  set(SIPHON_CBC OFF)
endif()
if(TARGET Siphon::hwloc)
  set(SIPHON_HWLOC ON)
else()
  set(SIPHON_HWLOC OFF)
endif()
if(TARGET Siphon::uring)
  set(SIPHON_URING ON)
else()
  set(SIPHON_URING OFF)
endif()
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/SiphonConfig.cmake.in ${PROJECT_BINARY_DIR}/SiphonConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Interfaces still move with minor versions.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/SiphonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
set(package_files ${PROJECT_BINARY_DIR}/SiphonConfig.cmake ${PROJECT_BINARY_DIR}/SiphonConfigVersion.cmake)
if(SIPHON_TORCH)
  list(APPEND package_files ${CMAKE_CURRENT_LIST_DIR}/SiphonLibTorch.cmake)
endif()
if(SIPHON_CBC)
  list(APPEND package_files ${CMAKE_CURRENT_LIST_DIR}/SiphonCbc.cmake)
endif()
if(SIPHON_HWLOC)
  list(APPEND package_files ${CMAKE_CURRENT_LIST_DIR}/SiphonHwloc.cmake)
endif()
if(SIPHON_URING)
  list(APPEND package_files ${CMAKE_CURRENT_LIST_DIR}/SiphonUring.cmake)
endif()
install(FILES ${package_files} DESTINATION ${package_dir})

if(TARGET siphon_cuda)
  install(TARGETS siphon_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/siphon)
endif()
if(TARGET siphon_torch_cuda)
  set_target_properties(siphon_torch_cuda PROPERTIES INSTALL_RPATH ${SIPHON_TORCH_ROOT}/lib INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS siphon_torch_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/siphon)
endif()
