#include "launch/run/job/name_of_place.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace siphon {

std::string NameOfPlace(const DeviceMapping& mapping, const ParkingPlace& place) {
  if (place.tier == Placement::kHostSwap) return "the host";
  if (place.tier == Placement::kNvmeSwap) return "the drives";
  const std::vector<DeviceId>& devices = mapping.device_of_worker;
  const auto worker = std::find(devices.begin(), devices.end(), place.lender);
  if (worker == devices.end()) return absl::StrCat("device ", place.lender.value);
  return absl::StrCat("worker ", worker - devices.begin());
}

}  // namespace siphon
