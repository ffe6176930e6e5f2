#ifndef SIPHON_TESTS_PIPELINE_TRANSPORT_COUNT_MPI_CALLS_H_
#define SIPHON_TESTS_PIPELINE_TRANSPORT_COUNT_MPI_CALLS_H_

#include <cstdint>

namespace siphon {

// MPI calls of this process so far, by whomever in it: the program's own MPI functions stand in
// front of the library's and count (the profiling interface, MPI 3.1, chapter 14). Covered is
// everything that can move data or make progress and that this project could sensibly call.
int64_t MpiCallCount();

}  // namespace siphon

#endif  // SIPHON_TESTS_PIPELINE_TRANSPORT_COUNT_MPI_CALLS_H_
