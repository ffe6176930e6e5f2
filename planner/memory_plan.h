#ifndef SIPHON_PLANNER_MEMORY_PLAN_H_
#define SIPHON_PLANNER_MEMORY_PLAN_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "planner/action.h"
#include "planner/ids.h"
#include "planner/stage_partition.h"
#include "planner/units.h"

namespace siphon {

// What the tensors of a group are.
enum class GroupKind {
  kActivations,  // saved from F until B; there once a microbatch
  kParameters,   // these three are there once, and belong to no microbatch
  kGradients,
  kOptimizerState,
  // Parameters as they were before an UPDATE, for the microbatches that still go by them
  // (planner/weight_stashes.h); there once an UPDATE, whose microbatch names them.
  kWeightVersions,
};
inline constexpr int kGroupKinds = static_cast<int>(GroupKind::kWeightVersions) + 1;
// "activations", "parameters", ...
absl::string_view GroupKindName(GroupKind kind);
// Made and used up within a step, so that its actions name a microbatch: activations and weight
// versions. The others are there at the begin and at the end of each step.
bool IsPassing(GroupKind kind);

// Where the tensors of a group are while nobody needs them.
enum class Placement {
  kKeep,       // where they are used
  kRecompute,  // nowhere: activations are computed again from the group's input
  kPeerSwap,   // in the memory of lenders
  kHostSwap,   // in host memory
  kNvmeSwap,   // on the host's NVMe drives
};
inline constexpr int kPlacements = static_cast<int>(Placement::kNvmeSwap) + 1;
// "keep", "recompute", "d2d_swap", "host_swap", "nvme_swap": as in job files and plans.
absl::string_view PlacementName(Placement placement);
bool IsSwap(Placement placement);

// A part of a group's tensors and the device that takes it.
struct Stripe {
  DeviceId lender;
  Bytes bytes;  // as TensorGroup::bytes
  friend bool operator==(const Stripe&, const Stripe&) = default;
};

// Tensors of consecutive layers of one stage that go the same way at the same time. Immutable fact.
struct TensorGroup {
  GroupKind kind = GroupKind::kActivations;
  StageRange layers;  // of the model, within the stage
  Bytes bytes;        // kActivations: of one microbatch; kWeightVersions: of one version
  // kActivations only: what stays when they are dropped (the input of the first layer), and how
  // long the layers take to compute them again.
  Bytes input;
  Nanos recompute;
  // kActivations of one layer only: what the layer saves first, so many of LayerProfile::saved; the
  // others are kept. 0: all that the layers save.
  int first_tensors = 0;
  // With first_tensors: what computing them again takes beside them; StageCost::forward_workspace
  // where that is more.
  Bytes workspace;
  friend bool operator==(const TensorGroup&, const TensorGroup&) = default;
};

// The decision for one group. The second choice is taken, from the next step on, when a lender
// refuses or a link is far slower than planned.
struct GroupChoice {
  Placement placement = Placement::kKeep;
  std::vector<Stripe> stripes;  // kPeerSwap: they add up to the group's bytes; else empty
  Placement second_choice = Placement::kKeep;
  // kHostSwap of optimizer state of a stage with UpdatePlace::kHost only: its layers step on the
  // device all the same, and the host but keeps it meanwhile.
  bool steps_on_device = false;
  friend bool operator==(const GroupChoice&, const GroupChoice&) = default;
};

struct PlannedGroup {
  TensorGroup group;
  GroupChoice choice;
  friend bool operator==(const PlannedGroup&, const PlannedGroup&) = default;
};

// Where the optimizer step of a stage is computed.
enum class UpdatePlace {
  kDevice,
  // On the host, of all or some layers (planner/steps_on_host.h), whose optimizer state it holds.
  kHost,
};

// Triple buffering: those in use, those that come in next, and those that leave.
inline constexpr int kMostStreamBuffers = 3;

struct StagePlan {
  std::vector<PlannedGroup> groups;  // GroupId is the place in here; tensors of none are kept
  UpdatePlace update = UpdatePlace::kDevice;
  // Of parameters and gradients that actions have only while they are at their layers, so many
  // layers' (or blocks of layers') are there at once, at most; 1 to kMostStreamBuffers. With 1
  // nothing comes in ahead of its layers, activations neither.
  int stream_buffers = kMostStreamBuffers;
  friend bool operator==(const StagePlan&, const StagePlan&) = default;
};

// One choice for each tensor group of each stage. Empty: everything is kept.
//
// How a schedule's actions and this plan mean one thing together:
//
// Activations, group g of (stage s, microbatch m):
// - sDROPm.g stands before sFm: of the group's tensors F keeps only its input. A B or I that finds
//   the group dropped computes it again when it reaches the group's last layer; sRECOMPUTEm.g
//   before it does so at once.
// - sSWAP_OUTm.g before sFm starts the copy as soon as F is through the group's last layer, behind
//   sFm at once. sSWAP_OUT_ENDm.g waits for it; then the memory is free.
// - sSWAP_OUT_ENDm.g behind that and before sFm says that the group leaves under F, which frees it:
//   whenever F has made a group that leaves, it waits for the first ones of these, so that no more
//   are there than leave behind it, or one; at its end it waits for the rest.
// - sSWAP_INm.g takes the memory and starts the copy back. A B or I that finds the group on its
//   way in waits for it when it reaches the group's last layer; sSWAP_IN_ENDm.g waits at once.
// - A B or I that finds the group away has it in by itself: it takes the memory of the first such
//   group and starts its copy as it begins, of each next one when it comes to the one before; with
//   one stream buffer, when it comes there.
// - With split backward, the group is needed from I until W.
//
// Weight versions, group g of stage s as it was before sUPDATEm: part of the parameters until then;
// if microbatches that go by it have an F, B, I or W behind sUPDATEm, a stash of its own from there
// until the last of these. They find it on its way in, or there: no DROP, and with the stage's
// parameters kept.
// - sSWAP_OUTm.g starts the copy: behind the UPDATE before sUPDATEm, from the parameters; behind
//   sUPDATEm, from the stash. sSWAP_OUT_ENDm.g waits for it. Where it stands before sUPDATEm, that
//   overwrites the parameters where they are, and no memory is taken for the stash; else sUPDATEm
//   takes it, and the END frees it.
// - sSWAP_INm.g, behind sUPDATEm, takes the memory and starts the copy back. B, I and W wait for it
//   at the group's last layer, F at its first; sSWAP_IN_ENDm.g waits at once.
//
// Parameters, gradients and optimizer state, group g of stage s, choice other than kKeep: at the
// begin and at the end of each step the group is away; but optimizer state whose first memory
// action is sSWAP_OUT.g is home then: it is there at both ends, and away in between (HomeGroupsOf).
// Its place elsewhere stays its own in any case. sSWAP_IN.g takes the memory and starts the copy.
// Who needs it waits for it when it comes to its layers: F, B, I and W for parameters, B and W for
// gradients, STEP for all three. sSWAP_OUT.g and sSWAP_OUT_END.g send it away again; sDROP.g frees
// it at once, where the copy that is away still holds: not for gradients, nor for what a STEP has
// changed.
//
// An F, B, I or W can also have parameters and gradients only while it is at their layers. sDROP.g
// stands before it, for parameters that are away or on their way in; sSWAP_OUT.g likewise for
// gradients. When the action comes to such a group it waits for it, then takes the memory for the
// one that it needs next and starts that copy (the first one as it begins); with one stream buffer
// it does so when it comes there. Parameters are freed behind their layers. Gradients go out there
// and their memory is free when the copy is through, for which the action waits before it takes
// memory for the group so many places behind as the stage has stream buffers; sSWAP_OUT_END.g waits
// for it too. What is to be computed again lies within one such group of parameters.
//
// sSTEP.g, with g a group of optimizer state, is the step of that group's layers; a plain sSTEP
// that of all layers without such an action. On the host (planner/steps_on_host.h), STEP copies the
// gradients of its layers out, computes there, and copies the parameters in.
struct MemoryPlan {
  std::vector<StagePlan> stages;
  friend bool operator==(const MemoryPlan&, const MemoryPlan&) = default;
};

// Injective worker -> device. Nothing else turns a worker into a device. Replicas one after the
// other.
struct DeviceMapping {
  std::vector<DeviceId> device_of_worker;
  friend bool operator==(const DeviceMapping&, const DeviceMapping&) = default;
};

// Worker w on device w.
DeviceMapping IdentityMapping(int workers);

// Cuts `bytes` into stripes in proportion to the weights, each but the last a whole number of
// `granule`s, empty ones left out. Requires: weights are not negative, one is positive; granule is
// positive.
struct LenderWeight {
  DeviceId lender;
  int64_t weight = 1;
  friend bool operator==(const LenderWeight&, const LenderWeight&) = default;
};
std::vector<Stripe> CutStripes(Bytes bytes, const std::vector<LenderWeight>& weights,
                               Bytes granule);

// How many times what passes is there at once, at most.
struct LiveCopies {
  int microbatches = 1;     // between their F and their B (or W)
  int weight_versions = 0;  // older ones
  friend bool operator==(const LiveCopies&, const LiveCopies&) = default;
};
// 1 for kinds that do not pass.
int CopiesOf(GroupKind kind, const LiveCopies& live);

// Bytes of all groups with that choice, what passes counted as often as it is live in its stage.
// Requires: one entry a stage.
Bytes BytesWith(const MemoryPlan& plan, Placement placement, const std::vector<LiveCopies>& live);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MEMORY_PLAN_H_
