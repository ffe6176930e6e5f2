#include "planner/weight_stashes.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace siphon {
namespace {

constexpr int kNone = WeightStashes::kNone;

bool GoesByWeights(const Action& action) {
  return IsCompute(action.kind) || action.kind == ActionKind::kRecompute;
}

// A version from the UPDATE that has made it on.
struct Version {
  WeightStash stash;
  bool replaced = false;
  bool used_behind = false;
};

// The versions of one stage.
class StageVersions {
 public:
  // With kOneGroupBehind: the microbatches of the stage's UPDATEs, ascending.
  void Order(std::vector<MicrobatchId> updates) {
    std::sort(updates.begin(), updates.end());
    updates_ = std::move(updates);
    one_group_behind_ = true;
  }

  // The version that the action of the microbatch goes by; kNone if it is not made yet.
  int Use(const Action& action, int place) {
    const int newest = static_cast<int>(versions_.size()) - 1;
    if (action.kind == ActionKind::kForward) {
      version_of_[action.microbatch] =
          one_group_behind_ ? std::min(newest, GroupBefore(action.microbatch)) : newest;
    }
    const auto found = version_of_.find(action.microbatch);
    if (found == version_of_.end()) return kNone;
    Version& version = versions_[found->second];
    if (version.replaced) {
      if (!std::exchange(version.used_behind, true)) version.stash.first_use = place;
      version.stash.last_use = place;
    }
    return version.replaced ? found->second : kNone;
  }

  // Returns the version that it replaces.
  int Update(const Action& action, int place) {
    Version& replaced = versions_.back();
    replaced.replaced = true;
    replaced.stash.stage = action.stage;
    replaced.stash.update = action.microbatch;
    replaced.stash.begin = place;
    versions_.push_back({.stash = {.born = place}});
    return static_cast<int>(versions_.size()) - 2;
  }

  const std::vector<Version>& versions() const { return versions_; }

 private:
  // The version that the UPDATE two groups before has made; the first two groups have the initial
  // one.
  int GroupBefore(MicrobatchId microbatch) const {
    const auto group =
        std::lower_bound(updates_.begin(), updates_.end(), microbatch) - updates_.begin();
    return std::max(static_cast<int>(group) - 1, 0);
  }

  bool one_group_behind_ = false;
  std::vector<MicrobatchId> updates_;
  std::vector<Version> versions_ = {Version()};
  absl::flat_hash_map<MicrobatchId, int> version_of_;
};

bool HasUpdate(const std::vector<Action>& program) {
  return std::any_of(program.begin(), program.end(),
                     [](const Action& action) { return action.kind == ActionKind::kUpdate; });
}

absl::flat_hash_map<StageId, StageVersions> Open(const Schedule& schedule,
                                                 const std::vector<Action>& program) {
  absl::flat_hash_map<StageId, StageVersions> stages;
  absl::flat_hash_map<StageId, std::vector<MicrobatchId>> updates;
  for (const Action& action : program) {
    stages.try_emplace(action.stage);
    if (action.kind == ActionKind::kUpdate) updates[action.stage].push_back(action.microbatch);
  }
  if (schedule.weight_rule != WeightRule::kOneGroupBehind) return stages;
  for (auto& [stage, versions] : stages) versions.Order(updates[stage]);
  return stages;
}

auto NameOf(const WeightStash& stash) { return std::make_tuple(stash.stage, stash.update); }

}  // namespace

int WeightStashes::Find(StageId stage, MicrobatchId update) const {
  const auto name = std::make_tuple(stage, update);
  const auto found = std::lower_bound(
      stashes.begin(), stashes.end(), name,
      [](const WeightStash& stash, const auto& wanted) { return NameOf(stash) < wanted; });
  if (found == stashes.end() || NameOf(*found) != name) return kNone;
  return static_cast<int>(found - stashes.begin());
}

WeightStashes FindWeightStashes(const Schedule& schedule, WorkerId worker) {
  WeightStashes result;
  const std::vector<Action>& program = schedule.programs[worker.value];
  if (!HasUpdate(program)) return result;
  absl::flat_hash_map<StageId, StageVersions> stages = Open(schedule, program);
  std::vector<int> version_of_place(program.size(), kNone);
  for (int place = 0; place < static_cast<int>(program.size()); ++place) {
    const Action& action = program[place];
    StageVersions& versions = stages.find(action.stage)->second;
    if (GoesByWeights(action)) version_of_place[place] = versions.Use(action, place);
    if (action.kind == ActionKind::kUpdate)
      version_of_place[place] = versions.Update(action, place);
  }
  for (const auto& [stage, versions] : stages) {
    for (const Version& version : versions.versions()) {
      if (version.used_behind) result.stashes.push_back(version.stash);
    }
  }
  std::sort(result.stashes.begin(), result.stashes.end(),
            [](const WeightStash& a, const WeightStash& b) { return NameOf(a) < NameOf(b); });
  result.of_place.assign(program.size(), kNone);
  for (size_t place = 0; place < program.size(); ++place) {
    const int version = version_of_place[place];
    if (version == kNone) continue;
    const StageId stage = program[place].stage;
    const WeightStash& stash = stages.find(stage)->second.versions()[version].stash;
    result.of_place[place] = result.Find(stage, stash.update);
  }
  return result;
}

}  // namespace siphon
