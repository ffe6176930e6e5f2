#include "launch/generate_command.h"

#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "launch/process/exit_codes.h"

namespace siphon {
namespace {

// What a model makes up may be a terminal's control codes.
std::string ForTerminal(absl::string_view text) {
  std::string shown;
  for (const char c : text) {
    const bool harmless =
        c == '\n' || c == '\t' || !absl::ascii_iscntrl(static_cast<unsigned char>(c));
    absl::StrAppend(&shown, harmless ? absl::string_view(&c, 1) : "\xEF\xBF\xBD");
  }
  return shown;
}

}  // namespace

int GenerateCommand(const GenerateArguments& arguments) {
  const bool as_text = arguments.format == OutputFormat::kText;
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  std::string continuation;
  bool started = false;
  const auto emit = [&](absl::string_view piece) {
    absl::StrAppend(&continuation, piece);
    if (!as_text) return;
    if (!started) std::fputs(arguments.options.prompt.c_str(), stdout);
    started = true;
    const std::string shown = terminal ? ForTerminal(piece) : std::string(piece);
    std::fwrite(shown.data(), 1, shown.size(), stdout);
    std::fflush(stdout);
  };
  const absl::Status status = Generate(arguments.options, emit);
  if (!status.ok()) {
    std::fprintf(stderr, "siphon: %s\n", std::string(status.message()).c_str());
    return ExitCodeOf(status);
  }
  if (as_text) {
    std::fputc('\n', stdout);
  } else {
    const nlohmann::ordered_json result = {{"prompt", arguments.options.prompt},
                                           {"continuation", continuation}};
    // A model of bytes may end in the middle of a character.
    const auto replace = nlohmann::ordered_json::error_handler_t::replace;
    std::puts(result.dump(2, ' ', false, replace).c_str());
  }
  return kExitDone;
}

}  // namespace siphon
