// One rank of a job over NCCL, each a process of its own, started by nccl_processes_test.cc:
//
//   nccl_rank RANK RANKS MODE     with the job's directory in SIPHON_NCCL_TEST_DIR
//   nccl_rank MODE                under mpirun, which says the first two
//
// MODE 0: the transport conformance suite, every rank one worker; says what fails, and how many
// passed. MODE 1: see Linger. Ranks take the visible devices in turn; with fewer devices than ranks
// each is a host of its own to NCCL.

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "pipeline/transport/ring_transport.h"
#include "tests/pipeline/transport/nccl_rig.h"
#include "tests/pipeline/transport/thread_worlds.h"
#include "tests/pipeline/transport/transport_conformance.h"

namespace siphon {
namespace {

constexpr Bytes kMemory{16 << 20};

int rank = 0;
int ranks = 1;
int device = 0;
Bytes taken;  // of the device, by NCCL

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// Memory that all ranks map, zero at the begin.
class SharedFile {
 public:
  SharedFile(const std::string& path, size_t bytes) : bytes_(bytes) {
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    SIPHON_CHECK(file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0, "there is room");
    memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    SIPHON_CHECK(memory_ != MAP_FAILED, "there is room");
  }
  ~SharedFile() { munmap(memory_, bytes_); }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  absl::Span<std::byte> span() const { return {static_cast<std::byte*>(memory_), bytes_}; }

 private:
  const size_t bytes_;
  void* memory_ = nullptr;
};

// A transport beside rings in a file that is new each time.
struct Job {
  std::unique_ptr<SharedFile> rings;
  std::unique_ptr<DeviceMemory> memory;
  std::unique_ptr<Transport> transport;
};

absl::StatusOr<Job> MakeJob(const LivenessCheck& check) {
  static int jobs = 0;
  Job job;
  const RingLayout layout = LayOutRings(AllPairs(ranks, Bytes(4096)));
  job.rings = std::make_unique<SharedFile>(
      absl::StrCat(std::getenv("SIPHON_NCCL_TEST_DIR"), "/rings.", jobs++),
      static_cast<size_t>(layout.region_bytes.value));
  job.memory = std::make_unique<DeviceMemory>(device, kMemory);
  SIPHON_ASSIGN_OR_RETURN(std::unique_ptr<Transport> host,
                          MakeRingTransport(WorkerId(rank), job.rings->span(), layout, check));
  const auto connected = std::make_shared<bool>(false);
  const LivenessCheck later = [connected, check] {
    return *connected && check ? check() : absl::OkStatus();
  };
  SIPHON_ASSIGN_OR_RETURN(NcclTransportMade made,
                          TheNcclModule().MakeTransport({.me = WorkerId(rank),
                                                         .workers = ranks,
                                                         .device = device,
                                                         .channels = DataChannels(ranks),
                                                         .connect_patience = Nanos(20'000'000'000)},
                                                        std::move(host), later));
  *connected = true;
  taken = made.device_memory;
  job.transport = StageOnDevice(std::move(made.transport), job.memory.get());
  return job;
}

World Processes() {
  return {.name = "NcclProcesses",
          .workers = ranks,
          .run = [](int, const LivenessCheck& check, const WorkerBody& body) {
            auto job = MakeJob(check);
            ASSERT_TRUE(job.ok()) << job.status();
            body(WorkerId(rank), *job->transport);
          }};
}

INSTANTIATE_TEST_SUITE_P(Nccl, TransportConformance, testing::Values(Processes()), WorldName);

class FailuresOnly final : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::printf("rank %d: %s:%d: %s\n", rank, result.file_name(), result.line_number(),
                result.message());
  }
};

int RunSuite() {
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new FailuresOnly);
  const int result = RUN_ALL_TESTS();
  Say(absl::StrCat("NCCL took ", FormatBytes(taken), " of the device for ", 4 * (ranks - 1),
                   " ends of channels"));
  Say(absl::StrCat(testing::UnitTest::GetInstance()->successful_test_count(), " passed"));
  return result;
}

// Gets one message from rank 0 (or sends it), and waits for a second one, which never comes. A line
// from the parent is the news that somebody is lost.
int Linger() {
  const LivenessCheck check = [] {
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&input, 1, 0) <= 0) return absl::OkStatus();
    return absl::UnavailableError("worker 0 was lost");
  };
  auto job = MakeJob(check);
  SIPHON_CHECK(job.ok(), job.status().message());
  Transport& transport = *job->transport;
  const Channel channel{kFirst, kSecond, Lane::kForward};
  std::vector<std::byte> bytes = Pattern(1, 100'000);
  const auto first = rank == 0 ? transport.StartSend(channel, {bytes})
                               : transport.StartReceive(channel, {MutablePart(bytes)});
  SIPHON_CHECK(first.ok() && transport.Wait(*first).ok(), "the first message arrives");
  Say("waiting");
  const auto second = transport.StartReceive({WorkerId(1 - rank), WorkerId(rank), Lane::kBackward},
                                             {MutablePart(bytes)});
  SIPHON_CHECK(second.ok(), second.status().message());
  Say(std::string(transport.Wait(*second).message()));
  job->transport.reset();
  Say("gone");
  return 0;
}

}  // namespace
}  // namespace siphon

int main(int argc, char** argv) {
  if (argc != 4 && argc != 2) return 2;
  const char* const rank = argc == 4 ? argv[1] : std::getenv("OMPI_COMM_WORLD_RANK");
  const char* const ranks = argc == 4 ? argv[2] : std::getenv("OMPI_COMM_WORLD_SIZE");
  if (rank == nullptr || ranks == nullptr) return 2;
  siphon::rank = std::atoi(rank);
  siphon::ranks = std::atoi(ranks);
  const std::string mode = argv[argc - 1];
  const auto devices = siphon::TheCudaModule().Devices();
  SIPHON_CHECK(devices.ok(), devices.status().message());
  siphon::device = siphon::rank % static_cast<int>(devices->size());
  if (siphon::ranks > static_cast<int>(devices->size())) {
    siphon::ShareDeviceWithOtherRanks(siphon::rank);
  }
  // Which cases to run and where to report them was said to the program that started this one.
  GTEST_FLAG_SET(filter, "*");
  GTEST_FLAG_SET(output, "");
  unsetenv("GTEST_TOTAL_SHARDS");
  unsetenv("GTEST_SHARD_INDEX");
  testing::InitGoogleTest(&argc, argv);  // the suite's worlds have their number of ranks by now
  return mode == "0" ? siphon::RunSuite() : siphon::Linger();
}
