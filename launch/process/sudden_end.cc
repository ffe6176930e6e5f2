#include "launch/process/sudden_end.h"

#include <unistd.h>
#include <csignal>
#include <cstdlib>

#include <array>
#include <atomic>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "launch/process/process_probe.h"
#include "launch/process/rank_process.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr std::array kCrashes = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// Made beforehand: a signal's handler may take no memory.
struct PreparedWords {
  std::string at_exit;
  std::array<std::string, kCrashes.size()> at_crash;
  std::array<struct sigaction, kCrashes.size()> before;
  int exit_code = 1;
  int rank = 0;
};

std::atomic<const PreparedWords*> prepared_words{nullptr};
static_assert(std::atomic<const PreparedWords*>::is_always_lock_free);

[[noreturn]] void EndWith(const PreparedWords& words, const std::string& text) {
  LetRankZeroReport(words.rank);
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) _exit(words.exit_code);
  _exit(words.exit_code);
}

void AtExit() {
  const PreparedWords* const words = prepared_words.exchange(nullptr);
  if (words != nullptr) EndWith(*words, words->at_exit);
}

void AtCrash(int signal) {
  const PreparedWords* const words = prepared_words.exchange(nullptr);
  while (words == nullptr) pause();  // another thread is speaking already, and ends all
  size_t index = 0;
  while (kCrashes[index] != signal) ++index;
  EndWith(*words, words->at_crash[index]);
}

}  // namespace

SuddenEndGuard::SuddenEndGuard(const LastWords& words) {
  // Registered before what is loaded under guard registers its own, so that it is called after.
  static const int registered = std::atexit(AtExit);
  SIPHON_CHECK(registered == 0, "there is room for one more function at exit");
  auto* const prepared = new PreparedWords;
  prepared->at_exit =
      absl::StrCat(words.who, " ended the program by exit(); ", words.instead, "\n");
  for (size_t index = 0; index < kCrashes.size(); ++index) {
    prepared->at_crash[index] =
        absl::StrCat(words.who, " crashed: ", DescribeSignal(kCrashes[index]), "\n");
  }
  prepared->exit_code = words.exit_code;
  prepared->rank = words.rank;
  const PreparedWords* const other = prepared_words.exchange(prepared);
  SIPHON_CHECK(other == nullptr, "one guard lives at a time");
  struct sigaction action = {};
  action.sa_handler = AtCrash;
  sigemptyset(&action.sa_mask);
  for (size_t index = 0; index < kCrashes.size(); ++index) {
    sigaction(kCrashes[index], &action, &prepared->before[index]);
  }
}

SuddenEndGuard::~SuddenEndGuard() {
  const PreparedWords* const words = prepared_words.exchange(nullptr);
  if (words == nullptr) return;  // another thread is speaking
  for (size_t index = 0; index < kCrashes.size(); ++index) {
    sigaction(kCrashes[index], &words->before[index], nullptr);
  }
  delete words;
}

}  // namespace siphon
