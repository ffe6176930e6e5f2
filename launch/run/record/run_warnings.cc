#include "launch/run/record/run_warnings.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launch/output/figure_text.h"

namespace siphon {

void RunWarnings::ShowBy(std::function<void(const std::string&)> show) {
  show_ = std::move(show);
  for (const std::string& warning : at_end_) show_(warning);
}

void RunWarnings::Add(std::string warning) {
  if (show_) show_(warning);
  at_end_.push_back(std::move(warning));
}

void RunWarnings::NoteValidation(const PreparedJob& prepared) {
  const TrainConfig& train = prepared.job.train;
  if (train.validate_every == 0 || !prepared.plan.evaluation.programs.empty()) return;
  Add(absl::StrCat("no step is validated: data.validation_fraction leaves ",
                   CountText(prepared.data.validation_samples, "sample"),
                   " for that, and a batch (train.global_batch) has ", train.global_batch));
}

void RunWarnings::NoteLoss(int64_t step, double loss) {
  if (std::isfinite(loss) || std::exchange(noted_loss_, true)) return;
  Add(absl::StrCat("the loss of step ", step, " is ", loss,
                   ": nothing is learned from there on; train.learning_rate may be too high"));
}

void RunWarnings::NoteFailedSave(int64_t step, const absl::Status& status) {
  const std::string warning =
      absl::StrCat("no checkpoint after step ", step, ": ", status.message());
  if (++failed_saves_ == 1) {
    failed_save_ = at_end_.size();
    return Add(warning);
  }
  if (show_) show_(warning);
  at_end_[failed_save_] =
      absl::StrCat(failed_saves_, " checkpoints could not be written, the last: ", warning);
}

}  // namespace siphon
