// NCCL's functions, of those that we use.

#include <cuda_runtime_api.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/transport/nccl_api.h"
#include "tests/support/fake_cuda/fake_cuda.h"
#include "tests/support/fake_cuda/other_fakes.h"
#include "tests/support/fake_nccl/communicator.h"
#include "tests/support/fake_nccl/meeting.h"
#include "tests/support/fake_nccl/state.h"

using siphon::kNcclBytes;
using siphon::kNcclInProgress;
using siphon::kNcclInvalidArgument;
using siphon::kNcclInvalidUsage;
using siphon::kNcclLeastVersion;
using siphon::kNcclMagic;
using siphon::kNcclSuccess;
using siphon::kNcclSystemError;
using siphon::kNcclUnhandledCudaError;
using siphon::NcclConfig;
using siphon::NcclHandle;
using siphon::NcclResult;
using siphon::NcclUniqueId;
using siphon::fake_nccl::Communicator;
using siphon::fake_nccl::Meeting;
using siphon::fake_nccl::Operation;
using siphon::fake_nccl::TheState;

namespace {

// Never destroyed: streams' threads may outlive static objects.
struct Handles {
  std::mutex mutex;
  std::map<NcclHandle, std::shared_ptr<Communicator>> communicators;
  uintptr_t next = 0x4000;
};

Handles& TheHandles() {
  static auto* const handles = new Handles();
  return *handles;
}

std::shared_ptr<Communicator> Find(NcclHandle handle) {
  Handles& handles = TheHandles();
  const std::lock_guard lock(handles.mutex);
  const auto found = handles.communicators.find(handle);
  return found == handles.communicators.end() ? nullptr : found->second;
}

// The communicators that this thread's open group has work for.
thread_local int group_depth = 0;
thread_local std::vector<std::shared_ptr<Communicator>> grouped;
// Those that it aborts, and gives back when it ends.
thread_local std::vector<std::shared_ptr<Communicator>> aborted;
thread_local std::string last_error;

NcclResult Put(const Operation& operation, NcclHandle handle, int type) {
  const std::shared_ptr<Communicator> communicator = Find(handle);
  if (communicator == nullptr || type != kNcclBytes) return kNcclInvalidArgument;
  if (group_depth == 0) {
    return communicator->Refuse(kNcclInvalidUsage, "the fake knows messages in groups only");
  }
  const NcclResult added = communicator->Add(operation);
  if (added != kNcclSuccess) return added;
  for (const std::shared_ptr<Communicator>& each : grouped) {
    if (each == communicator) return kNcclSuccess;
  }
  grouped.push_back(communicator);
  return kNcclSuccess;
}

}  // namespace

extern "C" {

NcclResult ncclGetVersion(int* version) {
  *version = static_cast<int>(TheState().version);
  return kNcclSuccess;
}

const char* ncclGetErrorString(NcclResult result) {
  switch (result) {
    case kNcclSuccess:
      return "no error";
    case kNcclUnhandledCudaError:
      return "unhandled cuda error";
    case kNcclSystemError:
      return "unhandled system error";
    case kNcclInvalidArgument:
      return "invalid argument";
    case kNcclInvalidUsage:
      return "invalid usage";
    case siphon::kNcclRemoteError:
      return "remote process exited or there was a network error";
    case kNcclInProgress:
      return "NCCL operation in progress";
    case siphon::kNcclInternalError:
      return "internal error";
  }
  return "unknown result code";
}

const char* ncclGetLastError(NcclHandle handle) {
  const std::shared_ptr<Communicator> communicator = Find(handle);
  last_error = communicator == nullptr ? "" : communicator->LastError();
  return last_error.c_str();
}

NcclResult ncclGetUniqueId(NcclUniqueId* id) {
  const std::string name = Meeting::Arrange();
  if (name.empty() || name.size() >= sizeof(id->bytes)) return kNcclSystemError;
  std::memset(id, 0, sizeof(*id));
  std::memcpy(id->bytes, name.data(), name.size());
  return kNcclSuccess;
}

NcclResult ncclCommInitRankConfig(NcclHandle* handle, int ranks, NcclUniqueId id, int rank,
                                  NcclConfig* config) {
  *handle = nullptr;
  if (ranks < 2 || ranks > siphon::fake_nccl::kMostRanks || rank < 0 || rank >= ranks ||
      config == nullptr || config->magic != kNcclMagic || config->blocking != 0 ||
      config->version < kNcclLeastVersion || config->min_ctas > config->max_ctas) {
    return kNcclInvalidArgument;
  }
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return kNcclUnhandledCudaError;
  int64_t memory = 0;
  if (const int64_t wanted = TheState().memory; wanted > 0) {
    memory = siphon_fake_cuda_take(device, wanted);
    if (memory == 0) return kNcclUnhandledCudaError;
  }
  std::shared_ptr<Meeting> meeting = Meeting::Join(id.bytes, ranks, rank, device);
  if (meeting == nullptr) return kNcclSystemError;
  auto made = std::make_shared<Communicator>(std::move(meeting), ranks, rank, device, memory);
  Handles& handles = TheHandles();
  const std::lock_guard lock(handles.mutex);
  *handle = reinterpret_cast<NcclHandle>(handles.next += 16);
  handles.communicators[*handle] = std::move(made);
  return kNcclInProgress;
}

NcclResult ncclCommGetAsyncError(NcclHandle handle, NcclResult* result) {
  const std::shared_ptr<Communicator> communicator = Find(handle);
  if (communicator == nullptr) return kNcclInvalidArgument;
  *result = communicator->Ask();
  return kNcclSuccess;
}

NcclResult ncclGroupStart() {
  ++group_depth;
  return kNcclSuccess;
}

NcclResult ncclGroupEnd() {
  if (group_depth == 0) return kNcclInvalidUsage;
  if (--group_depth > 0) return kNcclSuccess;
  NcclResult result = kNcclSuccess;
  for (const std::shared_ptr<Communicator>& each : std::exchange(grouped, {})) {
    const NcclResult ended = each->EndGroup();
    if (result == kNcclSuccess || result == kNcclInProgress) result = ended;
  }
  for (const std::shared_ptr<Communicator>& each : std::exchange(aborted, {})) each->GiveBack();
  return result;
}

NcclResult ncclSend(const void* from, size_t count, int type, int peer, NcclHandle handle,
                    cudaStream_t stream) {
  return Put({.sends = true,
              .peer = peer,
              .address = const_cast<char*>(static_cast<const char*>(from)),
              .bytes = static_cast<int64_t>(count),
              .stream = stream},
             handle, type);
}

NcclResult ncclRecv(void* to, size_t count, int type, int peer, NcclHandle handle,
                    cudaStream_t stream) {
  return Put({.sends = false,
              .peer = peer,
              .address = static_cast<char*>(to),
              .bytes = static_cast<int64_t>(count),
              .stream = stream},
             handle, type);
}

NcclResult ncclCommFinalize(NcclHandle handle) {
  const std::shared_ptr<Communicator> communicator = Find(handle);
  return communicator == nullptr ? kNcclInvalidArgument : communicator->Finalize();
}

NcclResult ncclCommDestroy(NcclHandle handle) {
  const std::shared_ptr<Communicator> communicator = Find(handle);
  if (communicator == nullptr) return kNcclInvalidArgument;
  const NcclResult destroyed = communicator->Destroy();
  if (destroyed != kNcclSuccess) return destroyed;
  Handles& handles = TheHandles();
  const std::lock_guard lock(handles.mutex);
  handles.communicators.erase(handle);
  return kNcclSuccess;
}

NcclResult ncclCommAbort(NcclHandle handle) {
  const std::shared_ptr<Communicator> communicator = Find(handle);
  if (communicator == nullptr) return kNcclInvalidArgument;
  communicator->Abort();
  if (group_depth > 0) {
    aborted.push_back(communicator);
  } else {
    communicator->GiveBack();
  }
  Handles& handles = TheHandles();
  const std::lock_guard lock(handles.mutex);
  handles.communicators.erase(handle);
  return kNcclSuccess;
}

}  // extern "C"
