#include "planner/plan_file/worker_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan_file/plan_fields.h"
#include "planner/plan_file/plan_keys.h"
#include "planner/status.h"

namespace siphon {

std::string LinesOfWorker(const PlanWorker& worker, const std::vector<DeviceId>& devices) {
  std::string text;
  if (!devices.empty()) {
    const auto append = [](std::string* out, DeviceId device) {
      absl::StrAppend(out, device.value);
    };
    text += KeyLine(kWorkerDeviceKey, absl::StrJoin(devices, ", ", append));
  }
  return text + FieldLines(kWorkerFields, worker);
}

absl::Status ReadWorkerLine(const PlanPair& pair, WorkerLines& lines) {
  if (HasField(kWorkerFields, pair.key.text)) return ReadField(kWorkerFields, pair, lines.worker);
  if (pair.key.text != kWorkerDeviceKey) {
    return ErrorAt(pair.key, absl::StrCat("unknown key ", QuotedWord(pair.key.text), "; known: ",
                                          kWorkerDeviceKey, ", ", FieldNames(kWorkerFields)));
  }
  lines.device = pair.value;
  for (const PlanWord& word : SplitWord(pair.value, ',')) {
    SIPHON_ASSIGN_OR_RETURN(const int device, ParseSmallNumber(word, 0));
    lines.devices.emplace_back(device);
  }
  return absl::OkStatus();
}

}  // namespace siphon
