#ifndef SIPHON_TESTS_LAUNCH_COMMANDS_RUN_COMMAND_H_
#define SIPHON_TESTS_LAUNCH_COMMANDS_RUN_COMMAND_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace siphon {

// What a command of launch/commands printed, and its exit code.
struct CommandEnd {
  int code = -1;
  std::string out;
  std::string err;
};

// Runs the command of that name with these flags, in this process.
CommandEnd RunRegisteredCommand(absl::string_view name, std::vector<std::string> flags);

// A test with a directory of its own.
class CommandTest : public testing::Test {
 protected:
  CommandTest();
  ~CommandTest() override;

  // Writes <directory>/<name> with this text; its path.
  std::string WriteFile(absl::string_view name, absl::string_view text) const;
  std::string FileText(absl::string_view name) const;
  // `text` with "DIR" for the directory.
  std::string WithoutDirectory(absl::string_view text) const;

  std::string directory_;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_COMMANDS_RUN_COMMAND_H_
