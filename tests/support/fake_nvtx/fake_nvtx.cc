#include "tests/support/fake_nvtx/fake_nvtx.h"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace {

struct Seen {
  std::mutex mutex;
  std::string text;
  std::map<std::thread::id, int64_t> depth;
  std::set<nvtxRangeId_t> started;
  nvtxRangeId_t next = 0;
  bool balanced = true;

  void Line(const std::string& line) { text += line + "\n"; }
};

// Never destroyed: threads may outlive static objects.
Seen& TheSeen() {
  static auto* const seen = new Seen();
  return *seen;
}

nvtxDomainHandle_t CreateDomain(const char*) {
  static int domain;
  return reinterpret_cast<nvtxDomainHandle_t>(&domain);
}

int Push(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
  Seen& seen = TheSeen();
  const std::lock_guard lock(seen.mutex);
  const int64_t depth = ++seen.depth[std::this_thread::get_id()];
  seen.Line("push " + std::to_string(depth) + " " + attributes->message.ascii);
  return static_cast<int>(depth - 1);
}

int Pop(nvtxDomainHandle_t) {
  Seen& seen = TheSeen();
  const std::lock_guard lock(seen.mutex);
  const int64_t depth = --seen.depth[std::this_thread::get_id()];
  if (depth < 0) seen.balanced = false;
  seen.Line("pop " + std::to_string(depth));
  return static_cast<int>(depth);
}

nvtxRangeId_t Start(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
  Seen& seen = TheSeen();
  const std::lock_guard lock(seen.mutex);
  const nvtxRangeId_t range = ++seen.next;
  seen.started.insert(range);
  seen.Line("start " + std::to_string(range) + " " + attributes->message.ascii);
  return range;
}

void End(nvtxDomainHandle_t, nvtxRangeId_t range) {
  Seen& seen = TheSeen();
  const std::lock_guard lock(seen.mutex);
  if (seen.started.erase(range) == 0) seen.balanced = false;
  seen.Line("end " + std::to_string(range));
}

void NameThread(uint32_t, const char* name) {
  Seen& seen = TheSeen();
  const std::lock_guard lock(seen.mutex);
  seen.Line(std::string("thread ") + name);
}

void NameStream(cudaStream_t, const char* name) {
  Seen& seen = TheSeen();
  const std::lock_guard lock(seen.mutex);
  seen.Line(std::string("stream ") + name);
}

template <typename Function>
void Put(NvtxFunctionTable table, unsigned place, Function* function) {
  *table[place] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" {

// What NVTX's header looks for in the file that its variable names.
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t find_table) {
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(find_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr) return 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
  Put(table, NVTX_CBID_CORE2_DomainCreateA, CreateDomain);
  Put(table, NVTX_CBID_CORE2_DomainRangePushEx, Push);
  Put(table, NVTX_CBID_CORE2_DomainRangePop, Pop);
  Put(table, NVTX_CBID_CORE2_DomainRangeStartEx, Start);
  Put(table, NVTX_CBID_CORE2_DomainRangeEnd, End);
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0) return 0;
  Put(table, NVTX_CBID_CORE_NameOsThreadA, NameThread);
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CUDART, &table, &size) == 0) return 0;
  Put(table, NVTX_CBID_CUDART_NameCudaStreamA, NameStream);
  return 1;
}

__attribute__((visibility("default"))) const char* siphon_fake_nvtx_text() {
  Seen& seen = TheSeen();
  const std::lock_guard lock(seen.mutex);
  static std::string* const text = new std::string();
  *text = seen.text;
  return text->c_str();
}

__attribute__((visibility("default"))) int64_t siphon_fake_nvtx_open() {
  Seen& seen = TheSeen();
  const std::lock_guard lock(seen.mutex);
  if (!seen.balanced) return -1;
  auto open = static_cast<int64_t>(seen.started.size());
  for (const auto& [thread, depth] : seen.depth) open += depth;
  return open;
}

}  // extern "C"
