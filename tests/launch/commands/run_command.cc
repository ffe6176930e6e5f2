#include "tests/launch/commands/run_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "launch/commands/command.h"

namespace siphon {

CommandEnd RunRegisteredCommand(absl::string_view name, std::vector<std::string> flags) {
  // Plans that a test finds are not kept for the one who runs it.
  setenv("XDG_CACHE_HOME", "/proc/nowhere", /*overwrite=*/0);
  CLI::App app;
  RunCommand run;
  for (const CommandEntry& entry : CommandRegistry()) {
    if (entry.name == name) run = entry.add(app);
  }
  flags.insert(flags.begin(), std::string(name));
  std::reverse(flags.begin(), flags.end());  // CLI11 takes them last first
  app.parse(std::move(flags));
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  CommandEnd end;
  end.code = run();
  end.out = testing::internal::GetCapturedStdout();
  end.err = testing::internal::GetCapturedStderr();
  return end;
}

CommandTest::CommandTest() {
  std::string pattern = (std::filesystem::temp_directory_path() / "siphon-command-XXXXXX").string();
  directory_ = mkdtemp(pattern.data());
}

CommandTest::~CommandTest() { std::filesystem::remove_all(directory_); }

std::string CommandTest::WriteFile(absl::string_view name, absl::string_view text) const {
  const std::string path = absl::StrCat(directory_, "/", name);
  std::ofstream(path) << text;
  return path;
}

std::string CommandTest::FileText(absl::string_view name) const {
  std::ifstream stream(absl::StrCat(directory_, "/", name));
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string CommandTest::WithoutDirectory(absl::string_view text) const {
  return absl::StrReplaceAll(text, {{directory_, "DIR"}});
}

}  // namespace siphon
