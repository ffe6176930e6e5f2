# The solver of linear and integer programs, COIN-OR CBC with Clp, as an IMPORTED target of our own: Siphon::cbc, where it is
# installed. Its own find modules are not packaged by Debian.

find_path(SIPHON_CBC_INCLUDE_DIR coin/Cbc_C_Interface.h)
find_library(SIPHON_CBC_LIBRARY CbcSolver)
find_library(SIPHON_CLP_LIBRARY Clp)
mark_as_advanced(SIPHON_CBC_INCLUDE_DIR SIPHON_CBC_LIBRARY SIPHON_CLP_LIBRARY)
if(SIPHON_CBC_INCLUDE_DIR AND SIPHON_CBC_LIBRARY AND SIPHON_CLP_LIBRARY AND NOT TARGET Siphon::cbc)
  add_library(Siphon::cbc INTERFACE IMPORTED GLOBAL)
  target_include_directories(Siphon::cbc SYSTEM INTERFACE ${SIPHON_CBC_INCLUDE_DIR})
  target_link_libraries(Siphon::cbc INTERFACE ${SIPHON_CBC_LIBRARY} ${SIPHON_CLP_LIBRARY})
endif()
