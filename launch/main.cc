// The siphon program.

#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include "launch/generate_command.h"
#include "launch/process/end_output.h"
#include "launch/process/exit_codes.h"
#include "launch/run/command_line.h"
#include "launch/run/layer_profile/profile_command.h"
#include "launch/run/train_command.h"
#include "pipeline/torch/memory/counting_allocator.h"

namespace {

int Run(int argc, char** argv) {
  const auto parsed = siphon::ParseCommandLine(std::vector<std::string>(argv + 1, argv + argc));
  if (!parsed.ok()) {
    std::fprintf(stderr, "siphon: %s\n", std::string(parsed.status().message()).c_str());
    return siphon::kExitBadInput;
  }
  if (const auto* train = std::get_if<siphon::TrainArguments>(&*parsed)) {
    return siphon::TrainCommand(&argc, &argv, *train, nullptr);
  }
  if (const auto* generate = std::get_if<siphon::GenerateArguments>(&*parsed)) {
    return siphon::GenerateCommand(*generate);
  }
  if (const auto* profile = std::get_if<siphon::ProfileArguments>(&*parsed)) {
    return siphon::ProfileCommand(*profile);
  }
  if (const auto* other = std::get_if<siphon::OtherCommand>(&*parsed)) return other->run();
  std::fputs(std::get<siphon::Answered>(*parsed).text.c_str(), stdout);
  return siphon::kExitDone;
}

}  // namespace

int main(int argc, char** argv) {
  siphon::InstallCountingAllocator();
  return siphon::EndOutput(Run(argc, argv));
}
