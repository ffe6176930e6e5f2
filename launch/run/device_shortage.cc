#include "launch/run/device_shortage.h"

#include <optional>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace siphon {
namespace {

constexpr char kSomebodyElse[] =
    "memory.capacity counts on it: somebody else has taken memory of the device; with the device "
    "to itself, or a smaller memory.capacity, the job can go on";

}  // namespace

absl::Status WithDeviceShortage(const absl::Status& status, const SeatMemory& memory,
                                const Lending& lent) {
  const std::optional<std::string> shortage = memory.Shortage();
  const bool lacks = shortage.has_value() || lent.device_refuses();
  if (!absl::IsResourceExhausted(status) || !lacks) return status;
  absl::Status failure =
      absl::FailedPreconditionError(absl::StrCat(status.message(), shortage.has_value() ? "; " : "",
                                                 shortage.value_or(""), "; ", kSomebodyElse));
  status.ForEachPayload([&failure](absl::string_view type, const absl::Cord& payload) {
    failure.SetPayload(type, payload);
  });
  return failure;
}

}  // namespace siphon
