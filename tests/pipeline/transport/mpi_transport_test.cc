// Runs under mpirun: every rank runs every test, as one worker. Rank 0 reports for all when all
// passed.

#include <stdlib.h>

#include <cstring>
#include <memory>

#include "launch/mpi_world.h"
#include "pipeline/transport/ring_transport.h"
#include "tests/pipeline/transport/count_mpi_calls.h"
#include "tests/pipeline/transport/thread_worlds.h"
#include "tests/pipeline/transport/transport_conformance.h"

namespace siphon {
namespace {

MpiWorld* world = nullptr;  // made by main, before the tests are named

WorkerId Me() { return WorkerId(world->rank()); }

absl::StatusOr<std::unique_ptr<Transport>> MakeWindowRings(Bytes capacity,
                                                           const LivenessCheck& check) {
  const RingLayout layout = LayOutRings(AllPairs(world->size(), capacity));
  const auto window = world->SharedWindow(layout.region_bytes);
  if (!window.ok()) return window.status();
  return MakeRingTransport(Me(), *window, layout, check);
}

World PointToPoint(const std::string& name, Bytes piece) {
  return {.name = name,
          .workers = world->size(),
          .run = [piece](int, const LivenessCheck& check, const WorkerBody& body) {
            const auto transport = world->MakeMpiTransport(check, piece);
            ASSERT_TRUE(transport.ok()) << transport.status();
            body(Me(), **transport);
          }};
}

World WindowRings(const std::string& name, Bytes capacity) {
  return {.name = name,
          .workers = world->size(),
          .run =
              [capacity](int, const LivenessCheck& check, const WorkerBody& body) {
                const auto transport = MakeWindowRings(capacity, check);
                ASSERT_TRUE(transport.ok()) << transport.status();
                body(Me(), **transport);
              },
          .longest = 256 * capacity.value + 3};
}

std::vector<World> Worlds() {
  return {PointToPoint("Mpi", kMpiPieceBytes), PointToPoint("MpiInPiecesOf4096Bytes", Bytes(4096)),
          WindowRings("SharedWindow", Bytes(4096)),
          WindowRings("SharedWindowOf64Bytes", Bytes(64))};
}

INSTANTIATE_TEST_SUITE_P(Mpi, TransportConformance, testing::ValuesIn(Worlds()), WorldName);

// A steady state in small: activations to the next worker, gradients back, and a barrier, many
// times.
void PassMessagesAround(Transport& transport) {
  const WorkerId next((Me().value + 1) % world->size());
  const WorkerId before((Me().value + world->size() - 1) % world->size());
  std::vector<std::byte> sent(9000), received(9000);
  for (int step = 0; step < 20; ++step) {
    const auto send = transport.StartSend({Me(), next, Lane::kForward}, {sent});
    const auto receive =
        transport.StartReceive({before, Me(), Lane::kForward}, {MutablePart(received)});
    ASSERT_TRUE(send.ok() && receive.ok());
    ASSERT_TRUE(transport.Wait(*receive).ok());
    ASSERT_TRUE(transport.Wait(*send).ok());
    const std::vector<int64_t> sizes(static_cast<size_t>(world->size()), 0);
    ASSERT_TRUE(AllGather(transport, Me(), sizes, {}).ok());
  }
}

TEST(RingsInASharedWindow, MakeNoMpiCallOnceTheyStand) {
  const auto rings = MakeWindowRings(Bytes(4096), nullptr);
  ASSERT_TRUE(rings.ok()) << rings.status();
  const int64_t before = MpiCallCount();
  EXPECT_GT(before, 0);  // making the window takes some: the counter counts
  PassMessagesAround(**rings);
  EXPECT_EQ(MpiCallCount(), before);
}

TEST(MpiTransport, MakesMpiCallsThatTheCounterSees) {
  const auto transport = world->MakeMpiTransport(nullptr);
  ASSERT_TRUE(transport.ok()) << transport.status();
  const int64_t before = MpiCallCount();
  PassMessagesAround(**transport);
  EXPECT_GT(MpiCallCount(), before + 20);
}

TEST(MpiTransport, RefusesPiecesThatMpiCannotCount) {
  for (const Bytes piece : {Bytes(0), Bytes(-1), kMpiPieceBytes + Bytes(1)}) {
    EXPECT_EQ(world->MakeMpiTransport(nullptr, piece).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(SharedWindow, IsZeroAtAPageAndTheSameMemoryForAll) {
  constexpr int64_t kBytes = 100'000;
  const auto window = world->SharedWindow(Bytes(kBytes));
  ASSERT_TRUE(window.ok()) << window.status();
  ASSERT_EQ(window->size(), static_cast<size_t>(kBytes));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(window->data()) % 4096, 0u);
  EXPECT_TRUE(std::all_of(window->begin(), window->end(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
  ASSERT_TRUE(world->AllGatherText("looked").ok());  // a barrier
  const size_t mine = static_cast<size_t>(kBytes / world->size() * world->rank());
  (*window)[mine] = static_cast<std::byte>(world->rank() + 1);
  ASSERT_TRUE(world->AllGatherText("written").ok());
  for (int rank = 0; rank < world->size(); ++rank) {
    EXPECT_EQ((*window)[static_cast<size_t>(kBytes / world->size() * rank)],
              static_cast<std::byte>(rank + 1));
  }
}

TEST(SharedWindow, ThatDoesNotFitIsRefusedOnAllRanksAlike) {
  if (world->size() == 1) GTEST_SKIP() << "skipped, because one rank needs no shared memory";
  constexpr Bytes kPetabyte(int64_t{1} << 50);
  const auto window = world->SharedWindow(kPetabyte);
  EXPECT_EQ(window.status().code(), absl::StatusCode::kResourceExhausted);
  const std::string message(window.status().message());
  EXPECT_THAT(message, testing::HasSubstr(absl::StrCat(
                           "the workers' shared memory needs ",
                           FormatBytes(SharedWindowFileBytes(kPetabyte, world->size())), " (")));
  EXPECT_THAT(message, testing::HasSubstr("bytes) are free"));
  EXPECT_THAT(message, testing::HasSubstr("OMPI_MCA_osc_sm_backing_directory"));
  const auto messages = world->AllGatherText(message);
  ASSERT_TRUE(messages.ok()) << messages.status();
  EXPECT_THAT(*messages, testing::Each(message));
}

TEST(SharedWindow, NeedsMoreRoomThanItsBytes) {
  // Open MPI's own state, and the twentieth of the file that it wants to stay free.
  const Bytes bytes(int64_t{100} << 20);
  EXPECT_GT(SharedWindowFileBytes(bytes, 4).value, bytes.value / 20 * 21);
  EXPECT_GT(SharedWindowFileBytes(bytes, 8), SharedWindowFileBytes(bytes, 4));
}

TEST(SharedWindow, InADirectoryThatDoesNotExistIsRefused) {
  if (world->size() == 1) GTEST_SKIP() << "skipped, because one rank needs no shared memory";
  const char* before = getenv("OMPI_MCA_osc_sm_backing_directory");
  const std::string kept = before != nullptr ? before : "";
  setenv("OMPI_MCA_osc_sm_backing_directory", "/no/such/directory", 1);
  const auto window = world->SharedWindow(Bytes(64));
  before != nullptr ? setenv("OMPI_MCA_osc_sm_backing_directory", kept.c_str(), 1)
                    : unsetenv("OMPI_MCA_osc_sm_backing_directory");
  EXPECT_EQ(window.status().code(), absl::StatusCode::kResourceExhausted) << window.status();
  EXPECT_THAT(std::string(window.status().message()), testing::HasSubstr("/no/such/directory"));
}

TEST(SharedWindow, OfDifferentSizesIsRefusedOnAllRanks) {
  if (world->size() == 1) GTEST_SKIP() << "skipped, because one rank always agrees with itself";
  EXPECT_EQ(world->SharedWindow(Bytes(64 * (1 + world->rank()))).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(world->SharedWindow(Bytes(0)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(AllGatherText, GivesEveryRanksTextToEveryRank) {
  const auto text_of = [](int rank) {
    return std::string(static_cast<size_t>(rank) * 1000, static_cast<char>('a' + rank));
  };
  const auto texts = world->AllGatherText(text_of(world->rank()));
  ASSERT_TRUE(texts.ok()) << texts.status();
  ASSERT_EQ(texts->size(), static_cast<size_t>(world->size()));
  for (int rank = 0; rank < world->size(); ++rank) EXPECT_EQ((*texts)[rank], text_of(rank));
}

TEST(MpiWorld, IsWhatTheLauncherAnnounced) {
  EXPECT_TRUE(world->one_host());
  if (!StartedUnderMpi()) GTEST_SKIP() << "skipped, because no launcher started this process";
  EXPECT_EQ(world->rank(), AnnouncedRank());
  EXPECT_EQ(world->size(), AnnouncedSize());
  int argc = 0;
  char** argv = nullptr;
  EXPECT_EQ(MpiWorld::Init(&argc, &argv).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace

int RunTests(int argc, char** argv) {
  auto made = MpiWorld::Init(&argc, &argv);
  if (!made.ok()) {
    std::fprintf(stderr, "%s\n", made.status().ToString().c_str());
    return 1;
  }
  world = made->get();
  testing::InitGoogleTest(&argc, argv);
  if (world->rank() != 0) {  // the others speak up when something fails
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    class FailuresOnly final : public testing::EmptyTestEventListener {
      void OnTestPartResult(const testing::TestPartResult& result) override {
        if (!result.failed()) return;
        std::fprintf(stderr, "rank %d: %s:%d: %s\n", world->rank(), result.file_name(),
                     result.line_number(), result.message());
      }
    };
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOnly);
  }
  const int result = RUN_ALL_TESTS();
  world->Finalize();
  return result;
}

}  // namespace siphon

int main(int argc, char** argv) { return siphon::RunTests(argc, argv); }
