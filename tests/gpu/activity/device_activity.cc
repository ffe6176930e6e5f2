#include "tests/gpu/activity/device_activity.h"

#include <cstddef>
#include <iterator>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace siphon {
namespace {

constexpr absl::string_view kKinds[] = {"to_device", "to_host",    "within_device",
                                        "to_peer",   "other_copy", "kernel"};
constexpr absl::string_view kEngines[] = {"copy_engine", "compute", "other_engine"};
constexpr size_t kWords = 8;

template <typename Enum, size_t kCount>
std::optional<Enum> Find(const absl::string_view (&names)[kCount], absl::string_view name) {
  for (size_t index = 0; index < kCount; ++index) {
    if (names[index] == name) return static_cast<Enum>(index);
  }
  return std::nullopt;
}

std::string Spoken(absl::string_view name) { return absl::StrReplaceAll(name, {{"_", " "}}); }

}  // namespace

std::string NameOf(DeviceActivity::Kind kind) { return Spoken(kKinds[static_cast<int>(kind)]); }
std::string NameOf(DeviceActivity::Engine engine) {
  return Spoken(kEngines[static_cast<int>(engine)]);
}

std::string LineOf(const DeviceActivity& activity) {
  return absl::StrCat(kKinds[static_cast<int>(activity.kind)], " ",
                      kEngines[static_cast<int>(activity.engine)], " ", activity.device, " ",
                      activity.channel, " ", activity.stream, " ", activity.bytes.value, " ",
                      activity.start.value, " ", activity.end.value);
}

absl::StatusOr<DeviceActivity> ParseActivity(absl::string_view line) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  DeviceActivity activity;
  const auto refuse = [line](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("'", line, "': ", why));
  };
  if (words.size() != kWords) return refuse("8 words are expected");
  const auto kind = Find<DeviceActivity::Kind>(kKinds, words[0]);
  const auto engine = Find<DeviceActivity::Engine>(kEngines, words[1]);
  if (!kind.has_value() || !engine.has_value()) return refuse("an unknown kind or engine");
  activity.kind = *kind;
  activity.engine = *engine;
  int64_t bytes = 0, start = 0, end = 0;
  if (!absl::SimpleAtoi(words[2], &activity.device) ||
      !absl::SimpleAtoi(words[3], &activity.channel) ||
      !absl::SimpleAtoi(words[4], &activity.stream) || !absl::SimpleAtoi(words[5], &bytes) ||
      !absl::SimpleAtoi(words[6], &start) || !absl::SimpleAtoi(words[7], &end)) {
    return refuse("numbers are expected");
  }
  if (end < start) return refuse("it ends before it starts");
  activity.bytes = Bytes(bytes);
  activity.start = Nanos(start);
  activity.end = Nanos(end);
  return activity;
}

}  // namespace siphon
