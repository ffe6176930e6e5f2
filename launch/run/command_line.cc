#include "launch/run/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "launch/config/closest_name.h"
#include "launch/config/load_job_config.h"
#include "launch/run/job_limits.h"
#include "planner/status.h"

namespace siphon {
namespace {

void DescribeTrain(CLI::App& app, TrainArguments* train) {
  CLI::App* command = app.add_subcommand("train", "Train a model by a job file");
  AddJob(command, train);
  AddFormat(command, &train->format);
  command->add_flag("--share_gpu", train->share_gpu,
                    "For tests: CUDA workers share devices where there are fewer of these");
  command->footer(absl::StrCat(
      "Started alone, it starts mpirun with one process a worker; started under mpirun or srun, it "
      "uses\nthat world. SIGINT or SIGUSR1: finish the step, write a checkpoint, exit 4. A second "
      "SIGINT stops at once.\n\nExit codes: 0 done, 1 failure, 2 bad usage or input, 3 does not "
      "fit "
      "in memory, 4 stopped on request,\n5 a worker was lost, 130 second SIGINT.\n\nKeys of the "
      "job "
      "file:\n\n",
      JobConfigHelp(MachineLimits(ModelSource::kJobFile).known)));
}

// CLI11 itself takes what is too large for what is too small or for the largest, and tells limits
// to six digits behind the point.
CLI::Validator WholeNumber(int64_t least, int64_t most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    int64_t number = 0;
    if (absl::SimpleAtoi(text, &number) && least <= number && number <= most) return "";
    return absl::StrCat("'", text, "' is not a whole number from ", least, " to ", most);
  };
  return CLI::Validator(check, absl::StrCat(least, " to ", most));
}

CLI::Validator NumberTo(int most) {
  const auto check = [most](const std::string& text) -> std::string {
    double number = 0;
    if (absl::SimpleAtod(text, &number) && 0 <= number && number <= most) return "";
    return absl::StrCat("'", text, "' is not a number from 0 to ", most);
  };
  return CLI::Validator(check, absl::StrCat("0 to ", most));
}

void DescribeGenerate(CLI::App& app, GenerateArguments* generate) {
  GenerateOptions& options = generate->options;
  CLI::App* command = app.add_subcommand("generate", "Continue a text with a trained gpt");
  command
      ->add_option("--checkpoint", options.checkpoint,
                   "A checkpoint, or a directory of them (the newest is taken)")
      ->required();
  command->add_option("--prompt", options.prompt, "The text to continue")->required();
  command->add_option("--length", options.length, "New tokens (bytes)")
      ->check(WholeNumber(1, int64_t{1} << 30))
      ->capture_default_str();
  command->add_option("--temperature", options.temperature, "0: always the likeliest byte")
      ->check(NumberTo(100))
      ->capture_default_str();
  command->add_option("--top_k", options.top_k, "Draw among so many likeliest; 0: among all")
      ->check(WholeNumber(0, int64_t{1} << 30))
      ->capture_default_str();
  command->add_option("--seed", options.seed, "The same seed gives the same text")
      ->check(WholeNumber(0, std::numeric_limits<int64_t>::max()))
      ->capture_default_str();
  AddFormat(command, &generate->format);
}

void DescribeProfile(CLI::App& app, ProfileArguments* profile) {
  CLI::App* command = app.add_subcommand(
      "profile", "Measure the layers of a job on this machine: times and bytes of each");
  AddJob(command, profile);
  command->add_option("--output", profile->output, "Where the profile goes (YAML)")
      ->type_name("profile.yaml")
      ->required();
  command
      ->add_option("--repetitions", profile->repetitions,
                   "Training steps, of each kind of backward, whose median counts")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  CLI::Option* const calibrate =
      command->add_flag("--calibrate", profile->calibrate,
                        "Without a job: measure the processor (a few seconds) and write a file for "
                        "--device of simulate and out_of_core");
  command->add_option("--threads", profile->threads, "Of a worker, with --calibrate")
      ->check(CLI::Range(1, 1'024))
      ->needs(calibrate)
      ->capture_default_str();
  AddFormat(command, &profile->format);
  command->footer(
      "Every layer runs in this process, with pipeline.threads_per_worker threads, on the job's "
      "first\nsamples. Leave the other cores idle meanwhile.");
}

// --top-k means --top_k; values stay as they are.
std::string NormaliseFlag(const std::string& argument) {
  if (argument.size() < 3 || argument.compare(0, 2, "--") != 0) return argument;
  const size_t end = std::min(argument.find('='), argument.size());
  std::string name = argument.substr(2, end - 2);
  std::replace(name.begin(), name.end(), '-', '_');
  return absl::StrCat("--", name, argument.substr(end));
}

// Ends so that more can follow.
std::string DidYouMean(const std::string& closest) {
  return closest.empty() ? "; " : absl::StrCat("; did you mean '", closest, "'? ");
}

std::vector<std::string> FlagsOf(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back(absl::StrCat("--", name));
  }
  return flags;
}

// "model.layers=8".
bool IsSetting(const std::string& argument) {
  const size_t dot = argument.find('.');
  const size_t equals = argument.find('=');
  return argument[0] != '-' && dot < equals && equals != std::string::npos;
}

// Null when there is none (CLI11's own look-up throws).
CLI::App* FindCommand(CLI::App& app, const std::string& name) {
  for (CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

absl::Status UnknownCommand(const CLI::App& app, const std::string& name) {
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  return absl::InvalidArgumentError(absl::StrCat("unknown command ", QuoteForMessage(name),
                                                 DidYouMean(ClosestName(name, known)),
                                                 "known: ", absl::StrJoin(known, ", ")));
}

absl::Status UsageError(const CLI::App& command, const std::string& name,
                        const CLI::ParseError& error) {
  const std::string program = name.empty() ? "siphon" : absl::StrCat("siphon ", name);
  const std::string prefix = name.empty() ? "" : absl::StrCat(name, ": ");
  const std::vector<std::string> extras = command.remaining();
  if (!extras.empty()) {
    const std::vector<std::string> known = FlagsOf(command);
    const bool takes_settings = std::find(known.begin(), known.end(), "--set") != known.end();
    if (takes_settings && IsSetting(extras[0])) {
      return absl::InvalidArgumentError(absl::StrCat(prefix, "unknown argument ",
                                                     QuoteForMessage(extras[0]),
                                                     "; write --set before each setting"));
    }
    const std::string flag = extras[0].substr(0, extras[0].find('='));
    return absl::InvalidArgumentError(
        absl::StrCat(prefix, "unknown argument ", QuoteForMessage(extras[0]),
                     DidYouMean(ClosestName(flag, known)), "see ", program, " --help"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      prefix, absl::StrReplaceAll(error.what(), {{"\n", " "}}), "; see ", program, " --help"));
}

}  // namespace

absl::StatusOr<ParsedCommand> ParseCommandLine(const std::vector<std::string>& arguments) {
  TrainArguments train;
  GenerateArguments generate;
  ProfileArguments profile;
  CLI::App app("Siphon: pipeline-parallel training on one multi-GPU server", "siphon");
  app.set_version_flag("--version", "siphon " SIPHON_VERSION);
  app.get_formatter()->column_width(34);
  DescribeTrain(app, &train);
  DescribeGenerate(app, &generate);
  DescribeProfile(app, &profile);
  std::map<std::string, RunCommand> others;
  for (const CommandEntry& entry : CommandRegistry()) {
    others[std::string(entry.name)] = entry.add(app);
  }

  if (arguments.empty()) {
    return absl::InvalidArgumentError(
        "no command given; siphon train JOB.yaml trains, siphon --help shows all");
  }
  const std::string& name = arguments[0];
  CLI::App* command = FindCommand(app, name);
  if (command == nullptr && name.rfind('-', 0) != 0) return UnknownCommand(app, name);
  std::vector<std::string> reversed;  // CLI11 takes them last first
  for (const std::string& argument : arguments) reversed.push_back(NormaliseFlag(argument));
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForVersion&) {
    return ParsedCommand(Answered{"siphon " SIPHON_VERSION "\n"});
  } catch (const CLI::CallForHelp&) {
    return ParsedCommand(Answered{command == nullptr ? app.help() : command->help()});
  } catch (const CLI::ParseError& error) {
    if (command == nullptr) return UsageError(app, "", error);
    return UsageError(*command, name, error);
  }
  if (name == "train" && train.job.empty()) {
    return absl::InvalidArgumentError("train: no job file given; siphon train JOB.yaml");
  }
  if (name == "train") return ParsedCommand(train);
  if (name == "generate") return ParsedCommand(generate);
  if (name == "profile" && profile.job.empty() != profile.calibrate) {
    return absl::InvalidArgumentError(
        profile.calibrate
            ? "profile: --calibrate measures the processor and takes no job file; leave one out"
            : "profile: no job file given; siphon profile --config JOB.yaml --output profile.yaml");
  }
  if (name == "profile") return ParsedCommand(profile);
  return ParsedCommand(OtherCommand{others.at(name)});
}

}  // namespace siphon
