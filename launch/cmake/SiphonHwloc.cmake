# hwloc as an IMPORTED target of our own: Siphon::hwloc, where it is installed. Without it memory goes to whatever NUMA node its first
# touch takes it to.
find_path(SIPHON_HWLOC_INCLUDE_DIR hwloc.h)
find_library(SIPHON_HWLOC_LIBRARY hwloc)
mark_as_advanced(SIPHON_HWLOC_INCLUDE_DIR SIPHON_HWLOC_LIBRARY)
if(SIPHON_HWLOC_INCLUDE_DIR AND SIPHON_HWLOC_LIBRARY AND NOT TARGET Siphon::hwloc)
  add_library(Siphon::hwloc INTERFACE IMPORTED GLOBAL)
  target_include_directories(Siphon::hwloc SYSTEM INTERFACE ${SIPHON_HWLOC_INCLUDE_DIR})
  target_link_libraries(Siphon::hwloc INTERFACE ${SIPHON_HWLOC_LIBRARY})
endif()
