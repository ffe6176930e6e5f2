#include "pipeline/transport/transport.h"

#include "absl/strings/str_cat.h"

namespace siphon {

absl::string_view LaneName(Lane lane) {
  switch (lane) {
    case Lane::kForward:
      return "forward";
    case Lane::kBackward:
      return "backward";
    case Lane::kControl:
      return "control";
  }
  return "unknown";
}

std::string ToString(const Channel& channel) {
  return absl::StrCat("worker ", channel.from.value, " -> worker ", channel.to.value, " (",
                      LaneName(channel.lane), ")");
}

}  // namespace siphon
