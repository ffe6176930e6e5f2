#include "swap/host_copies.h"

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

// The first in the list of a worker's links.
constexpr CopyLinkId kHostLink(0);

}  // namespace

CopyEvent HostCopies::Start(CopyLane lane, std::vector<HostCopy> copies) {
  std::vector<CopyPart> parts;
  for (const HostCopy& copy : copies) {
    SIPHON_CHECK(copy.from.size() == copy.to.size(), "both sides of a copy have one size");
    if (copy.from.empty()) continue;
    if (lane == CopyLane::kOut) bytes_out_ += Bytes(static_cast<int64_t>(copy.from.size()));
    parts.push_back({copy.from, copy.to, kHostLink});
  }
  const CopyEvent event = backend_->StartCopy(lane, std::move(parts));
  under_way_[event] = std::move(copies);
  return event;
}

absl::Status HostCopies::Wait(CopyEvent event) {
  SIPHON_RETURN_IF_ERROR(backend_->Wait(event));
  const auto found = under_way_.find(event);
  if (found == under_way_.end()) return absl::OkStatus();  // asked for again
  const std::vector<HostCopy> copies = std::move(found->second);
  under_way_.erase(found);
  if (!checks_) return absl::OkStatus();
  std::vector<absl::Span<const std::byte>> from, to;
  for (const HostCopy& copy : copies) {
    from.push_back(copy.from);
    to.push_back(copy.to);
  }
  SIPHON_ASSIGN_OR_RETURN(const std::vector<uint64_t> sent, backend_->Checksums(from));
  SIPHON_ASSIGN_OR_RETURN(const std::vector<uint64_t> arrived, backend_->Checksums(to));
  for (size_t place = 0; place < copies.size(); ++place) {
    const HostCopy& copy = copies[place];
    if (sent[place] == arrived[place]) continue;
    return absl::DataLossError(absl::StrCat("a copy of ", copy.from.size(),
                                            " bytes between the worker and the host arrived "
                                            "changed"));
  }
  return absl::OkStatus();
}

}  // namespace siphon
