#ifndef SIPHON_LAUNCH_COMMANDS_COMMAND_H_
#define SIPHON_LAUNCH_COMMANDS_COMMAND_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace CLI {
class App;
}

namespace siphon {

enum class OutputFormat { kText, kJson };

// Runs a command whose flags were parsed; returns the exit code.
using RunCommand = std::function<int()>;

// A command that needs no LibTorch, MPI or device: `add` adds it with its flags to the program.
// To add one: a file beside this one, a line in commands.def.
struct CommandEntry {
  absl::string_view name;
  RunCommand (*add)(CLI::App& app);
};
const std::vector<CommandEntry>& CommandRegistry();

// --format text|json.
void AddFormat(CLI::App* command, OutputFormat* format);

// What every command that reads a job file is given.
struct JobArguments {
  std::string job;                     // path
  std::vector<std::string> overrides;  // "section.key=value"
};
// The job file (--config JOB.yaml, or just its path) and --set.
void AddJob(CLI::App* command, JobArguments* arguments);

// Prints "siphon: <message>" to standard error and returns the exit code of the contract.
int ReportError(const absl::Status& status);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_COMMAND_H_
