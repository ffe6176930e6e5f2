#include "pipeline/step_agreement.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipeline/transport/all_gather.h"
#include "planner/status.h"

namespace siphon {
namespace {

// torch.nn.utils.clip_grad_norm_ has the same constant in the same place.
constexpr float kClippingEpsilon = 1e-6f;

StageId LastStage(const WorkerLayout& layout) {
  return StageId(static_cast<int>(layout.worker_of_stage.size()) - 1);
}

// How many floats each worker brings: the norms of its stages, and the losses if it has the last
// stage.
std::vector<int> FloatsOfWorkers(const WorkerLayout& layout, int microbatches) {
  std::vector<int> floats(static_cast<size_t>(WorkerCount(layout)), 0);
  for (size_t stage = 0; stage < layout.worker_of_stage.size(); ++stage) {
    floats[layout.worker_of_stage[stage].value] += layout.owned_parameters.at(stage);
  }
  floats[WorkerOf(layout, LastStage(layout)).value] += microbatches;
  return floats;
}

absl::StatusOr<std::vector<float>> MyFloats(WorkerId me, const WorkerLayout& layout,
                                            int microbatches, const StepContribution& mine) {
  std::vector<float> floats;
  for (size_t index = 0; index < layout.worker_of_stage.size(); ++index) {
    if (layout.worker_of_stage[index] != me) continue;
    const auto found = mine.norms.find(StageId(static_cast<int>(index)));
    const std::vector<float> norms =
        found == mine.norms.end() ? std::vector<float>{} : found->second;
    const int owned = layout.owned_parameters.at(index);
    if (static_cast<int>(norms.size()) != owned) {
      return absl::InternalError(absl::StrCat("stage ", index, " gives ", norms.size(),
                                              " gradient norms and owns ", owned, " parameters"));
    }
    floats.insert(floats.end(), norms.begin(), norms.end());
  }
  if (WorkerOf(layout, LastStage(layout)) != me) return floats;
  if (static_cast<int>(mine.losses.size()) != microbatches) {
    return absl::InternalError(absl::StrCat("the last stage gives ", mine.losses.size(),
                                            " losses for ", microbatches, " microbatches"));
  }
  floats.insert(floats.end(), mine.losses.begin(), mine.losses.end());
  return floats;
}

absl::StatusOr<std::vector<std::vector<float>>> GatherFloats(WorkerId me,
                                                             const std::vector<int>& counts,
                                                             std::vector<float> mine,
                                                             Transport* transport) {
  std::vector<std::vector<float>> everyone(counts.size());
  if (counts.size() == 1) {
    everyone[0] = std::move(mine);
    return everyone;
  }
  std::vector<int64_t> sizes;
  for (const int count : counts) sizes.push_back(count * static_cast<int64_t>(sizeof(float)));
  const ConstPart bytes(reinterpret_cast<const std::byte*>(mine.data()),
                        mine.size() * sizeof(float));
  SIPHON_ASSIGN_OR_RETURN(const auto gathered, AllGather(*transport, me, sizes, bytes));
  for (size_t worker = 0; worker < gathered.size(); ++worker) {
    everyone[worker].resize(gathered[worker].size() / sizeof(float));
    if (gathered[worker].empty()) continue;
    std::memcpy(everyone[worker].data(), gathered[worker].data(), gathered[worker].size());
  }
  return everyone;
}

}  // namespace

absl::StatusOr<StepAgreement> AgreeOnStep(WorkerId me, const WorkerLayout& layout, int microbatches,
                                          const StepContribution& mine, Transport* transport) {
  SIPHON_ASSIGN_OR_RETURN(std::vector<float> floats, MyFloats(me, layout, microbatches, mine));
  SIPHON_ASSIGN_OR_RETURN(
      const std::vector<std::vector<float>> everyone,
      GatherFloats(me, FloatsOfWorkers(layout, microbatches), std::move(floats), transport));
  // A worker's floats are in the order of its stages, which need not be neighbours.
  std::vector<size_t> read(everyone.size(), 0);
  std::vector<float> norms;
  for (size_t stage = 0; stage < layout.worker_of_stage.size(); ++stage) {
    const size_t worker = static_cast<size_t>(layout.worker_of_stage[stage].value);
    for (int parameter = 0; parameter < layout.owned_parameters.at(stage); ++parameter) {
      norms.push_back(everyone[worker].at(read[worker]++));
    }
  }
  const std::vector<float>& last = everyone[WorkerOf(layout, LastStage(layout)).value];
  return StepAgreement{.gradient_norm = NormOfNorms(norms),
                       .losses = std::vector<float>(last.end() - microbatches, last.end())};
}

double NormOfNorms(absl::Span<const float> norms) {
  double squares = 0;
  for (const float norm : norms) squares += static_cast<double>(norm) * static_cast<double>(norm);
  return std::sqrt(squares);
}

float ClippingFactor(double gradient_norm, double clip_norm) {
  if (clip_norm <= 0) return 1.0f;
  const float norm = static_cast<float>(gradient_norm);
  return std::min(1.0f, static_cast<float>(clip_norm) / (norm + kClippingEpsilon));
}

}  // namespace siphon
