#include "planner/plan_text.h"

#include <array>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/plan_keys.h"

namespace siphon {
namespace {

struct Unit {
  absl::string_view name;
  int64_t size;
};

constexpr std::array<Unit, 4> kTimes = {
    {{"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}}};
constexpr std::array<Unit, 4> kRates = {
    {{"GB/s", 1'000'000'000}, {"MB/s", 1'000'000}, {"kB/s", 1'000}, {"B/s", 1}}};
constexpr std::array<Unit, 4> kSizes = {
    {{"GiB", int64_t{1} << 30}, {"MiB", int64_t{1} << 20}, {"KiB", int64_t{1} << 10}, {"B", 1}}};

// All digits, in the largest unit that leaves something before the point: 12345678 ns is
// "12.345678ms".
std::string AllDigits(int64_t value, const std::array<Unit, 4>& units) {
  for (const Unit& unit : units) {
    if (value < unit.size && unit.size > 1) continue;
    std::string text = absl::StrCat(value / unit.size);
    if (const int64_t rest = value % unit.size; rest != 0) {
      std::string digits = absl::StrCat(rest);
      const size_t width = absl::StrCat(unit.size).size() - 1;
      digits.insert(0, width - digits.size(), '0');
      digits.erase(digits.find_last_not_of('0') + 1);
      absl::StrAppend(&text, ".", digits);
    }
    return absl::StrCat(text, unit.name);
  }
  return "";  // the last unit takes every value
}

std::string Text(Nanos time) { return AllDigits(time.value, kTimes); }
std::string Text(BytesPerSecond rate) { return AllDigits(rate.value, kRates); }
// In the largest unit that divides it: binary fractions have too many digits.
std::string Text(Bytes bytes) {
  for (const Unit& unit : kSizes) {
    if (bytes.value != 0 && bytes.value % unit.size == 0) {
      return absl::StrCat(bytes.value / unit.size, unit.name);
    }
  }
  return "0B";
}

void AppendLine(std::string& text, absl::string_view key, absl::string_view value) {
  absl::StrAppend(&text, absl::StrFormat("  %-20s%s\n", absl::StrCat(key, ":"), value));
}

void AppendPrograms(std::string& text, absl::string_view section, const Schedule& schedule) {
  absl::StrAppend(&text, "\n", section, "\n");
  for (int worker = 0; worker < WorkerCount(schedule); ++worker) {
    absl::StrAppend(&text, "  worker ", worker, ": ",
                    absl::StrJoin(CellTexts(schedule.programs[worker]), " "), "\n");
  }
}

void AppendJob(std::string& text, const PlanText& plan) {
  absl::StrAppend(&text, "\njob\n");
  AppendLine(text, kModelKey, plan.model);
  AppendLine(text, kScheduleKey, plan.schedule);
  AppendLine(text, kMicrobatchKey, absl::StrCat(plan.microbatch));
  AppendLine(text, kGlobalBatchKey, absl::StrCat(plan.global_batch));
  if (plan.training.replicas != 1) {
    AppendLine(text, kReplicasKey, absl::StrCat(plan.training.replicas));
  }
  if (plan.training.weight_rule == WeightRule::kOneGroupBehind) {
    AppendLine(text, kWeightRuleKey, kOneGroupBehindWord);
  }
  AppendLine(text, kCostsKey, plan.costs);
  if (plan.link_latency.value > 0) AppendLine(text, kLinkLatencyKey, Text(plan.link_latency));
  if (plan.link_rate.value > 0) AppendLine(text, kLinkRateKey, Text(plan.link_rate));
  if (plan.copy_rate.value > 0) AppendLine(text, kCopyRateKey, Text(plan.copy_rate));
  if (plan.message_room > 0) AppendLine(text, kMessageRoomKey, absl::StrCat(plan.message_room));
  if (!plan.cores_together.empty()) {
    AppendLine(text, kCoresTogetherKey, absl::StrJoin(plan.cores_together, ", "));
  }
}

void AppendStage(std::string& text, size_t index, const PlanStage& stage) {
  absl::StrAppend(&text, "\nstage ", index, "\n");
  AppendLine(text, kWorkerKey, absl::StrCat(stage.worker.value));
  AppendLine(text, kLayersKey, absl::StrCat(stage.layers.begin, " to ", stage.layers.end - 1));
  if (!stage.names.empty()) AppendLine(text, kNamesKey, stage.names);
  for (const CostTimeKey& key : kCostTimes) {
    if (key.only_if_known && stage.cost.*key.member == Nanos(0)) continue;
    AppendLine(text, key.name, Text(stage.cost.*key.member));
  }
  for (const CostSizeKey& key : kCostSizes) {
    AppendLine(text, key.name, Text(stage.cost.*key.member));
  }
}

void AppendWorkers(std::string& text, const std::vector<PlanWorker>& workers) {
  for (size_t worker = 0; worker < workers.size(); ++worker) {
    if (workers[worker] == PlanWorker{}) continue;
    absl::StrAppend(&text, "\nworker ", worker, "\n");
    if (workers[worker].capacity.value > 0) {
      AppendLine(text, kCapacityKey, Text(workers[worker].capacity));
    }
    if (workers[worker].communication.value > 0) {
      AppendLine(text, kCommunicationKey, Text(workers[worker].communication));
    }
  }
}

}  // namespace

std::string ToString(const PlanText& plan) {
  std::string text = absl::StrCat(
      kFirstLine,
      "\n# Read by siphon simulate --plan FILE. What stands behind a # is a comment.\n");
  if (plan.costs == kUnitCosts) {
    absl::StrAppend(&text, "# Nothing was measured or calculated: F, I and W take ",
                    Text(kUnitTime), " each, B both.\n");
  }
  AppendJob(text, plan);
  AppendWorkers(text, plan.workers);
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    AppendStage(text, stage, plan.stages[stage]);
  }
  if (!plan.shared_parameters.empty()) {
    absl::StrAppend(&text, "\n", kSharedSection, "\n");
    for (const PlanSharing& shared : plan.shared_parameters) {
      const auto append_stage = [](std::string* out, StageId stage) {
        absl::StrAppend(out, stage.value);
      };
      absl::StrAppend(&text, "  ", shared.parameter, ": ",
                      absl::StrJoin(shared.stages, ", ", append_stage), "\n");
    }
  }
  AppendPrograms(text, kTrainingSection, plan.training);
  if (!plan.evaluation.programs.empty()) {
    AppendPrograms(text, kEvaluationSection, plan.evaluation);
  }
  return text;
}

}  // namespace siphon
