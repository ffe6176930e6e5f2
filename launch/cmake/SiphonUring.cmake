# liburing as an IMPORTED target of our own: Siphon::uring, where it is installed. Without it drives are written by threads.

find_path(SIPHON_URING_INCLUDE_DIR liburing.h)
find_library(SIPHON_URING_LIBRARY uring)
mark_as_advanced(SIPHON_URING_INCLUDE_DIR SIPHON_URING_LIBRARY)
if(SIPHON_URING_INCLUDE_DIR AND SIPHON_URING_LIBRARY AND NOT TARGET Siphon::uring)
  add_library(Siphon::uring INTERFACE IMPORTED GLOBAL)
  target_include_directories(Siphon::uring SYSTEM INTERFACE ${SIPHON_URING_INCLUDE_DIR})
  target_link_libraries(Siphon::uring INTERFACE ${SIPHON_URING_LIBRARY})
endif()
