#ifndef SIPHON_TESTS_LAUNCH_COMMANDS_SIMULATE_PLAN_FIXTURE_H_
#define SIPHON_TESTS_LAUNCH_COMMANDS_SIMULATE_PLAN_FIXTURE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/launch/commands/run_command.h"

namespace siphon {

// siphon simulate; each call returns the exit code, and what was printed is in out_ and error_.
class SimulatePlanFixture : public CommandTest {
 protected:
  int Run(absl::string_view plan, std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), {"--plan", WriteFile("plan.txt", plan)});
    return RunWith(std::move(flags));
  }

  int RunWith(std::vector<std::string> flags) {
    const CommandEnd end = RunRegisteredCommand("simulate", std::move(flags));
    out_ = end.out;
    error_ = WithoutDirectory(end.err);
    return end.code;
  }

  std::string out_;
  std::string error_;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_COMMANDS_SIMULATE_PLAN_FIXTURE_H_
