#ifndef SIPHON_LAUNCH_PROCESS_MPIRUN_OUTPUT_H_
#define SIPHON_LAUNCH_PROCESS_MPIRUN_OUTPUT_H_

#include <functional>
#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace siphon {

// "exited with code 7".
std::string ExitedWith(int code);

// Splits what comes out of mpirun's standard error: the ranks' own text goes on at once, unfinished
// lines included; mpirun's framed notices about a job that failed are held back, because our report
// says it better, and read for how a rank's process ended.
class MpirunOutput {
 public:
  explicit MpirunOutput(std::function<void(absl::string_view)> pass_on);

  void Add(absl::string_view text);
  void Finish();  // no more will come

  const std::string& held() const { return held_; }
  // "killed by signal 9 (Killed)", "exited with code 7"; empty when mpirun did not say.
  std::string HowRankEnded(int rank) const;
  bool WasKilled(int rank) const;                        // by a signal, as mpirun says
  std::string HowOthersEnded(int rank) const;            // the same of all other ranks, a line each
  bool at_line_start() const { return at_line_start_; }  // of what was passed on

 private:
  void PassOn(absl::string_view text);
  void EndOfLine();
  void EndOfFrame();

  std::function<void(absl::string_view)> pass_on_;
  std::string line_;   // what is not decided yet of the current line
  std::string frame_;  // the current frame so far, its first line included
  std::string held_;
  struct End {
    std::string how;
    bool killed = false;
  };
  std::map<int, End> ends_;  // by rank
  bool passing_ = false;     // the rest of the current line goes on
  bool at_line_start_ = true;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_MPIRUN_OUTPUT_H_
