# How CTest comes to know the cases of a GoogleTest program: one CTest test for each suite, run in one process, so that a program
# with LibTorch starts once for all of them. Each process writes what became of its cases into Testing/cases under the build
# folder; tests/summarize_results.py counts them there.

# siphon_discover_suites(TARGET SHARDS n PREFIX text PROPERTIES ...): what suites there are is asked of the program before a test
# run. A suite is dealt out to `n` processes at most, in turn.
function(siphon_discover_suites target)
  cmake_parse_arguments(ARG "" "SHARDS;PREFIX" "PROPERTIES" ${ARGN})
  set(folder ${PROJECT_BINARY_DIR}/Testing/cases/${target})
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake CONTENT
"include([==[${CMAKE_CURRENT_FUNCTION_LIST_DIR}/SiphonAddSuites.cmake]==])
siphon_add_suites(PROGRAM [==[$<TARGET_FILE:${target}>]==] FOLDER [==[${folder}]==] SHARDS ${ARG_SHARDS} PREFIX [==[${ARG_PREFIX}]==]
                  PROPERTIES WORKING_DIRECTORY [==[${PROJECT_SOURCE_DIR}]==] [==[${ARG_PROPERTIES}]==])
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake)
endfunction()
