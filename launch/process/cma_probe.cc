#include "launch/process/cma_probe.h"

#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdint>

namespace siphon {
namespace {

constexpr uint64_t kPattern = 0x0123'4567'89ab'cdef;
uint64_t probed_word = 0;

pid_t WaitFor(pid_t child, int* status) {
  pid_t got;
  do {
    got = waitpid(child, status, 0);
  } while (got < 0 && errno == EINTR);
  return got;
}

}  // namespace

bool CrossMemoryAttachWorks() {
  int ready[2];
  if (pipe(ready) != 0) return false;
  const pid_t owner = fork();
  if (owner == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // as Open MPI's ranks do
    probed_word = kPattern;
    const char byte = 1;
    const ssize_t written = write(ready[1], &byte, 1);
    for (;;) {
      if (written != 1) _exit(1);
      pause();
    }
  }
  char byte = 0;
  bool works = owner > 0 && read(ready[0], &byte, 1) == 1;
  if (works) {
    const pid_t reader = fork();
    if (reader == 0) {
      uint64_t word = 0;
      const iovec local = {&word, sizeof word};
      const iovec remote = {&probed_word, sizeof probed_word};
      const ssize_t got = process_vm_readv(owner, &local, 1, &remote, 1, 0);
      _exit(got == sizeof word && word == kPattern ? 0 : 1);
    }
    int status = 0;
    works = reader > 0 && WaitFor(reader, &status) == reader && WIFEXITED(status) &&
            WEXITSTATUS(status) == 0;
  }
  if (owner > 0) {
    kill(owner, SIGKILL);
    WaitFor(owner, nullptr);
  }
  close(ready[0]);
  close(ready[1]);
  return works;
}

}  // namespace siphon
