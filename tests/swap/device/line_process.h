#ifndef SIPHON_TESTS_SWAP_DEVICE_LINE_PROCESS_H_
#define SIPHON_TESTS_SWAP_DEVICE_LINE_PROCESS_H_

#include <fcntl.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "planner/status.h"
#include "tests/support/fake_cuda/fake_control.h"

namespace siphon {

// A process of a test, which sees the same devices, with lines to and from it.
class LineProcess {
 public:
  LineProcess(const std::string& program, const std::vector<int64_t>& arguments) {
    int to[2];
    int from[2];
    // Nobody else's children keep the ends open.
    SIPHON_CHECK(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0, "there are pipes");
    if (FakeCuda::IsThere()) setenv("SIPHON_FAKE_CUDA_DIR", FakeCuda::Directory().c_str(), 1);
    std::vector<std::string> words = {program};
    for (const int64_t argument : arguments) words.push_back(std::to_string(argument));
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      execv(program.c_str(), pointers.data());
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    input_ = to[1];
    output_ = fdopen(from[0], "r");
  }
  ~LineProcess() {
    if (pid_ > 0) End();
    fclose(output_);
  }
  LineProcess(const LineProcess&) = delete;
  LineProcess& operator=(const LineProcess&) = delete;

  void Say(const std::string& what) const {
    const std::string line = what + "\n";
    SIPHON_CHECK(write(input_, line.data(), line.size()) == static_cast<ssize_t>(line.size()),
                 "the process reads");
  }
  // Its next line; "" when it has ended.
  std::string Line() const {
    char line[1024] = {};
    if (fgets(line, sizeof(line), output_) == nullptr) return "";
    return std::string(absl::StripSuffix(line, "\n"));
  }
  // The number that it answers.
  uint64_t Ask(const std::string& what) const {
    Say(what);
    uint64_t answer = 0;
    SIPHON_CHECK(absl::SimpleAtoi(Line(), &answer), "the process answers with a number");
    return answer;
  }
  // Its exit code, -1 for a signal.
  int End() {
    close(input_);
    int status = 0;
    waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void Kill() {
    kill(pid_, SIGKILL);
    End();
  }

 private:
  pid_t pid_ = 0;
  int input_ = -1;
  FILE* output_ = nullptr;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_SWAP_DEVICE_LINE_PROCESS_H_
