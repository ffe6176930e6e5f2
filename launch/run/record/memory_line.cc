#include "launch/run/record/memory_line.h"

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/run/job/name_of_place.h"
#include "launch/run/parking/parking_room.h"
#include "planner/steps_on_host.h"

namespace siphon {
namespace {

// " with worker 2", " on the drive of /scratch"
std::string AtPlace(const PreparedJob& prepared, const ParkingPlace& place) {
  if (place.tier == Placement::kNvmeSwap) {
    return absl::StrCat(" on the drive of ", DriveDirectory(prepared.job));
  }
  return absl::StrCat(" with ", NameOfPlace(prepared.plan_text.mapping, place));
}

// "worker 0 parks up to 1.50 MiB with worker 2 and 20.0 KiB with the host"
std::string Parked(const PreparedJob& prepared, size_t worker) {
  std::vector<std::string> places;
  for (const auto& [place, bytes] : prepared.parking[worker].bytes) {
    places.push_back(absl::StrCat(FormatBytes(bytes), AtPlace(prepared, place)));
  }
  return absl::StrCat("worker ", worker, " parks up to ", absl::StrJoin(places, " and "));
}

// "2 of 4 layers of stage 1", " (1 of them in part)" behind it where not all tensors go
std::string Recomputed(const PreparedJob& prepared, size_t stage) {
  int layers = 0;
  int in_part = 0;
  for (const PlannedGroup& planned : prepared.plan.memory.stages[stage].groups) {
    if (planned.choice.placement != Placement::kRecompute) continue;
    layers += planned.group.layers.end - planned.group.layers.begin;
    if (planned.group.first_tensors > 0) ++in_part;
  }
  if (layers == 0) return "";
  const StageRange& all = prepared.plan.partition.stages[stage];
  return absl::StrCat(layers, " of ", all.end - all.begin, " layers of stage ", stage,
                      in_part > 0 ? absl::StrCat(" (", in_part, " of them in part)") : "");
}

// What a refusal or a slow link would leave without a place, by name.
std::string WithoutSecondChoice(const PreparedJob& prepared) {
  std::set<std::string> names;
  const bool drive = !prepared.job.memory.nvme_directory.empty();
  for (size_t stage = 0; stage < prepared.plan.memory.stages.size(); ++stage) {
    const StagePlan& planned = prepared.plan.memory.stages[stage];
    for (const PlannedGroup& each : planned.groups) {
      const auto& [group, choice] = each;
      if (!IsSwap(choice.placement) || choice.second_choice != Placement::kKeep) continue;
      if (StepsOnHost(planned, each)) continue;
      names.insert(absl::StrCat(GroupKindName(group.kind), " of stage ", stage, " with ",
                                PlacementName(choice.placement)));
    }
    const bool may_leave = absl::c_any_of(planned.groups, [&](const PlannedGroup& each) {
      return StepsOnHost(planned, each) && each.choice.second_choice != Placement::kKeep;
    });
    if (planned.update == UpdatePlace::kHost && !may_leave) {
      names.insert(absl::StrCat("optimizer steps of stage ", stage, " on the host",
                                drive ? "" : " (a memory.nvme_directory would be one)"));
    }
  }
  if (names.empty()) return "";
  return absl::StrCat("; without a second choice: ", absl::StrJoin(names, ", "));
}

}  // namespace

std::string MemoryLine(const PreparedJob& prepared) {
  std::vector<std::string> parts;
  for (size_t worker = 0; worker < prepared.parking.size(); ++worker) {
    if (!prepared.parking[worker].bytes.empty()) parts.push_back(Parked(prepared, worker));
  }
  for (size_t worker = 0; worker < prepared.host_steps.size(); ++worker) {
    if (prepared.host_steps[worker] == Bytes(0)) continue;
    parts.push_back(absl::StrCat("worker ", worker, " has its optimizer steps on the host, with ",
                                 FormatBytes(prepared.host_steps[worker]), " there"));
  }
  std::vector<std::string> again;
  for (size_t stage = 0; stage < prepared.plan.memory.stages.size(); ++stage) {
    if (std::string layers = Recomputed(prepared, stage); !layers.empty()) again.push_back(layers);
  }
  if (!again.empty()) {
    parts.push_back(
        absl::StrCat("activations are dropped and computed again: ", absl::StrJoin(again, ", ")));
  }
  if (parts.empty()) return "";
  std::string line;
  if (const auto& misfit = prepared.kept_whole; misfit.has_value()) {
    const auto [needed, may_hold] = FormatApart(misfit->needed, misfit->capacity);
    line = absl::StrCat("with everything kept worker ", misfit->worker.value, " would need ",
                        needed, ", and may hold ", may_hold, "; ");
  }
  const std::string& file = prepared.job.memory.plan;
  absl::StrAppend(&line, file.empty() ? "to fit into memory.capacity, "
                                      : absl::StrCat("as ", file, " has it, "));
  return absl::StrCat(line, absl::StrJoin(parts, ", "), "; a step should take ",
                      FormatNanos(prepared.plan_text.predicted.step_time),
                      WithoutSecondChoice(prepared));
}

}  // namespace siphon
