#include "launch/commands/command.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "launch/process/exit_codes.h"

namespace siphon {

#define SIPHON_COMMAND(name, add) RunCommand add(CLI::App& app);
#include "launch/commands/commands.def"
#undef SIPHON_COMMAND

const std::vector<CommandEntry>& CommandRegistry() {
  static const auto* const registry = new std::vector<CommandEntry>{
#define SIPHON_COMMAND(name, add) {name, add},
#include "launch/commands/commands.def"
#undef SIPHON_COMMAND
  };
  return *registry;
}

void AddFormat(CLI::App* command, OutputFormat* format) {
  const auto set = [format](const std::string& name) {
    *format = name == "json" ? OutputFormat::kJson : OutputFormat::kText;
  };
  command
      ->add_option_function<std::string>("--format", set,
                                         "text or json (to standard output); default text")
      ->check(CLI::IsMember({"text", "json"}).description(""))
      ->type_name("text|json");
}

void AddJob(CLI::App* command, JobArguments* arguments) {
  command
      ->add_option("job,--config", arguments->job, "The job file (YAML); --config JOB is the same")
      ->type_name("JOB.yaml");
  command
      ->add_option("--set", arguments->overrides,
                   "Override a key of the job file: section.key=value (repeatable)")
      ->allow_extra_args(false)
      ->option_text("KEY=VALUE");
}

int ReportError(const absl::Status& status) {
  std::fprintf(stderr, "siphon: %s\n", std::string(status.message()).c_str());
  return ExitCodeOf(status);
}

}  // namespace siphon
