#ifndef SIPHON_TESTS_LAUNCH_PROGRAM_TINY_JOB_H_
#define SIPHON_TESTS_LAUNCH_PROGRAM_TINY_JOB_H_

#include <gmock/gmock.h>

#include <map>
#include <string>

#include "tests/launch/program/program_run.h"

namespace siphon {

// A gpt in four stages with dropout, tied embeddings and clipping: 12 steps of a few milliseconds,
// a checkpoint every second one, all of them kept, under <root>/run.
class TinyJobTest : public ProgramTest {
 protected:
  TinyJobTest();
  const std::string& job() const { return job_; }
  std::string TinyJobText() const;
  // The run's checkpoint after `step`; without its last digit for 0.
  std::string CheckpointPath(const std::string& run, int step) const;
  // Its tensors, by name.
  std::map<std::string, std::string> RunCheckpoint(const std::string& run, int step) const;
  // Those of the job trained as one stage in this process, without interruption.
  const std::map<std::string, std::string>& ExpectedCheckpoint(int step);

 private:
  std::string job_;
  std::map<int, std::map<std::string, std::string>> expected_;
};

// The text ends in what `pattern` describes, from the start of a line on.
inline auto EndsWithRegex(const std::string& pattern) {
  return testing::ContainsRegex("(^|\n)" + pattern + "$");
}

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_PROGRAM_TINY_JOB_H_
