#ifndef SIPHON_TESTS_LAUNCH_PROGRAM_PROGRAM_RUN_H_
#define SIPHON_TESTS_LAUNCH_PROGRAM_PROGRAM_RUN_H_

#include <gtest/gtest.h>
#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/process/process_probe.h"

namespace siphon {

// How a run of a program ended.
struct ProgramEnd {
  int exit_code = -1;  // -1: by a signal
  int signal = 0;
  std::string output;
  std::string errors;
  double seconds = 0;  // from its start
  double seconds_since_last_step =
      0;  // from the last write to <root>/run/metrics.jsonl; 0: none there
};

// Runs the real program with a folder of its own, as a user's shell does, and looks at what is
// left. Every process of a run is known by an entry in its environment.
class ProgramTest : public testing::Test {
 public:
  struct Program {
    std::string path;
    std::vector<std::string> environment;  // "NAME=value", for each of its processes
  };

 protected:
  // Exit code of a child whose `prepare` said no.
  static constexpr int kForbidden = 77;

  struct RunOptions {
    std::vector<std::string> environment;  // "NAME=value", beside the test's own
    // In the child before exec; false: it ends with kForbidden.
    std::function<bool()> prepare;
    // While the program runs; it is waited for afterwards.
    std::function<void(pid_t program)> meanwhile;
    std::string input;  // its standard input
  };

  ProgramTest();
  ~ProgramTest() override;

  const std::string& root() const { return root_; }
  std::string PathOf(const std::string& name) const { return root_ + "/" + name; }
  // Writes <root>/<name> and returns its path.
  std::string WriteFile(const std::string& name, const std::string& text) const;

  // What Siphon() runs from now on; else it is the real program.
  void UseProgram(Program program) { program_ = std::move(program); }
  const Program& program() const { return program_; }

  // Runs `command` in a session of its own until it ends.
  ProgramEnd Run(std::vector<std::string> command, const RunOptions& options);
  ProgramEnd Run(std::vector<std::string> command) { return Run(std::move(command), {}); }
  ProgramEnd Siphon(const std::vector<std::string>& arguments, const RunOptions& options);
  ProgramEnd Siphon(const std::vector<std::string>& arguments) { return Siphon(arguments, {}); }

  // Waits until a process of the run stands still by SIGSTOP; none if the program ends before.
  std::optional<ProcessId> WaitForStopped(pid_t program) const;
  // The run's process that mpirun started as that rank.
  std::optional<ProcessId> ProcessOfRank(int rank) const;
  // The run's process of that name ("mpirun"); 0 when there is none.
  pid_t FindProcess(const std::string& name) const;

  // No process of a run lives and no temporary file is left, within a moment.
  void ExpectNothingLeft() const;
  // Directories of jobs that nobody holds and that were not there when the test began.
  std::vector<std::string> Remains() const;

 private:
  void ReadEnd(int status, ProgramEnd& end) const;
  Program program_ = {SIPHON_PROGRAM, {}};
  std::string root_;
  std::string mark_;
  std::vector<std::string> before_;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_PROGRAM_PROGRAM_RUN_H_
