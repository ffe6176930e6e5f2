#include "swap/cut_copy.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

// Parts as text: where each side begins, how many bytes, over which link.
std::string Text(const std::vector<CopyPart>& parts, const std::byte* tensors,
                 const std::byte* parked, CopyLane lane) {
  std::string text;
  for (const CopyPart& part : parts) {
    const bool out = lane == CopyLane::kOut;
    const std::byte* const tensor = out ? part.from.data() : part.to.data();
    const std::byte* const place = out ? part.to.data() : part.from.data();
    absl::StrAppend(&text, text.empty() ? "" : " ", tensor - tensors, "-", place - parked, ":",
                    part.from.size(), "/", part.link.value);
  }
  return text;
}

class CutCopy : public testing::Test {
 protected:
  absl::Span<const std::byte> From(size_t begin, size_t bytes) {
    return absl::MakeConstSpan(tensors_).subspan(begin, bytes);
  }
  absl::Span<std::byte> To(size_t begin, size_t bytes) {
    return absl::MakeSpan(tensors_).subspan(begin, bytes);
  }
  SlotMemory Piece(size_t begin, size_t bytes, int link) {
    return {absl::MakeSpan(parked_).subspan(begin, bytes), CopyLinkId(link)};
  }
  std::string Out(const std::vector<absl::Span<const std::byte>>& tensors,
                  const std::vector<SlotMemory>& slot) {
    return Text(CutCopyOut(tensors, slot), tensors_.data(), parked_.data(), CopyLane::kOut);
  }
  std::string In(const std::vector<SlotMemory>& slot, const std::vector<size_t>& sizes,
                 const std::vector<absl::Span<std::byte>>& tensors) {
    return Text(CutCopyIn(slot, sizes, tensors), tensors_.data(), parked_.data(), CopyLane::kIn);
  }

  std::vector<std::byte> tensors_ = std::vector<std::byte>(1000);
  std::vector<std::byte> parked_ = std::vector<std::byte>(1000);
};

TEST_F(CutCopy, CutsWhereATensorOrAPieceEnds) {
  // 30 + 30 bytes into pieces of 20 and 50.
  EXPECT_EQ(Out({From(0, 30), From(100, 30)}, {Piece(0, 20, 0), Piece(200, 50, 1)}),
            "0-0:20/0 20-200:10/1 100-210:30/1");
  EXPECT_EQ(In({Piece(0, 20, 0), Piece(200, 50, 1)}, {30, 30}, {To(0, 30), To(100, 30)}),
            "0-0:20/0 20-200:10/1 100-210:30/1");
}

TEST_F(CutCopy, JoinsWhatGoesOnOnBothSidesOverOneLink) {
  EXPECT_EQ(Out({From(0, 8), From(8, 8), From(16, 8)}, {Piece(0, 24, 0)}), "0-0:24/0");
  EXPECT_EQ(In({Piece(0, 24, 0)}, {8, 8, 8}, {To(0, 8), To(8, 8), To(16, 8)}), "0-0:24/0");
  // Not over two links, nor where one side has a gap.
  EXPECT_EQ(Out({From(0, 8)}, {Piece(0, 4, 0), Piece(4, 4, 1)}), "0-0:4/0 4-4:4/1");
  EXPECT_EQ(Out({From(0, 8), From(9, 8)}, {Piece(0, 16, 0)}), "0-0:8/0 9-8:8/0");
  EXPECT_EQ(Out({From(0, 8)}, {Piece(0, 4, 0), Piece(5, 4, 0)}), "0-0:4/0 4-5:4/0");
}

// Of 70 bytes the first 50 are in use: 20 and 50 there, 10, 30 and 30 here.
TEST_F(CutCopy, CarriesASlotToAnotherOne) {
  const std::vector<SlotMemory> from = {Piece(0, 20, 0), Piece(100, 50, 1)};
  const auto to = [this](size_t begin, size_t bytes, int link) {
    return SlotMemory{To(begin, bytes), CopyLinkId(link)};
  };
  const std::vector<SlotMemory> slot = {to(0, 10, 2), to(500, 30, 3), to(600, 30, 4)};
  EXPECT_EQ(Text(CutCopyAcross(from, slot, 50), tensors_.data(), parked_.data(), CopyLane::kIn),
            "0-0:10/2 500-10:10/3 510-100:20/3 600-120:10/4");
  const std::vector<SlotMemory> drive = {
      {CopySide<std::byte>(DriveRange{4096, 50}), CopyLinkId(7)}};
  const std::vector<CopyPart> back = CutCopyAcross(drive, slot, 15);
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[1].from.offset(), 4106);
  EXPECT_EQ(back[1].from.size(), 5u);
  EXPECT_EQ(back[1].link, CopyLinkId(7));
}

TEST_F(CutCopy, JoinsRangesOfADriveAsItDoesMemory) {
  const auto range = [](int64_t offset, size_t bytes) {
    return SlotMemory{CopySide<std::byte>(DriveRange{offset, bytes}), CopyLinkId(0)};
  };
  const std::vector<CopyPart> out =
      CutCopyOut({From(0, 30), From(30, 20), From(60, 10)}, {range(4096, 40), range(8192, 20)});
  std::string text;
  for (const CopyPart& part : out) {
    absl::StrAppend(&text, part.from.data() - tensors_.data(), "-", part.to.offset(), ":",
                    part.from.size(), " ");
  }
  EXPECT_EQ(text, "0-4096:40 40-8192:10 60-8202:10 ");
  const std::vector<CopyPart> in =
      CutCopyIn({range(4096, 40), range(4136, 20)}, {30, 30}, {To(0, 30), To(30, 30)});
  ASSERT_EQ(in.size(), 1u);
  EXPECT_EQ(in[0].from.offset(), 4096);
  EXPECT_EQ(in[0].from.size(), 60u);
  EXPECT_EQ(in[0].to.data(), tensors_.data());
}

TEST_F(CutCopy, PassesOverEmptyTensorsAndPieces) {
  EXPECT_EQ(Out({From(0, 0), From(0, 4), {}}, {Piece(9, 0, 0), Piece(10, 4, 1)}), "0-10:4/1");
  EXPECT_EQ(Out({}, {Piece(0, 4, 0)}), "");
  EXPECT_EQ(Out({From(0, 0)}, {}), "");
}

TEST_F(CutCopy, LeavesOutATensorWithoutDataOnTheWayBack) {
  EXPECT_EQ(In({Piece(0, 10, 0), Piece(50, 20, 1)}, {8, 8, 8}, {To(0, 8), {}, To(100, 8)}),
            "0-0:8/0 100-56:8/1");
  EXPECT_EQ(In({Piece(0, 24, 0)}, {8, 8, 8}, {{}, {}, {}}), "");
}

}  // namespace
}  // namespace siphon
