#include "launch/process/ask_child.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace siphon {
namespace {

// Behind the answer: a child that dies on the way has not answered.
constexpr char kEnd = '\0';

[[noreturn]] void AnswerTo(int pipe, std::string text) {
  text.push_back(kEnd);
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t bytes = write(pipe, text.data() + written, text.size() - written);
    if (bytes <= 0) _exit(1);
    written += static_cast<size_t>(bytes);
  }
  _exit(0);
}

std::optional<std::string> ReadAnswer(int pipe, int patience_ms) {
  std::string text;
  char buffer[512];
  for (;;) {
    pollfd waiting{.fd = pipe, .events = POLLIN, .revents = 0};
    const int ready = poll(&waiting, 1, patience_ms);
    if (ready < 0 && errno == EINTR) continue;  // a signal that another one answers
    if (ready <= 0) return std::nullopt;
    const ssize_t bytes = read(pipe, buffer, sizeof(buffer));
    if (bytes <= 0) return std::nullopt;
    text.append(buffer, static_cast<size_t>(bytes));
    if (text.back() != kEnd) continue;
    text.pop_back();
    return text;
  }
}

}  // namespace

std::optional<std::string> AskChild(Nanos patience, const std::function<std::string()>& answer) {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  const pid_t child = fork();
  if (child == 0) AnswerTo(ends[1], answer());
  close(ends[1]);
  std::optional<std::string> text;
  if (child > 0) text = ReadAnswer(ends[0], static_cast<int>(patience.value / 1'000'000));
  close(ends[0]);
  if (child > 0) {
    kill(child, SIGKILL);  // it has answered, or it hangs
    waitpid(child, nullptr, 0);
  }
  return text;
}

}  // namespace siphon
