#ifndef SIPHON_LAUNCH_RUN_RECORD_RUN_WARNINGS_H_
#define SIPHON_LAUNCH_RUN_RECORD_RUN_WARNINGS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "launch/run/job/prepare_job.h"

namespace siphon {

// What a run warns of: shown as it comes, and said again at the end.
//
// Thread-safety: one thread.
class RunWarnings {
 public:
  // Those for the end; outlives this.
  explicit RunWarnings(std::vector<std::string>* at_end) : at_end_(*at_end) {}

  // Shows what there is so far, and from now on each as it comes.
  void ShowBy(std::function<void(const std::string&)> show);
  void Add(std::string warning);

  // Where the job asks for validations and its data have none.
  void NoteValidation(const PreparedJob& prepared);
  // The first loss that is infinite or no number.
  void NoteLoss(int64_t step, double loss);
  // A full disk makes one at every save: at the end the last of them stands for all.
  void NoteFailedSave(int64_t step, const absl::Status& status);

 private:
  std::vector<std::string>& at_end_;
  std::function<void(const std::string&)> show_;
  bool noted_loss_ = false;
  int64_t failed_saves_ = 0;
  size_t failed_save_ = 0;  // its place at the end, if there was one
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_RECORD_RUN_WARNINGS_H_
