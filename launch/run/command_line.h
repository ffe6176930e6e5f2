#ifndef SIPHON_LAUNCH_RUN_COMMAND_LINE_H_
#define SIPHON_LAUNCH_RUN_COMMAND_LINE_H_

#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/commands/command.h"
#include "launch/run/generate.h"

namespace siphon {

struct TrainArguments : JobArguments {
  OutputFormat format = OutputFormat::kText;
  bool share_gpu = false;  // several workers on one CUDA device
};

struct GenerateArguments {
  GenerateOptions options;
  OutputFormat format = OutputFormat::kText;
};

struct ProfileArguments : JobArguments {
  std::string output;      // path of the profile
  int repetitions = 11;    // whose median counts
  bool calibrate = false;  // the machine instead of a job's layers
  int threads = 1;         // of the calibration
  OutputFormat format = OutputFormat::kText;
};

// The command line was answered already (--help, --version): this text goes to standard output,
// exit code 0.
struct Answered {
  std::string text;
};

// One of the commands without LibTorch (launch/commands).
struct OtherCommand {
  RunCommand run;
};

using ParsedCommand =
    std::variant<TrainArguments, GenerateArguments, ProfileArguments, OtherCommand, Answered>;

// Parses `siphon <command> ...`. Words in flags may be joined by '-' as well as '_'.
// Errors: InvalidArgument for everything else, in one line; unknown commands and flags with the
// nearest known one, commands that are planned and not built yet by name.
absl::StatusOr<ParsedCommand> ParseCommandLine(const std::vector<std::string>& arguments);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_COMMAND_LINE_H_
