#include "launch/run/seat/coordinate.h"

#include <cstring>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "pipeline/transport/all_gather.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr char kCulprit[] = "siphon/culprit";

}  // namespace

std::optional<int> CulpritOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kCulprit);
  int worker = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &worker)) {
    return std::nullopt;
  }
  return worker;
}

absl::Status Coordinator::GatherBytes(const void* mine, void* all, int64_t bytes_each) {
  const std::vector<int64_t> sizes(workers_, bytes_each);
  const ConstPart part(static_cast<const std::byte*>(mine), bytes_each);
  SIPHON_ASSIGN_OR_RETURN(const auto gathered, AllGather(*transport_, me_, sizes, part));
  for (int worker = 0; worker < workers_; ++worker) {
    std::memcpy(static_cast<std::byte*>(all) + worker * bytes_each, gathered[worker].data(),
                bytes_each);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> Coordinator::GatherText(const std::string& mine) {
  SIPHON_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                          Gather<int64_t>(static_cast<int64_t>(mine.size())));
  const ConstPart part(reinterpret_cast<const std::byte*>(mine.data()), mine.size());
  SIPHON_ASSIGN_OR_RETURN(const auto gathered, AllGather(*transport_, me_, sizes, part));
  std::vector<std::string> texts;
  for (const auto& bytes : gathered) {
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return texts;
}

absl::Status Coordinator::Agree(const absl::Status& mine) {
  SIPHON_ASSIGN_OR_RETURN(const std::vector<int32_t> codes,
                          Gather<int32_t>(static_cast<int32_t>(mine.code())));
  bool all_ok = true;
  for (const int32_t code : codes) all_ok = all_ok && code == 0;
  if (all_ok) return absl::OkStatus();
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> messages,
                          GatherText(std::string(mine.message())));
  for (int worker = 0; worker < workers_; ++worker) {
    if (codes[worker] == 0) continue;
    absl::Status status(static_cast<absl::StatusCode>(codes[worker]),
                        absl::StrCat("worker ", worker, ": ", messages[worker]));
    status.SetPayload(kCulprit, absl::Cord(absl::StrCat(worker)));
    return status;
  }
  return absl::OkStatus();
}

}  // namespace siphon
