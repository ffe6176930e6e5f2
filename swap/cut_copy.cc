#include "swap/cut_copy.h"

#include <algorithm>

#include "planner/status.h"

namespace siphon {
namespace {

// Where in a slot the next bytes are.
class SlotCursor {
 public:
  explicit SlotCursor(absl::Span<const SlotMemory> slot) : slot_(slot) {}

  // The next bytes of one piece, at most so many. Requires: at_most is positive.
  SlotMemory Next(size_t at_most) {
    while (piece_ < slot_.size() && in_piece_ == slot_[piece_].bytes.size()) {
      ++piece_;
      in_piece_ = 0;
    }
    SIPHON_CHECK(piece_ < slot_.size(), "tensors fit into their slot");
    const SlotMemory& piece = slot_[piece_];
    const SlotMemory next = {piece.bytes.subspan(in_piece_, at_most), piece.link};
    in_piece_ += next.bytes.size();
    return next;
  }

 private:
  const absl::Span<const SlotMemory> slot_;
  size_t piece_ = 0;
  size_t in_piece_ = 0;
};

void Append(std::vector<CopyPart>& parts, const CopyPart& part) {
  if (!parts.empty()) {
    CopyPart& last = parts.back();
    if (last.link == part.link && last.from.GoesOnIn(part.from) && last.to.GoesOnIn(part.to)) {
      last.from = last.from.Extended(part.from.size());
      last.to = last.to.Extended(part.to.size());
      return;
    }
  }
  parts.push_back(part);
}

}  // namespace

std::vector<CopyPart> CutCopyOut(absl::Span<const absl::Span<const std::byte>> tensors,
                                 absl::Span<const SlotMemory> slot) {
  std::vector<CopyPart> parts;
  parts.reserve(tensors.size() + slot.size());
  SlotCursor cursor(slot);
  for (const absl::Span<const std::byte> tensor : tensors) {
    for (size_t done = 0; done < tensor.size();) {
      const SlotMemory to = cursor.Next(tensor.size() - done);
      Append(parts, {tensor.subspan(done, to.bytes.size()), to.bytes, to.link});
      done += to.bytes.size();
    }
  }
  return parts;
}

std::vector<CopyPart> CutCopyIn(absl::Span<const SlotMemory> slot, absl::Span<const size_t> sizes,
                                absl::Span<const absl::Span<std::byte>> tensors) {
  std::vector<CopyPart> parts;
  parts.reserve(tensors.size() + slot.size());
  SlotCursor cursor(slot);
  for (size_t tensor = 0; tensor < sizes.size(); ++tensor) {
    for (size_t done = 0; done < sizes[tensor];) {
      const SlotMemory from = cursor.Next(sizes[tensor] - done);
      if (tensors[tensor].data() != nullptr) {
        Append(parts, {from.bytes, tensors[tensor].subspan(done, from.bytes.size()), from.link});
      }
      done += from.bytes.size();
    }
  }
  return parts;
}

std::vector<CopyPart> CutCopyAcross(absl::Span<const SlotMemory> from,
                                    absl::Span<const SlotMemory> to, size_t bytes) {
  std::vector<CopyPart> parts;
  SlotCursor cursor(to);
  for (const SlotMemory& source : from) {
    for (size_t done = 0; done < source.bytes.size() && bytes > 0;) {
      const SlotMemory target = cursor.Next(std::min(bytes, source.bytes.size() - done));
      const size_t moved = target.bytes.size();
      const CopyLinkId link = source.bytes.on_drive() ? source.link : target.link;
      Append(parts, {source.bytes.subspan(done, moved), target.bytes, link});
      done += moved;
      bytes -= moved;
    }
  }
  return parts;
}

}  // namespace siphon
