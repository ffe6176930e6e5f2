#include "launch/run/record/outcome_json.h"

#include <nlohmann/json.hpp>

namespace siphon {

std::string OutcomeJson(const RunOutcome& outcome) {
  nlohmann::ordered_json json = {{"end", outcome.end == RunEnd::kDone ? "done" : "stopped"},
                                 {"steps_done", outcome.steps_done},
                                 {"loss", nullptr},
                                 {"validation_loss", nullptr},
                                 {"checkpoint", nullptr},
                                 {"host_peak_bytes", outcome.host_peak.value},
                                 {"warnings", outcome.warnings}};
  if (outcome.steps_done > outcome.first_step) json["loss"] = outcome.last_loss;
  if (outcome.last_validation_loss) json["validation_loss"] = *outcome.last_validation_loss;
  if (!outcome.last_checkpoint.empty()) json["checkpoint"] = outcome.last_checkpoint;
  return json.dump(2) + "\n";
}

}  // namespace siphon
