// The CUDA backend where only the fake runtime can show what happens.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/support/fake_cuda/fake_control.h"
#include "tests/swap/device/backend_rig.h"
#include "tests/swap/device/cuda_rig.h"

namespace siphon {
namespace {

using testing::HasSubstr;
using Where = BackendRig::Where;

class CudaOnTheFake : public testing::Test {
 protected:
  void SetUp() override {
    if (!FakeCuda::IsThere()) GTEST_SKIP() << "skipped, because a device is no fake";
    FakeCuda::Reset();
  }
  void TearDown() override {
    if (FakeCuda::IsThere()) FakeCuda::Reset();
  }
};

std::string DeviceProblem() {
  const auto devices = TheCudaModule().Devices();
  return devices.ok() ? "" : std::string(devices.status().message());
}

TEST_F(CudaOnTheFake, DescribesDevices) {
  FakeCuda::Set("devices", 3);
  const auto devices = TheCudaModule().Devices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 3u);
  EXPECT_EQ((*devices)[2].name, "Siphon fake GPU");
  EXPECT_EQ((*devices)[2].bus_id, "0000:12:00.0");
  EXPECT_EQ((*devices)[2].uuid, "GPU-fa000000-0000-0000-0000-000000000002");
  EXPECT_EQ((*devices)[2].compute_major, 9);
  EXPECT_EQ((*devices)[2].copy_engines, 3);
  EXPECT_EQ((*devices)[2].memory, Bytes(1 << 30));
  EXPECT_EQ(TheCudaModule().NumaNode(2), (*devices)[2].numa_node);
  EXPECT_EQ(TheCudaModule().NumaNode(7), std::nullopt) << "there is no such device";
}

// A context takes half a gigabyte of a device, which is in nobody's books.
TEST_F(CudaOnTheFake, MakesContextsWhereItCopiesAndNowhereElse) {
  FakeCuda::Set("devices", 3);
  ASSERT_TRUE(TheCudaModule().Devices().ok());
  EXPECT_EQ(FakeCuda::Get("contexts"), 0);
  const auto arena = TheCudaModule().MakeArena(0, Bytes(64));
  ASSERT_TRUE(arena.ok()) << arena.status();
  const absl::Span<std::byte> memory = (*arena)->memory();
  FakeCuda::Reset();
  FakeCuda::Set("devices", 3);
  std::thread([&] {
    for (int copy = 0; copy < 2; ++copy) {
      EXPECT_EQ(TheCudaModule().CopyNow(2, memory.data(), memory.data() + 32, 32),
                absl::OkStatus());
    }
  }).join();
  EXPECT_EQ(FakeCuda::Get("contexts"), 0b100);
}

TEST_F(CudaOnTheFake, SaysInALineThatThereIsNoDeviceOrDriver) {
  FakeCuda::Set("devices", -1);
  EXPECT_EQ(DeviceProblem(),
            "no CUDA: there is no driver, or it is older than the toolkit that this was built with "
            "(cudaErrorInsufficientDriver, 35); workers compute on the CPU here (pipeline.backend: "
            "cpu)");
  FakeCuda::Set("devices", 0);
  EXPECT_EQ(DeviceProblem(),
            "no CUDA: the driver shows no device (cudaErrorNoDevice, 100); workers compute on the "
            "CPU here (pipeline.backend: cpu)");
  EXPECT_EQ(TheCudaModule().MakeArena(0, Bytes(1)).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// However much is to be copied: an engine that always found the next chunk behind the one that
// moves would not turn to what others copy.
TEST_F(CudaOnTheFake, GivesAStreamNothingBehindTheChunkThatMoves) {
  const std::unique_ptr<BackendRig> rig = MakeRig();
  const absl::Span<std::byte> from = rig->Take(Where::kWorker, 100'000);
  const absl::Span<std::byte> to = rig->Take(Where::kHost, 100'000);
  rig->Write(from, RigPattern(100'000, 1));
  FakeCuda::Reset();
  FakeCuda::Set("delay_ns", 2'000'000);  // a chunk must not be through before the next one comes
  const std::unique_ptr<DeviceBackend> backend = rig->MakeBackend({.links = 1, .chunk = 1000});
  ASSERT_TRUE(backend
                  ->Wait(backend->StartCopy(
                      CopyLane::kOut, {{absl::Span<const std::byte>(from), to, CopyLinkId(0)}}))
                  .ok());
  EXPECT_EQ(FakeCuda::Get("starts"), 100);
  EXPECT_EQ(FakeCuda::Get("most_queued"), 1);
  EXPECT_EQ(FakeCuda::Get("pageable"), 0);  // the pool is locked
  EXPECT_EQ(rig->Read(to), RigPattern(100'000, 1));
}

// Links of one way take turns on its streams; ways have streams of their own.
TEST_F(CudaOnTheFake, HasStreamsForEachWayAndLane) {
  const int64_t each = CudaWay().streams;
  const int64_t before = FakeCuda::Get("streams");
  {
    const auto switched =
        TheCudaModule().MakeBackend(OptionsForLenders(0, 7, PeerEngines::kOneForAll));
    ASSERT_TRUE(switched.ok());
    EXPECT_EQ(FakeCuda::Get("streams") - before, 4 * each);
    const auto direct = TheCudaModule().MakeBackend(OptionsForLenders(0, 6, PeerEngines::kOneEach));
    ASSERT_TRUE(direct.ok());
    EXPECT_EQ(FakeCuda::Get("streams") - before, (4 + 14) * each);
  }
  EXPECT_EQ(FakeCuda::Get("streams"), before);
  EXPECT_EQ(FakeCuda::Get("events"), 0);
}

// What the worker's stream is still to write, is what the copy takes.
TEST_F(CudaOnTheFake, BeginsOnceTheWorkersStreamHasMadeTheTensor) {
  const std::unique_ptr<BackendRig> rig = MakeRig();
  cudaStream_t work = nullptr;
  CheckCuda(cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking), "a stream");
  CudaBackendOptions options = OptionsForLenders(0, 0, PeerEngines::kOneForAll);
  options.work_stream = work;
  auto backend = TheCudaModule().MakeBackend(options);
  ASSERT_TRUE(backend.ok());
  const absl::Span<std::byte> tensor = rig->Take(Where::kWorker, 5000);
  const absl::Span<std::byte> made = rig->Take(Where::kHost, 5000);
  const absl::Span<std::byte> to = rig->Take(Where::kHost, 5000);
  rig->Write(made, RigPattern(5000, 3));
  FakeCuda::Set("delay_ns", 30'000'000);
  CheckCuda(cudaMemcpyAsync(tensor.data(), made.data(), 5000, cudaMemcpyDefault, work), "work");
  const CopyEvent event = (*backend)->StartCopy(
      CopyLane::kOut, {{absl::Span<const std::byte>(tensor), to, CopyLinkId(0)}});
  const absl::StatusOr<bool> early = (*backend)->Test(event);
  ASSERT_TRUE(early.ok());
  EXPECT_FALSE(*early);
  ASSERT_TRUE((*backend)->Wait(event).ok());
  FakeCuda::Set("delay_ns", 0);
  EXPECT_EQ(rig->Read(to), RigPattern(5000, 3));
  *backend = nullptr;
  CheckCuda(cudaStreamDestroy(work), "cudaStreamDestroy");
}

// One that is refused harms no other one.
TEST_F(CudaOnTheFake, GoesOnAfterACopyThatWasRefused) {
  const std::unique_ptr<BackendRig> rig = MakeRig();
  const absl::Span<std::byte> from = rig->Take(Where::kWorker, 300);
  const absl::Span<std::byte> to = rig->Take(Where::kLender, 300);
  rig->Write(from, RigPattern(300, 1));
  const std::unique_ptr<DeviceBackend> backend = rig->MakeBackend({.links = 2, .chunk = 100});
  FakeCuda::Reset();
  FakeCuda::Set("fail_start", 2);
  const auto copy = [&] {
    return backend->Wait(backend->StartCopy(
        CopyLane::kOut, {{absl::Span<const std::byte>(from), to, CopyLinkId(1)}}));
  };
  const absl::Status refused = copy();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(refused.message(),
            "device 0, copy out, link 1, chunk 1 (0 bytes): starting to copy 100 bytes: "
            "cudaErrorInvalidValue (1): invalid argument");
  EXPECT_EQ(FakeCuda::Get("copies"), 1);
  EXPECT_TRUE(copy().ok());
  EXPECT_EQ(rig->Read(to), RigPattern(300, 1));
}

// By as much as it is told to, and it alone, though both links share a stream.
TEST_F(CudaOnTheFake, SlowsALinkDown) {
  const std::unique_ptr<BackendRig> rig = MakeRig();
  const absl::Span<std::byte> from = rig->Take(Where::kWorker, 300);
  const absl::Span<std::byte> to = rig->Take(Where::kLender, 300);
  CudaBackendOptions options = OptionsForLenders(0, 2, PeerEngines::kOneForAll);
  const auto backend = TheCudaModule().MakeBackend(options);
  ASSERT_TRUE(backend.ok()) << backend.status();
  FakeCuda::Set("delay_ns", 1'000'000);
  (*backend)->SlowDown(CopyLinkId(2), 30);
  // One after the other: of copies that both are through when the backend looks, nobody knows how
  // long the second one took.
  const absl::Span<const std::byte> source(from);
  for (const auto& part :
       {CopyPart{source.subspan(0, 100), to.subspan(0, 100), CopyLinkId(1)},
        CopyPart{source.subspan(100, 200), to.subspan(100, 200), CopyLinkId(2)}}) {
    const absl::Status copied = (*backend)->Wait((*backend)->StartCopy(CopyLane::kOut, {part}));
    ASSERT_TRUE(copied.ok()) << copied;
  }
  const std::vector<CopyLinkUse> uses = (*backend)->TakeUse();
  EXPECT_EQ(uses[1].bytes, Bytes(100));
  EXPECT_EQ(uses[2].bytes, Bytes(200));
  EXPECT_GE(uses[1].time, Nanos(1'000'000));
  EXPECT_GE(uses[2].time, Nanos(30'000'000));
}

// What many small tensors cost beside large ones: a call for each, and no chunk, event or look of
// their own (GOTCHAS.md, "Small tensors").
TEST_F(CudaOnTheFake, TakesSmallTensorsAlongInTheChunksOfLargeOnes) {
  const std::unique_ptr<BackendRig> rig = MakeRig();
  constexpr size_t kSmall = 40, kLarge = 100'000, kBoth = kSmall + kLarge;
  constexpr int kPairs = 50;
  const absl::Span<std::byte> from = rig->Take(Where::kWorker, kPairs * kBoth);
  const absl::Span<std::byte> to = rig->Take(Where::kHost, kPairs * kBoth);
  const std::vector<std::byte> bytes = RigPattern(from.size(), 1);
  rig->Write(from, bytes);
  std::vector<CopyPart> parts;
  for (size_t pair = 0; pair < kPairs; ++pair) {
    const absl::Span<const std::byte> source(from.subspan(pair * kBoth, kBoth));
    const absl::Span<std::byte> target = to.subspan(pair * kBoth, kBoth);
    parts.push_back({source.first(kSmall), target.first(kSmall), CopyLinkId(0)});
    parts.push_back({source.subspan(kSmall), target.subspan(kSmall), CopyLinkId(0)});
  }
  const auto backend =
      TheCudaModule().MakeBackend({.ways = {{.chunk = Bytes(1 << 20)}}, .way_of_link = {0}});
  ASSERT_TRUE(backend.ok()) << backend.status();
  FakeCuda::Reset();
  const absl::Status copied = (*backend)->Wait((*backend)->StartCopy(CopyLane::kOut, parts));
  ASSERT_TRUE(copied.ok()) << copied;
  EXPECT_EQ(FakeCuda::Get("records"), 5);              // chunks of 5 MB
  EXPECT_EQ(FakeCuda::Get("starts"), 2 * kPairs + 4);  // four large ones are cut
  EXPECT_EQ(rig->Read(to), bytes);
}

// As somebody wants it who looks on; then nothing of the chunk moves.
TEST_F(CudaOnTheFake, FailsAChunkOnRequest) {
  const std::unique_ptr<BackendRig> rig = MakeRig();
  const absl::Span<std::byte> from = rig->Take(Where::kWorker, 300);
  const absl::Span<std::byte> to = rig->Take(Where::kHost, 300);
  rig->Write(from, RigPattern(300, 1));
  CudaBackendOptions options{.ways = {{.chunk = Bytes(200)}}, .way_of_link = {0}};
  options.before_chunk = [](const CopyChunk& chunk) {
    EXPECT_EQ(chunk.bytes, Bytes(chunk.number == 0 ? 200 : 100));
    return chunk.number == 1 ? absl::InternalError("on request") : absl::OkStatus();
  };
  const auto backend = TheCudaModule().MakeBackend(options);
  ASSERT_TRUE(backend.ok()) << backend.status();
  const absl::Status failed = (*backend)->Wait((*backend)->StartCopy(
      CopyLane::kOut, {{absl::Span<const std::byte>(from), to, CopyLinkId(0)}}));
  EXPECT_EQ(failed.message(), "device 0, copy out, link 0, chunk 1 (0 bytes): on request");
  EXPECT_EQ(rig->Read(to.subspan(200, 100)), std::vector<std::byte>(100));
}

// Or polls would be twice as far apart as asked for.
TEST_F(CudaOnTheFake, WakesWhenItsPollSaysSo) {
  const std::unique_ptr<BackendRig> rig = MakeRig();
  const absl::Span<std::byte> from = rig->Take(Where::kWorker, 300);
  const absl::Span<std::byte> to = rig->Take(Where::kHost, 300);
  CudaBackendOptions options{.ways = {{.chunk = Bytes(200)}}, .way_of_link = {0}};
  int slack_ns = 0;
  options.before_chunk = [&slack_ns](const CopyChunk&) {
    slack_ns = prctl(PR_GET_TIMERSLACK);
    return absl::OkStatus();
  };
  const auto backend = TheCudaModule().MakeBackend(options);
  ASSERT_TRUE(backend.ok()) << backend.status();
  const CopyEvent copy = (*backend)->StartCopy(
      CopyLane::kOut, {{absl::Span<const std::byte>(from), to, CopyLinkId(0)}});
  EXPECT_EQ((*backend)->Wait(copy), absl::OkStatus());
  EXPECT_EQ(slack_ns, 1);
}

// An error of the device sticks: every later copy says so, and Abort and the end do not hang.
TEST_F(CudaOnTheFake, NamesAnErrorThatSticksAtEveryCopy) {
  const std::unique_ptr<BackendRig> rig = MakeRig();
  const absl::Span<std::byte> from = rig->Take(Where::kWorker, 3000);
  const absl::Span<std::byte> to = rig->Take(Where::kHost, 3000);
  FakeCuda::Reset();
  FakeCuda::Set("fail_copy", 5);
  FakeCuda::Set("fail_code", 214);  // cudaErrorECCUncorrectable
  {
    const std::unique_ptr<DeviceBackend> backend = rig->MakeBackend({.links = 1, .chunk = 100});
    std::vector<CopyEvent> events;
    for (int copy = 0; copy < 3; ++copy) {
      events.push_back(backend->StartCopy(
          CopyLane::kOut, {{absl::Span<const std::byte>(from), to, CopyLinkId(0)}}));
    }
    for (const CopyEvent event : events) {
      EXPECT_THAT(std::string(backend->Wait(event).message()),
                  HasSubstr("cudaErrorECCUncorrectable (214): uncorrectable ECC error"));
    }
    backend->Abort();
    const absl::Span<const std::byte> tensors[] = {from};
    EXPECT_THAT(std::string(backend->Checksums(tensors).status().message()),
                HasSubstr("cudaErrorECCUncorrectable"));
    FakeCuda::Reset();
  }
}

// A copy back for each tensor would take some microseconds each, and through memory that is not
// locked each would wait for the device.
TEST_F(CudaOnTheFake, BringsChecksumsOfManyTensorsBackTogether) {
  const std::unique_ptr<BackendRig> rig = MakeRig();
  constexpr size_t kTensors = 700;  // more than come back at a time
  const absl::Span<std::byte> memory = rig->Take(Where::kWorker, 2 * kTensors);
  std::vector<std::byte> bytes(memory.size());
  for (size_t byte = 0; byte < bytes.size(); ++byte) bytes[byte] = std::byte(byte * 7 % 251);
  rig->Write(memory, bytes);
  const std::vector<std::byte> on_host(bytes.begin(), bytes.begin() + 5);
  std::vector<absl::Span<const std::byte>> tensors, same;
  for (size_t tensor = 0; tensor < kTensors; ++tensor) {
    const size_t size = tensor % 3;  // some of them empty
    tensors.push_back(memory.subspan(2 * tensor, size));
    same.push_back(absl::MakeConstSpan(bytes).subspan(2 * tensor, size));
  }
  tensors[10] = same[10] = on_host;
  const std::unique_ptr<DeviceBackend> backend = rig->MakeBackend({.links = 1});
  FakeCuda::Reset();
  const auto checksums = backend->Checksums(tensors);
  ASSERT_TRUE(checksums.ok()) << checksums.status();
  ASSERT_EQ(checksums->size(), kTensors);
  for (size_t tensor = 0; tensor < kTensors; ++tensor) {
    EXPECT_EQ((*checksums)[tensor], MemoryChecksum(same[tensor])) << tensor;
  }
  EXPECT_EQ(FakeCuda::Get("starts"), 2);
  EXPECT_EQ(FakeCuda::Get("pageable"), 0);
}

// Taking memory within a step may wait for all that the device does.
TEST_F(CudaOnTheFake, TakesWhatChecksumsNeedAsItIsMade) {
  CudaBackendOptions options = OptionsForLenders(0, 0, PeerEngines::kOneForAll);
  const int64_t before = FakeCuda::Get("allocations");
  options.checksums = true;
  const auto backend = TheCudaModule().MakeBackend(options);
  ASSERT_TRUE(backend.ok()) << backend.status();
  const int64_t made = FakeCuda::Get("allocations");
  EXPECT_GT(made, before);
  const std::vector<std::byte> bytes(9, std::byte(3));
  const std::vector<absl::Span<const std::byte>> tensors = {bytes};
  const auto checksums = (*backend)->Checksums(tensors);
  ASSERT_TRUE(checksums.ok()) << checksums.status();
  EXPECT_EQ(checksums->front(), MemoryChecksum(bytes));
  EXPECT_EQ(FakeCuda::Get("allocations"), made);
}

TEST_F(CudaOnTheFake, LendsWholeBlocksAndRefusesWhatADeviceHasNot) {
  FakeCuda::Set("memory", 10 << 20);
  auto arena = TheCudaModule().MakeArena(1, Bytes(3 << 20));
  ASSERT_TRUE(arena.ok()) << arena.status();
  EXPECT_EQ((*arena)->memory().size(), size_t{4} << 20);
  const absl::Status refused = TheCudaModule().MakeArena(1, Bytes(7 << 20)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(),
            "taking 8388608 bytes of device 1 to lend (6291456 of 10485760 are free): "
            "cudaErrorMemoryAllocation (2): out of memory");
  *arena = nullptr;
  EXPECT_EQ(FakeCuda::Get("allocations"), 0);
  EXPECT_TRUE(TheCudaModule().MakeArena(1, Bytes(7 << 20)).ok());
}

TEST_F(CudaOnTheFake, RefusesWhatIsNoHandle) {
  const auto refusal = [](const std::string& handle) {
    return std::string(TheCudaModule().OpenArena(0, handle).status().message());
  };
  EXPECT_EQ(refusal("abc"), "a handle of lent memory has 112 bytes, this one 3");
  EXPECT_EQ(refusal(std::string(112, 'x')), "these bytes are no handle of lent memory");
}

TEST_F(CudaOnTheFake, PinsHostMemoryUpToItsCap) {
  constexpr int64_t kPage = 4096;
  auto pool = TheCudaModule().MakePinnedPool(
      {.bytes = Bytes(10 * kPage - 1), .cap = Bytes(10 * kPage), .numa_node = 0, .threads = 3});
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_EQ((*pool)->left(), Bytes(10 * kPage));
  const auto first = (*pool)->Take(Bytes(kPage + 1));
  const auto second = (*pool)->Take(Bytes(8 * kPage));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->size(), kPage + 1u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first->data()) % kPage, 0u);
  EXPECT_EQ(second->data(), first->data() + 2 * kPage);
  const auto third = (*pool)->Take(Bytes(1));
  EXPECT_EQ(third.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(third.status().message(), "1 bytes of locked host memory wanted, 0 of 40960 are left");
  EXPECT_EQ(TheCudaModule().MakePinnedPool({.bytes = Bytes(2), .cap = Bytes(1)}).status().message(),
            "2 bytes of locked host memory wanted, a worker may have 1");
}

TEST_F(CudaOnTheFake, EnlargesWhatIsLockedInPlaceOfASecondOne) {
  constexpr size_t kPage = 4096;
  const int64_t before = FakeCuda::Get("locked");
  auto pool = TheCudaModule().MakePinnedPool({.bytes = Bytes(2 * kPage), .cap = Bytes(9 * kPage)});
  ASSERT_TRUE(pool.ok()) << pool.status();
  const auto first = (*pool)->Take(Bytes(kPage));
  ASSERT_TRUE(first.ok());
  std::memset(first->data(), 7, kPage);
  const auto all = (*pool)->Enlarge(Bytes(5 * kPage + 1));
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 5 * kPage + 1);
  EXPECT_EQ(all->data(), first->data());
  EXPECT_EQ((*all)[kPage - 1], std::byte{7});
  EXPECT_EQ((*all)[kPage], std::byte{0});
  EXPECT_EQ((*all)[5 * kPage], std::byte{0});
  EXPECT_EQ((*pool)->left(), Bytes(0)) << "all of it is taken";
  EXPECT_EQ(FakeCuda::Get("locked"), before + static_cast<int64_t>(6 * kPage));
  EXPECT_EQ(FakeCuda::Get("most_locked"), FakeCuda::Get("locked")) << "never both at a time";

  const absl::Status refused = (*pool)->Enlarge(Bytes(10 * kPage)).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  // A driver that does not lock more leaves what there was.
  const auto lock =
      reinterpret_cast<int (*)(void*, size_t, unsigned)>(dlsym(RTLD_DEFAULT, "cudaHostRegister"));
  const auto unlock = reinterpret_cast<int (*)(void*)>(dlsym(RTLD_DEFAULT, "cudaHostUnregister"));
  std::byte* const behind = all->data() + 6 * kPage;
  ASSERT_EQ(lock(behind, kPage, 0), 0);
  EXPECT_FALSE((*pool)->Enlarge(Bytes(8 * kPage)).ok());
  ASSERT_EQ(unlock(behind), 0);
  EXPECT_EQ((*all)[kPage - 1], std::byte{7});
  EXPECT_EQ(FakeCuda::Get("locked"), before + static_cast<int64_t>(6 * kPage));
  EXPECT_TRUE((*pool)->Enlarge(Bytes(8 * kPage)).ok());
  pool->reset();
  EXPECT_EQ(FakeCuda::Get("locked"), before);
}

}  // namespace
}  // namespace siphon
