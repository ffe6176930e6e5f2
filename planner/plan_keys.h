#ifndef SIPHON_PLANNER_PLAN_KEYS_H_
#define SIPHON_PLANNER_PLAN_KEYS_H_

#include <array>

#include "absl/strings/string_view.h"
#include "planner/stage_cost.h"

namespace siphon {

// The words of a plan file, for the one who writes it and the one who reads it.
inline constexpr absl::string_view kFirstLine = "siphon plan 1";

inline constexpr absl::string_view kJobSection = "job";
inline constexpr absl::string_view kWorkerSection = "worker";
inline constexpr absl::string_view kStageSection = "stage";
inline constexpr absl::string_view kSharedSection = "shared parameters";
inline constexpr absl::string_view kTrainingSection = "training";
inline constexpr absl::string_view kEvaluationSection = "evaluation";

inline constexpr absl::string_view kModelKey = "model";
inline constexpr absl::string_view kScheduleKey = "schedule";
inline constexpr absl::string_view kMicrobatchKey = "microbatch";
inline constexpr absl::string_view kGlobalBatchKey = "global_batch";
inline constexpr absl::string_view kReplicasKey = "replicas";
inline constexpr absl::string_view kWeightRuleKey = "weight_rule";
inline constexpr absl::string_view kOneGroupBehindWord =
    "one_group_behind";  // the only one written
inline constexpr absl::string_view kCostsKey = "costs";
inline constexpr absl::string_view kLinkLatencyKey = "link_latency";
inline constexpr absl::string_view kLinkRateKey = "link_rate";
inline constexpr absl::string_view kCopyRateKey = "copy_rate";
inline constexpr absl::string_view kMessageRoomKey = "message_room";
inline constexpr absl::string_view kCoresTogetherKey = "cores_together";

inline constexpr absl::string_view kCapacityKey = "capacity";
inline constexpr absl::string_view kCommunicationKey = "communication";

inline constexpr absl::string_view kWorkerKey = "worker";
inline constexpr absl::string_view kLayersKey = "layers";
inline constexpr absl::string_view kNamesKey = "names";

struct CostTimeKey {
  absl::string_view name;
  Nanos StageCost::*member;
  bool only_if_known = false;  // left out where it is 0
};
inline constexpr std::array<CostTimeKey, 5> kCostTimes = {{
    {"forward", &StageCost::forward},
    {"input_backward", &StageCost::input_backward},
    {"weight_backward", &StageCost::weight_backward},
    {"whole_backward", &StageCost::whole_backward, true},
    {"step", &StageCost::step},
}};

struct CostSizeKey {
  absl::string_view name;
  Bytes StageCost::*member;
};
inline constexpr std::array<CostSizeKey, 9> kCostSizes = {{
    {"parameters", &StageCost::parameters},
    {"gradients", &StageCost::gradients},
    {"optimizer_state", &StageCost::optimizer_state},
    {"stash", &StageCost::stash},
    {"kept_for_weights", &StageCost::kept_for_weights},
    {"input", &StageCost::input},
    {"output", &StageCost::output},
    {"forward_workspace", &StageCost::forward_workspace},
    {"backward_workspace", &StageCost::backward_workspace},
}};

}  // namespace siphon

#endif  // SIPHON_PLANNER_PLAN_KEYS_H_
