// Bytes on their way to a drive and back, by io_uring and by threads, past the page cache and
// through it; and every way in which a drive can fail.

#include "swap/device/nvme_mover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "swap/device/nvme_parking.h"
#include "tests/swap/device/scratch_drive.h"

namespace siphon {
namespace {

using testing::HasSubstr;
using Direct = NvmeFileOptions::Direct;

// Small, so that few bytes are many requests.
NvmeMoverOptions SmallRequests() { return {.buffer = Bytes(2 * kNvmeBlock), .depth = 3}; }

struct WayToDrive {
  const char* name;
  NvmeIoKind io;
  Direct direct;
};
void PrintTo(const WayToDrive& way, std::ostream* out) { *out << way.name; }

// "" where this machine has that way.
std::string WhyNot(const WayToDrive& way) {
  const ScratchDrive drive;
  const auto file = NvmeFile::Make(drive.File(1));
  if (!file.ok()) return file.status().ToString();
  const auto io = MakeNvmeIo(way.io, file->fd(), 1);
  if (!io.ok()) return io.status().ToString();
  if (way.direct == Direct::kWherePossible && !file->direct()) return "no O_DIRECT here";
  return "";
}

class NvmeMoverOnAnyWay : public testing::TestWithParam<WayToDrive> {
 protected:
  void SetUp() override {
    const std::string why = WhyNot(GetParam());
    if (!why.empty()) GTEST_SKIP() << "skipped, because " << why;
  }
  std::unique_ptr<NvmeParking> Park(int64_t bytes) {
    auto parking = NvmeParking::Make({.file = drive_.File(bytes, GetParam().direct),
                                      .io = GetParam().io,
                                      .mover = SmallRequests()});
    EXPECT_TRUE(parking.ok()) << parking.status();
    return *std::move(parking);
  }
  ScratchDrive drive_;
};

// Ranges of a file and of memory, any sizes at any offsets, some of them side by side.
std::vector<CopyPart> DrawnParts(Dice& dice, CopyLane lane, std::vector<std::byte>& memory,
                                 int64_t file_bytes) {
  std::vector<CopyPart> parts;
  size_t in_memory = 0;
  int64_t in_file = 0;
  while (true) {
    if (dice.Roll(0, 2) == 0) in_file += dice.Roll(0, 9000);
    if (dice.Roll(0, 2) == 0) in_memory += dice.Roll(0, 300);
    const int kind = dice.Roll(0, 3);
    const auto bytes =
        static_cast<size_t>(kind == 0 ? dice.Roll(0, 3) : dice.Roll(0, kind == 1 ? 5000 : 20'000));
    if (in_memory + bytes > memory.size()) return parts;
    if (in_file + static_cast<int64_t>(bytes) > file_bytes) return parts;
    const auto span = absl::MakeSpan(memory).subspan(in_memory, bytes);
    const DriveRange range{in_file, bytes};
    parts.push_back(
        lane == CopyLane::kOut
            ? CopyPart{absl::Span<const std::byte>(span), CopySide<std::byte>(range), CopyLinkId(0)}
            : CopyPart{CopySide<const std::byte>(range), span, CopyLinkId(0)});
    in_memory += bytes;
    in_file += static_cast<int64_t>(bytes);
  }
}

// The file beside a copy of it in memory: every byte of both stays the same.
TEST_P(NvmeMoverOnAnyWay, MovesAnySizesAtAnyOffsetsAndNothingBesideThem) {
  constexpr int64_t kFile = 100'000;
  Dice dice(11);
  const auto parking = Park(kFile);
  std::vector<std::byte> expected(kFile);
  for (int round = 0; round < 40; ++round) {
    std::vector<std::byte> memory = DiceBytes(dice, 60'000);
    const std::vector<std::byte> before = memory;
    std::vector<CopyPart> out = DrawnParts(dice, CopyLane::kOut, memory, kFile);
    ASSERT_TRUE(parking->Move(CopyLane::kOut, out).ok());
    EXPECT_EQ(memory, before);
    for (const CopyPart& part : out) {
      std::copy(part.from.data(), part.from.data() + part.from.size(),
                expected.begin() + part.to.offset());
    }
    std::vector<std::byte> wanted = memory;
    std::vector<CopyPart> in = DrawnParts(dice, CopyLane::kIn, memory, kFile);
    for (const CopyPart& part : in) {
      const auto begin = expected.begin() + part.from.offset();
      std::copy(begin, begin + static_cast<int64_t>(part.from.size()),
                wanted.begin() + (part.to.data() - memory.data()));
    }
    ASSERT_TRUE(parking->Move(CopyLane::kIn, in).ok());
    ASSERT_EQ(memory, wanted) << "round " << round;
  }
  std::vector<std::byte> whole(kFile);
  const CopySide<const std::byte> all = parking->bytes().subspan(0, kFile);
  ASSERT_TRUE(parking->Move(CopyLane::kIn, {{all, absl::MakeSpan(whole), CopyLinkId(0)}}).ok());
  EXPECT_EQ(whole, expected);
}

TEST_P(NvmeMoverOnAnyWay, SeesThatTheFileWasCut) {
  const auto parking = Park(10 * kNvmeBlock);
  std::vector<std::byte> memory(5 * kNvmeBlock);
  const std::vector<CopyPart> out = {{absl::MakeConstSpan(memory),
                                      parking->bytes().subspan(kNvmeBlock, memory.size()),
                                      CopyLinkId(0)}};
  ASSERT_TRUE(parking->Move(CopyLane::kOut, out).ok());
  ASSERT_EQ(ftruncate(parking->file().fd(), 3 * kNvmeBlock), 0);
  for (const CopyLane lane : {CopyLane::kOut, CopyLane::kIn}) {
    const absl::Status moved = parking->Move(lane, out);
    EXPECT_EQ(moved.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(moved.message()), HasSubstr("somebody has cut it to 12288 of 40960"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, NvmeMoverOnAnyWay,
    testing::Values(WayToDrive{"UringDirect", NvmeIoKind::kUring, Direct::kWherePossible},
                    WayToDrive{"UringCached", NvmeIoKind::kUring, Direct::kNever},
                    WayToDrive{"ThreadsDirect", NvmeIoKind::kThreads, Direct::kWherePossible},
                    WayToDrive{"ThreadsCached", NvmeIoKind::kThreads, Direct::kNever}),
    [](const auto& info) { return info.param.name; });

// A real file whose n-th request the test answers itself, and which moves less than it is asked to.
class FaultyIo final : public NvmeIo {
 public:
  struct Plan {
    int failing = -1;         // number of the request, from 0
    int64_t answer = 0;       // that it gets: -errno, or 0
    int times = 1;            // and so many after it
    int64_t most_bytes = -1;  // that others move at once; -1: all
    bool silent = false;      // the failing one gets no answer
  };
  FaultyIo(int fd, Plan plan, int* requests) : fd_(fd), plan_(plan), requests_(requests) {}

  absl::Status Start(const NvmeRequest& request) override {
    const int number = (*requests_)++;
    const bool fails = number >= plan_.failing && number < plan_.failing + plan_.times;
    if (plan_.failing >= 0 && fails) {
      if (!plan_.silent) answers_.push_front({request.tag, plan_.answer});
      return absl::OkStatus();
    }
    size_t bytes = request.buffer.size();
    if (plan_.most_bytes >= 0) bytes = std::min(bytes, static_cast<size_t>(plan_.most_bytes));
    const bool reads = request.kind == NvmeRequest::Kind::kRead;
    const ssize_t moved = reads ? pread(fd_, request.buffer.data(), bytes, request.offset)
                                : pwrite(fd_, request.buffer.data(), bytes, request.offset);
    answers_.push_back({request.tag, moved});
    return absl::OkStatus();
  }
  absl::StatusOr<NvmeDone> Next(Nanos patience) override {
    if (answers_.empty()) {
      return absl::DeadlineExceededError("no answer within " + FormatNanos(patience));
    }
    const NvmeDone done = answers_.front();
    answers_.pop_front();
    return done;
  }
  absl::string_view name() const override { return "faulty"; }

 private:
  const int fd_;
  const Plan plan_;
  int* const requests_;
  std::deque<NvmeDone> answers_;
};

// 20,000 bytes out and back, at an offset within a block.
class NvmeMoverWithFaults : public testing::Test {
 protected:
  NvmeMoverWithFaults() {
    MakeFile(Direct::kNever);
    Dice dice(5);
    memory_ = DiceBytes(dice, 20'000);
  }
  void MakeFile(Direct direct) {
    auto made = NvmeFile::Make(drive_.File(40'000, direct));
    EXPECT_TRUE(made.ok()) << made.status();
    file_ = std::make_unique<NvmeFile>(*std::move(made));
  }
  std::unique_ptr<NvmeMover> Mover(FaultyIo::Plan plan) {
    requests_ = 0;
    return std::make_unique<NvmeMover>(
        file_.get(), std::make_unique<FaultyIo>(file_->fd(), plan, &requests_), SmallRequests());
  }
  absl::Status OutAndBack(NvmeMover& mover) {
    const DriveRange range{5000, memory_.size()};
    const absl::Status out = mover.Move({{absl::MakeConstSpan(memory_),  //
                                          CopySide<std::byte>(range), CopyLinkId(0)}});
    if (!out.ok()) return out;
    back_.assign(memory_.size(), std::byte{0});
    return mover.Move({{CopySide<const std::byte>(range), absl::MakeSpan(back_), CopyLinkId(0)}});
  }
  ScratchDrive drive_;
  std::unique_ptr<NvmeFile> file_;
  std::vector<std::byte> memory_, back_;
  int requests_ = 0;
};

TEST_F(NvmeMoverWithFaults, SaysWhichRequestFailedWhicheverItIs) {
  ASSERT_TRUE(OutAndBack(*Mover({})).ok());
  const int all = requests_;
  ASSERT_EQ(all, 6);  // 20,000 bytes in buffers of 8,192, out and back
  for (const auto& [answer, cause] : {std::pair{-EIO, "Input/output error"},
                                      {-ENOSPC, "No space left on device"},
                                      {0, "the file ends before|the drive takes nothing"}}) {
    for (int failing = 0; failing < all; ++failing) {
      const auto mover = Mover({.failing = failing, .answer = answer});
      const absl::Status status = OutAndBack(*mover);
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << failing;
      EXPECT_THAT(std::string(status.message()),
                  testing::MatchesRegex(std::string("drive file .*/parked-.*: ") +
                                        (failing < 3 ? "writing" : "reading") +
                                        " [0-9]+ bytes at [0-9]+: (" + cause + ")"));
      // The drive is well again: what comes next is right.
      EXPECT_TRUE(OutAndBack(*mover).ok());
      EXPECT_EQ(back_, memory_);
    }
  }
}

TEST_F(NvmeMoverWithFaults, NamesTheOffset) {
  const absl::Status status = OutAndBack(*Mover({.failing = 1, .answer = -EIO}));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(": writing 8192 bytes at 13192: Input/output error"));
}

TEST_F(NvmeMoverWithFaults, AsksForTheRestOfWhatMovedInPart) {
  for (const int64_t most : {1000, 4096, 5000, 8191}) {
    const auto mover = Mover({.most_bytes = most});
    EXPECT_TRUE(OutAndBack(*mover).ok());
    EXPECT_EQ(back_, memory_) << most;
    EXPECT_GT(requests_, 6);
  }
}

TEST_F(NvmeMoverWithFaults, AsksForWholeBlocksPastThePageCache) {
  MakeFile(Direct::kWherePossible);
  if (!file_->direct()) GTEST_SKIP() << "skipped, because the disk has no O_DIRECT";
  EXPECT_TRUE(OutAndBack(*Mover({.most_bytes = kNvmeBlock})).ok());
  EXPECT_EQ(back_, memory_);
}

TEST_F(NvmeMoverWithFaults, TriesAgainAfterASignalButNotForEver) {
  for (const int error : {EINTR, EAGAIN}) {
    EXPECT_TRUE(OutAndBack(*Mover({.failing = 2, .answer = -error, .times = 50})).ok());
    EXPECT_EQ(back_, memory_);
    EXPECT_EQ(OutAndBack(*Mover({.failing = 2, .answer = -error, .times = 1000})).code(),
              absl::StatusCode::kInternal);
  }
}

TEST_F(NvmeMoverWithFaults, ADriveThatDoesNotAnswerIsBrokenForGood) {
  for (int silent = 0; silent < 6; ++silent) {
    const auto mover = Mover({.failing = silent, .silent = true});
    const absl::Status status = OutAndBack(*mover);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr(": no answer within 60.0 s"));
    EXPECT_EQ(OutAndBack(*mover), status);
  }
}

}  // namespace
}  // namespace siphon
