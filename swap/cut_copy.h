#ifndef SIPHON_SWAP_CUT_COPY_H_
#define SIPHON_SWAP_CUT_COPY_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "swap/device/device_backend.h"

namespace siphon {

// One piece of a slot, in memory or on a drive.
struct SlotMemory {
  CopySide<std::byte> bytes;
  CopyLinkId link;
};

// The parts of the copy of `tensors`, one behind the other, into the slot, cut where either side
// is; parts that go on on both sides, over one link, are one. Requires: the slot has room.
std::vector<CopyPart> CutCopyOut(absl::Span<const absl::Span<const std::byte>> tensors,
                                 absl::Span<const SlotMemory> slot);

// The same back. `sizes` are those of the tensors that went out; a tensor without data (nullptr)
// stays as it is, any other has its size.
std::vector<CopyPart> CutCopyIn(absl::Span<const SlotMemory> slot, absl::Span<const size_t> sizes,
                                absl::Span<const absl::Span<std::byte>> tensors);

// The copy of the first `bytes` of one slot into another one, whose memory is elsewhere; over the
// link to the drive where one of them is there, else that of the new place. Requires: both have
// room for them.
std::vector<CopyPart> CutCopyAcross(absl::Span<const SlotMemory> from,
                                    absl::Span<const SlotMemory> to, size_t bytes);

}  // namespace siphon

#endif  // SIPHON_SWAP_CUT_COPY_H_
