#ifndef SIPHON_PIPELINE_TRANSPORT_NCCL_API_H_
#define SIPHON_PIPELINE_TRANSPORT_NCCL_API_H_

#include <climits>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct CUstream_st;  // of CUDA; a cudaStream_t points to one

namespace siphon {

// What we use of NCCL, declared by ourselves, so that it need not be there when we are built: the
// library comes with LibTorch for CUDA and is found at run time. Layouts and numbers are those of
// nccl.h (tests/pipeline/transport/nccl_header_test.cc compares them where that is installed).

enum NcclResult : int {
  kNcclSuccess = 0,
  kNcclUnhandledCudaError = 1,
  kNcclSystemError = 2,
  kNcclInternalError = 3,
  kNcclInvalidArgument = 4,
  kNcclInvalidUsage = 5,
  kNcclRemoteError = 6,
  kNcclInProgress = 7
};

// Names one communicator to all who shall join it; plain data.
struct NcclUniqueId {
  char bytes[128];
};

using NcclHandle = struct NcclOpaqueCommunicator*;

inline constexpr int kNcclUndefined = INT_MIN;
inline constexpr int kNcclBytes = 0;  // ncclInt8
// 2.18, the first one with all of it. A later library reads as much of a configuration as its size
// and version say, and takes its defaults for the rest.
inline constexpr int kNcclLeastVersion = 21800;
inline constexpr unsigned kNcclMagic = 0xcafebeef;

struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = kNcclMagic;
  unsigned version = kNcclLeastVersion;
  int blocking = 0;
  int cga_cluster_size = kNcclUndefined;
  int min_ctas = kNcclUndefined;
  int max_ctas = kNcclUndefined;
  const char* network = nullptr;
  int split_share = kNcclUndefined;
  int traffic_class = kNcclUndefined;  // later than kNcclLeastVersion, and not read therefore
};

// The functions.
struct NcclApi {
  NcclResult (*get_version)(int* version);
  NcclResult (*get_unique_id)(NcclUniqueId* id);
  const char* (*error_text)(NcclResult result);
  const char* (*last_error)(NcclHandle communicator);
  NcclResult (*init_rank)(NcclHandle* communicator, int ranks, NcclUniqueId id, int rank,
                          NcclConfig* config);
  NcclResult (*async_error)(NcclHandle communicator, NcclResult* result);
  NcclResult (*group_start)();
  NcclResult (*group_end)();
  NcclResult (*send)(const void* from, size_t count, int type, int peer, NcclHandle communicator,
                     CUstream_st* stream);
  NcclResult (*receive)(void* to, size_t count, int type, int peer, NcclHandle communicator,
                        CUstream_st* stream);
  NcclResult (*finalize)(NcclHandle communicator);
  NcclResult (*destroy)(NcclHandle communicator);
  NcclResult (*abort)(NcclHandle communicator);
  int version = 0;  // 22809 is 2.28.9
};

// "2.28.9".
std::string NcclVersionText(int version);

// Loads the library, once for each name; it stays until the process ends. `library`: a path, or a
// name that the dynamic linker finds or has loaded already. Errors: FailedPrecondition, in one
// line: it cannot be loaded, lacks a function, or is too old.
absl::StatusOr<const NcclApi*> LoadNccl(const std::string& library);

// OK for success and for what is under way. Else Unavailable for errors that come from a peer or
// the network, and Internal for all others: "<doing>: NCCL: unhandled system error (2): <detail>".
// `communicator` may be null.
absl::Status NcclStatus(const NcclApi& api, NcclResult result, NcclHandle communicator,
                        absl::string_view doing);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TRANSPORT_NCCL_API_H_
