#include "launch/run/device_failure.h"

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

// Another code, and more to say.
absl::Status As(absl::StatusCode code, const absl::Status& status, absl::string_view more) {
  absl::Status failure(code, absl::StrCat(status.message(), "; ", more));
  status.ForEachPayload([&failure](absl::string_view type, const absl::Cord& payload) {
    failure.SetPayload(type, payload);
  });
  return failure;
}

}  // namespace

absl::Status WithDeviceFailure(const absl::Status& status, const WorkerDevice* device,
                               const SeatMemory& memory, const Lending& lent) {
  if (device == nullptr) return status;
  const absl::Status health = device->cuda->Health(device->torch->device().index);
  if (!health.ok()) return As(absl::StatusCode::kInternal, status, health.message());
  const std::optional<std::string> shortage = memory.Shortage();
  const bool lacks = shortage.has_value() || lent.device_refuses();
  if (!absl::IsResourceExhausted(status) || !lacks) return status;
  return As(absl::StatusCode::kFailedPrecondition, status,
            absl::StrCat(shortage.value_or(""), shortage.has_value() ? "; " : "", kSomebodyElse));
}

}  // namespace siphon
