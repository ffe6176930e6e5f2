#include "planner/training_plan.h"

#include <cstddef>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace siphon {
namespace {

// Elements of all parameters that the stage holds; one that several of its layers use counts once.
int64_t ParametersHeld(const ModelSpec& model, const StageRange& range) {
  absl::flat_hash_set<absl::string_view> seen;
  int64_t count = 0;
  for (int layer = range.begin; layer < range.end; ++layer) {
    for (const ParameterSpec& parameter : model.layers[layer].parameters) {
      if (!seen.insert(parameter.name).second) continue;
      count += ElementCount({DType::kFloat32, parameter.shape});
    }
  }
  return count;
}

void AppendPartition(const TrainingPlan& plan, const ModelSpec& model, std::string& text) {
  absl::StrAppend(&text, "partition\n");
  for (size_t stage = 0; stage < plan.partition.stages.size(); ++stage) {
    const StageRange& range = plan.partition.stages[stage];
    const int64_t held = ParametersHeld(model, range);
    absl::StrAppend(&text, "  stage ", stage, " on worker ",
                    plan.training.worker_of_stage[stage].value, ": layers ", range.begin, " to ",
                    range.end - 1, ", ", model.layers[range.begin].name);
    if (range.end - range.begin > 1) {
      absl::StrAppend(&text, " .. ", model.layers[range.end - 1].name);
    }
    absl::StrAppend(&text, ", ", held, " parameters (",
                    FormatBytes(Bytes(held * ElementBytes(DType::kFloat32))), " in fp32)\n");
  }
}

void AppendSharedParameters(const TrainingPlan& plan, std::string& text) {
  if (plan.shared_parameters.empty()) return;
  absl::StrAppend(&text, "parameters that several stages use\n");
  for (const SharedParameter& shared : plan.shared_parameters) {
    const auto append_stage = [](std::string* out, StageId stage) {
      absl::StrAppend(out, stage.value);
    };
    absl::StrAppend(&text, "  ", shared.name, ": stages ",
                    absl::StrJoin(shared.stages, ", ", append_stage), "\n");
  }
}

}  // namespace

std::string ToString(const TrainingPlan& plan, const ModelSpec& model) {
  std::string text;
  absl::StrAppend(&text, "model ", model.options.kind, ": ", model.layers.size(), " layers, ",
                  ParameterCount(model), " parameters\n");
  absl::StrAppend(&text, "schedule ", plan.schedule_name, ": ", plan.training.programs.size(),
                  " workers, ", StageCount(plan.training), " stages, ", plan.training.microbatches,
                  " microbatches of ", plan.microbatch, ", global batch ", plan.global_batch, "\n");
  AppendPartition(plan, model, text);
  AppendSharedParameters(plan, text);
  absl::StrAppend(&text, "training, one line a worker\n", ToString(plan.training));
  absl::StrAppend(&text, "evaluation, one line a worker\n", ToString(plan.evaluation));
  return text;
}

}  // namespace siphon
