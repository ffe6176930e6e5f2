#ifndef SIPHON_TESTS_LAUNCH_CONFIG_CONFIG_FIXTURE_H_
#define SIPHON_TESTS_LAUNCH_CONFIG_CONFIG_FIXTURE_H_

#include <string>
#include <vector>

#include "launch/config/load_job_config.h"

namespace siphon {

// Registries as a program might have them, and a machine with 8 GiB.
inline ConfigLimits SmallMachine() {
  ConfigLimits limits;
  limits.known.schedules = {"gpipe", "1f1b"};
  limits.known.partition_methods = {"balanced"};
  limits.known.model_kinds = {"gpt", "bert", "mlp", "plugin"};
  limits.known.data_kinds = {"text", "tokens", "synthetic"};
  limits.known.optimizers = {"adamw", "adam", "sgd"};
  limits.known.memory_strategies = {"keep",     "recompute", "host_swap",
                                    "d2d_swap", "nvme_swap", "auto"};
  limits.machine_memory = Bytes(int64_t{8} << 30);
  return limits;
}

// The message with which "job.yaml" of this text is refused; "accepted" if it is not.
inline std::string Refusal(const std::string& text,
                           const std::vector<std::string>& overrides = {}) {
  const auto job = ParseJobConfig(text, "job.yaml", overrides, SmallMachine());
  if (job.ok()) return "accepted";
  if (job.status().code() != absl::StatusCode::kInvalidArgument) return job.status().ToString();
  return std::string(job.status().message());
}

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_CONFIG_CONFIG_FIXTURE_H_
