#ifndef SIPHON_LAUNCH_PROCESS_SUDDEN_END_H_
#define SIPHON_LAUNCH_PROCESS_SUDDEN_END_H_

#include <string>

namespace siphon {

// What is said, and the exit code, when code of somebody else ends this process in the middle of
// something: by exit(), which would pass for success, or by a crash.
struct LastWords {
  std::string who;      // "siphon: job.yaml:3:12: model.library: plugin libmine.so"
  std::string instead;  // "return an error instead"
  int exit_code = 1;
  int rank = 0;  // 0, or one that leaves the report to rank 0 (LetRankZeroReport)
};

// While it lives, exit() and the signals of a crash (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) put
// one line on standard error, "<who> ended the program by exit(); <instead>" or "<who> crashed:
// signal 11 (Segmentation fault)", and end the process with that code. _exit() goes by unseen.
//
// Thread-safety: one lives at a time in a process.
class SuddenEndGuard {
 public:
  explicit SuddenEndGuard(const LastWords& words);
  ~SuddenEndGuard();
  SuddenEndGuard(const SuddenEndGuard&) = delete;
  SuddenEndGuard& operator=(const SuddenEndGuard&) = delete;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_SUDDEN_END_H_
