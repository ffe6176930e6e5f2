#include "tests/gpu/large_copies.h"

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/status.h"
#include "planner/units.h"

namespace siphon {
namespace {

constexpr size_t kSmallCopy = 64 << 10;  // a boundary's activations, the least of them
constexpr double kLeastOfOneCall = 95;   // percent
constexpr double kLongestSmallCopy = 2;  // ms
constexpr double kGigabyte = 1e9;

}  // namespace

LargeCopies::LargeCopies(const CudaModule& module, size_t bytes, FactTable& table)
    : module_(module), table_(table), bytes_(bytes) {
  const Bytes size(static_cast<int64_t>(bytes));
  FactClock::time_point begin = FactClock::now();
  pool_ = Need(module.MakePinnedPool({.bytes = size * 2 + Bytes(1 << 20), .cap = size * 4}));
  table_.Print("locking host memory, pool (touched by 4 threads)",
               static_cast<double>(size.value) * 2 / SecondsSince(begin) / kGigabyte, "GB/s");
  begin = FactClock::now();
  void* alloc = nullptr;
  Need(cudaHostAlloc(&alloc, bytes, cudaHostAllocDefault), "cudaHostAlloc");
  table_.Print("locking host memory, cudaHostAlloc",
               static_cast<double>(bytes) / SecondsSince(begin) / kGigabyte, "GB/s");
  Need(cudaFreeHost(alloc), "cudaFreeHost");
  for (absl::Span<std::byte>& host : host_) host = Need(pool_->Take(size));
  small_host_ = Need(pool_->Take(Bytes(kSmallCopy)));
  for (void*& device : device_) Need(cudaMalloc(&device, bytes), "cudaMalloc");
  for (void*& device : small_device_) Need(cudaMalloc(&device, kSmallCopy), "cudaMalloc");
  for (cudaStream_t& stream : streams_) {
    Need(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  }
  for (size_t word = 0; word + 8 <= bytes; word += 8) {
    const uint64_t value = word * 0x9E3779B97F4A7C15u;
    std::memcpy(&host_[0][word], &value, sizeof(value));
  }
  backend_ = Need(module.MakeBackend(OptionsForLenders(0, 0, PeerEngines::kOneForAll)));
}

LargeCopies::~LargeCopies() {
  backend_ = nullptr;
  for (void* const device : device_) Need(cudaFree(device), "cudaFree");
  for (void* const device : small_device_) Need(cudaFree(device), "cudaFree");
  for (const cudaStream_t stream : streams_) Need(cudaStreamDestroy(stream), "a stream");
}

void LargeCopies::PrintRates() {
  const double in_call = Rate([&] { ByCall(0, device_[0], host_[0].data()); });
  const double out_call = Rate([&] { ByCall(1, host_[1].data(), device_[0]); });
  const double in = Rate([&] { ByBackend(CopyLane::kIn, device_[0], host_[0].data()); });
  const double out = Rate([&] { ByBackend(CopyLane::kOut, host_[1].data(), device_[0]); });
  table_.Print("host to device, one call", in_call / kGigabyte, "GB/s");
  table_.Print("host to device, backend", in / kGigabyte, "GB/s");
  table_.PrintWithLeast("host to device, backend, of one call", 100 * in / in_call, "%",
                        kLeastOfOneCall);
  table_.Print("device to host, one call", out_call / kGigabyte, "GB/s");
  table_.Print("device to host, backend", out / kGigabyte, "GB/s");
  table_.PrintWithLeast("device to host, backend, of one call", 100 * out / out_call, "%",
                        kLeastOfOneCall);
  const double both = Rate([&] {
    const CopyEvent one = Start(CopyLane::kIn, device_[1], host_[0].data());
    const CopyEvent other = Start(CopyLane::kOut, host_[1].data(), device_[0]);
    SIPHON_CHECK(backend_->Wait(one).ok() && backend_->Wait(other).ok(), "both arrive");
  });
  table_.Print("both directions at once, backend, each", both / kGigabyte, "GB/s");
  const double local = Rate([&] { ByCall(0, device_[1], device_[0]); });
  table_.Print("within the device, one call", local / kGigabyte, "GB/s");
  const bool same = std::memcmp(host_[0].data(), host_[1].data(), bytes_ / 8 * 8) == 0;
  table_.Print("what came back", same ? "is as it left" : "IS WRONG");
  SIPHON_CHECK(same, "copies keep every byte");
}

std::vector<LargeCopies::SmallWay> LargeCopies::SmallWays() {
  return {{"64 KiB to the device", small_device_[0], small_host_.data(), false},
          {"64 KiB to the host", small_host_.data(), small_device_[0], true},
          {"64 KiB within the device", small_device_[1], small_device_[0], false}};
}

double LargeCopies::Small(const SmallWay& way, cudaStream_t stream) {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const FactClock::time_point begin = FactClock::now();
  Need(cudaMemcpyAsync(way.to, way.from, kSmallCopy, cudaMemcpyDefault, stream), "a small copy");
  Need(cudaStreamSynchronize(stream), "a small copy");
  return SecondsSince(begin);
}

void LargeCopies::PrintSmallBesideLarge() {
  for (const SmallWay& way : SmallWays()) {
    const auto small = [&] { return Small(way, streams_[1]); };
    const auto behind_one_call = [&] {
      void* const to = way.to_host ? host_[1].data() : device_[0];
      const void* const from = way.to_host ? device_[1] : host_[0].data();
      Need(cudaMemcpyAsync(to, from, bytes_, cudaMemcpyDefault, streams_[0]), "a large copy");
      const double time = small();
      Need(cudaStreamSynchronize(streams_[0]), "a large copy");
      return time;
    };
    const std::string name = way.name;
    table_.Print(name + ", alone", 1e3 * MedianOf(small), "ms");
    table_.Print(name + ", behind one large call", 1e3 * MedianOf(behind_one_call), "ms");
    table_.PrintWithLimit(name + ", both lanes busy",
                          1e3 * MedianOf([&] { return BesideBothLanes(small); }), "ms",
                          kLongestSmallCopy);
  }
}

void LargeCopies::PrintWays() {
  const CudaWay ways[] = {{Bytes(8 << 20), 2, 1}, {Bytes(8 << 20), 1, 1}, {Bytes(32 << 20), 1, 1},
                          {Bytes(2 << 20), 2, 1}, {Bytes(8 << 20), 2, 2}, {Bytes(8 << 20), 3, 3},
                          {Bytes(8 << 20), 4, 2}, {Bytes(4 << 20), 2, 2}, {Bytes(16 << 20), 2, 2}};
  for (const CudaWay& way : ways) {
    CudaBackendOptions options = OptionsForLenders(0, 0, PeerEngines::kOneForAll);
    options.ways[0] = way;
    backend_ = nullptr;
    backend_ = Need(module_.MakeBackend(options));
    const std::string name =
        absl::StrCat("chunks of ", way.chunk.value >> 20, " MiB, ", way.chunks_in_flight,
                     " at a time, ", way.streams, way.streams == 1 ? " stream" : " streams");
    const double in = Rate([&] { ByBackend(CopyLane::kIn, device_[0], host_[0].data()); });
    const double both = Rate([&] { BesideBothLanes([] { return 0.0; }); });
    std::string said = absl::StrFormat("%.1f, both %.1f GB/s;", in / kGigabyte, both / kGigabyte);
    for (const SmallWay& small : SmallWays()) {
      const double time =
          MedianOf([&] { return BesideBothLanes([&] { return Small(small, streams_[1]); }); });
      absl::StrAppendFormat(&said, " %.2f", 1e3 * time);
    }
    table_.Print(name, said + " ms");
  }
}

double LargeCopies::Rate(const std::function<void()>& copy) const {
  copy();  // the first one makes whatever there is to make
  return static_cast<double>(bytes_) / MedianOf([&] {
           const FactClock::time_point begin = FactClock::now();
           copy();
           return SecondsSince(begin);
         });
}

void LargeCopies::ByCall(int stream, void* to, const void* from) {
  Need(cudaMemcpyAsync(to, from, bytes_, cudaMemcpyDefault, streams_[stream]), "a large copy");
  Need(cudaStreamSynchronize(streams_[stream]), "a large copy");
}

CopyEvent LargeCopies::Start(CopyLane lane, void* to, const void* from) {
  const absl::Span<const std::byte> source(static_cast<const std::byte*>(from), bytes_);
  const absl::Span<std::byte> target(static_cast<std::byte*>(to), bytes_);
  return backend_->StartCopy(lane, {{source, target, CopyLinkId(0)}});
}

void LargeCopies::ByBackend(CopyLane lane, void* to, const void* from) {
  const absl::Status copied = backend_->Wait(Start(lane, to, from));
  SIPHON_CHECK(copied.ok(), copied.message());
}

double LargeCopies::BesideBothLanes(const std::function<double()>& run) {
  const CopyEvent in = Start(CopyLane::kIn, device_[0], host_[0].data());
  const CopyEvent out = Start(CopyLane::kOut, host_[1].data(), device_[1]);
  const double result = run();
  SIPHON_CHECK(backend_->Wait(in).ok() && backend_->Wait(out).ok(), "large copies arrive");
  return result;
}

}  // namespace siphon
