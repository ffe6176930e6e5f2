#ifndef SIPHON_PLANNER_PLAN_FILE_PLAN_KEYS_H_
#define SIPHON_PLANNER_PLAN_FILE_PLAN_KEYS_H_

#include <array>

#include "absl/strings/string_view.h"
#include "planner/layer_cost.h"
#include "planner/memory_plan.h"
#include "planner/plan_file/plan_fields.h"
#include "planner/plan_text.h"
#include "planner/stage_cost.h"
#include "planner/topology.h"

namespace siphon {

// The words of a plan file, for the one who writes it and the one who reads it.
inline constexpr absl::string_view kFirstLine = "siphon plan 1";

inline constexpr absl::string_view kJobSection = "job";
inline constexpr absl::string_view kPredictedSection = "predicted";
inline constexpr absl::string_view kTopologySection = "topology";
inline constexpr absl::string_view kWorkerSection = "worker";
inline constexpr absl::string_view kStageSection = "stage";
inline constexpr absl::string_view kSharedSection = "shared parameters";
inline constexpr absl::string_view kTrainingSection = "training";
inline constexpr absl::string_view kEvaluationSection = "evaluation";

inline constexpr absl::string_view kModelKey = "model";
inline constexpr absl::string_view kScheduleKey = "schedule";
inline constexpr absl::string_view kStrategyKey = "strategy";
inline constexpr absl::string_view kMicrobatchKey = "microbatch";
inline constexpr absl::string_view kGlobalBatchKey = "global_batch";
inline constexpr absl::string_view kReplicasKey = "replicas";
inline constexpr absl::string_view kWeightRuleKey = "weight_rule";
inline constexpr absl::string_view kOneGroupBehindWord =
    "one_group_behind";  // the only one written
inline constexpr absl::string_view kSentKey = "sent_is_held";
inline constexpr absl::string_view kUntilTakenWord = "until_taken";  // the only one written
inline constexpr absl::string_view kStreamedKey = "streamed_is_held";
inline constexpr absl::string_view kUntilWaitedForWord =
    "until_waited_for";  // the only one written
inline constexpr absl::string_view kCostsKey = "costs";
inline constexpr absl::string_view kCoresTogetherKey = "cores_together";
inline constexpr std::array<PlanField<PlanText>, 6> kJobFields = {{
    {"link_latency", &PlanText::link_latency},
    {"link_rate", &PlanText::link_rate},
    {"host_rate", &PlanText::host_rate},
    {"copy_rate", &PlanText::copy_rate},
    {"swap_rate", &PlanText::swap_rate},
    {"message_room", &PlanText::message_room},
}};

inline constexpr absl::string_view kPeakKey = "peak";
inline constexpr absl::string_view kPeakAtMostKey = "peak_at_most";
inline constexpr std::array<PlanField<PlanPrediction>, 2> kPredictedFields = {{
    {"step_time", &PlanPrediction::step_time},
    {"lower_bound", &PlanPrediction::lower_bound},
}};

inline constexpr absl::string_view kNameKey = "name";
inline constexpr absl::string_view kDeviceKindKey = "device_kind";
inline constexpr absl::string_view kCopyEnginesKey = "copy_engines";
inline constexpr absl::string_view kOnePerPeerWord = "one_per_peer";
inline constexpr absl::string_view kOneForAllPeersWord = "one_for_all_peers";
inline constexpr absl::string_view kDeviceWord = "device";
inline constexpr absl::string_view kDevicesWord = "devices";
inline constexpr absl::string_view kLinksWord = "links";
inline constexpr absl::string_view kArrowWord = "->";
inline constexpr absl::string_view kSwitchWord = "switch";
inline constexpr absl::string_view kDriveWord = "drive";
inline constexpr std::array<PlanField<Topology>, 2> kTopologyFields = {{
    {"nominal_wire_rate", &Topology::nominal_wire_rate},
    {"host_memory", &Topology::host_memory},
}};
inline constexpr std::array<PlanField<ServerNetwork>, 2> kNetworkFields = {{
    {"network_rate", &ServerNetwork::rate},
    {"network_latency", &ServerNetwork::latency},
}};
inline constexpr std::array<PlanField<TopologyDevice>, 5> kDeviceFields = {{
    {"memory", &TopologyDevice::memory},
    {"egress", &TopologyDevice::egress},
    {"ingress", &TopologyDevice::ingress},
    {"numa", &TopologyDevice::numa, ZeroFigure::kWritten},
    {"server", &TopologyDevice::server},
}};
inline constexpr std::array<PlanField<TopologyLink>, 3> kLinkFields = {{
    {"rate", &TopologyLink::rate, ZeroFigure::kWritten},
    {"latency", &TopologyLink::latency},
    {"wires", &TopologyLink::wires},
}};
inline constexpr std::array<PlanField<PcieSwitch>, 5> kSwitchFields = {{
    {"to_host", &PcieSwitch::to_host, ZeroFigure::kWritten},
    {"from_host", &PcieSwitch::from_host, ZeroFigure::kWritten},
    {"to_host_both", &PcieSwitch::to_host_both},
    {"from_host_both", &PcieSwitch::from_host_both},
    {"latency", &PcieSwitch::latency},
}};
inline constexpr std::array<PlanField<NvmeDrive>, 6> kDriveFields = {{
    {"capacity", &NvmeDrive::capacity, ZeroFigure::kWritten},
    {"read", &NvmeDrive::read},
    {"write", &NvmeDrive::write},
    {"latency", &NvmeDrive::latency},
    {"numa", &NvmeDrive::numa, ZeroFigure::kWritten},
    {"server", &NvmeDrive::server},
}};

inline constexpr absl::string_view kWorkerDeviceKey = "device";
inline constexpr std::array<PlanField<PlanWorker>, 3> kWorkerFields = {{
    {"capacity", &PlanWorker::capacity},
    {"communication", &PlanWorker::communication},
    {"slack", &PlanWorker::slack},
}};

inline constexpr absl::string_view kWorkerKey = "worker";
inline constexpr absl::string_view kLayersKey = "layers";
inline constexpr absl::string_view kNamesKey = "names";
inline constexpr absl::string_view kUpdateKey = "update";
inline constexpr absl::string_view kStreamBuffersKey = "stream_buffers";
inline constexpr absl::string_view kHostWord = "host";  // the only update that is written
inline constexpr std::array<PlanField<PlanStage>, 1> kHostStepFields = {{
    {"host_step", &PlanStage::host_step},
}};
inline constexpr std::array<PlanField<StageCost>, 18> kStageFields = {{
    {"forward", &StageCost::forward, ZeroFigure::kWritten},
    {"input_backward", &StageCost::input_backward, ZeroFigure::kWritten},
    {"weight_backward", &StageCost::weight_backward, ZeroFigure::kWritten},
    {"whole_backward", &StageCost::whole_backward},
    {"step", &StageCost::step, ZeroFigure::kWritten},
    {"parameters", &StageCost::parameters, ZeroFigure::kWritten},
    {"gradients", &StageCost::gradients, ZeroFigure::kWritten},
    {"optimizer_state", &StageCost::optimizer_state, ZeroFigure::kWritten},
    {"shared_parameters", &StageCost::shared_parameters},
    {"shared_gradients", &StageCost::shared_gradients},
    {"stash", &StageCost::stash, ZeroFigure::kWritten},
    {"kept_for_weights", &StageCost::kept_for_weights, ZeroFigure::kWritten},
    {"input", &StageCost::input, ZeroFigure::kWritten},
    {"output", &StageCost::output, ZeroFigure::kWritten},
    {"forward_workspace", &StageCost::forward_workspace, ZeroFigure::kWritten},
    {"backward_workspace", &StageCost::backward_workspace, ZeroFigure::kWritten},
    {"input_backward_workspace", &StageCost::input_backward_workspace},
    {"weight_backward_workspace", &StageCost::weight_backward_workspace},
}};

inline constexpr absl::string_view kLayerWord = "layer";
inline constexpr absl::string_view kLayersWord = "layers";
inline constexpr std::array<PlanField<LayerCost>, 9> kLayerFields = {{
    {"forward", &LayerCost::forward, ZeroFigure::kWritten},
    {"input_backward", &LayerCost::input_backward},
    {"weight_backward", &LayerCost::weight_backward},
    {"whole_backward", &LayerCost::whole_backward},
    {"optimizer", &LayerCost::optimizer},
    {"stash", &LayerCost::stash},
    {"kept_for_weights", &LayerCost::kept_for_weights},
    {"shared_before", &LayerCost::shared_before},
    {"recompute", &LayerCost::recompute},
}};

inline constexpr absl::string_view kGroupWord = "group";
inline constexpr absl::string_view kOfWord = "of";
inline constexpr absl::string_view kElseWord = "else";
inline constexpr std::array<PlanField<TensorGroup>, 4> kGroupFields = {{
    {"first_tensors", &TensorGroup::first_tensors},
    {"input", &TensorGroup::input},
    {"recompute_time", &TensorGroup::recompute},
    {"workspace", &TensorGroup::workspace},
}};

}  // namespace siphon

#endif  // SIPHON_PLANNER_PLAN_FILE_PLAN_KEYS_H_
