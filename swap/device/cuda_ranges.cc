#include "swap/device/cuda_ranges.h"

#ifdef SIPHON_NVTX
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#endif
#include <unistd.h>

namespace siphon {
#ifdef SIPHON_NVTX
namespace {

// Null where no profiler watches, which is known from the first call on.
nvtxDomainHandle_t Domain() {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("siphon");
  return domain;
}

nvtxEventAttributes_t Named(const std::string& name) {
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name.c_str();
  return attributes;
}

class RangesOfThreads final : public ProfilerRanges {
 public:
  void Push(const std::string& name) const override {
    const nvtxEventAttributes_t attributes = Named(name);
    nvtxDomainRangePushEx(Domain(), &attributes);
  }
  void Pop() const override { nvtxDomainRangePop(Domain()); }
  void NameThread(const std::string& name) const override { NameThisThread(name); }
};

}  // namespace

const ProfilerRanges* RangesOfProfiler() {
  static const RangesOfThreads ranges;
  return Domain() == nullptr ? nullptr : &ranges;
}

uint64_t BeginCopyRange(const std::string& name, int64_t bytes) {
  nvtxEventAttributes_t attributes = Named(name);
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  attributes.payload.llValue = bytes;
  return nvtxDomainRangeStartEx(Domain(), &attributes);
}

void EndCopyRange(uint64_t range) {
  if (range != 0) nvtxDomainRangeEnd(Domain(), range);
}

void NameStream(cudaStream_t stream, const std::string& name) {
  if (Domain() != nullptr) nvtxNameCudaStreamA(stream, name.c_str());
}

void NameThisThread(const std::string& name) {
  if (Domain() != nullptr) nvtxNameOsThreadA(static_cast<uint32_t>(gettid()), name.c_str());
}

#else  // a toolkit without its headers

const ProfilerRanges* RangesOfProfiler() { return nullptr; }
uint64_t BeginCopyRange(const std::string&, int64_t) { return 0; }
void EndCopyRange(uint64_t) {}
void NameStream(cudaStream_t, const std::string&) {}
void NameThisThread(const std::string&) {}

#endif

}  // namespace siphon
