#include "launch/process/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>

namespace siphon {
namespace {

// Where Linux says what a container may have, by both versions of control groups; "max", or a
// number beyond any machine, where it may have all.
constexpr const char* kLimits[] = {"/sys/fs/cgroup/memory.max",
                                   "/sys/fs/cgroup/memory/memory.limit_in_bytes"};

}  // namespace

Bytes MachineMemory() {
  Bytes memory(sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
  for (const char* const path : kLimits) {
    std::ifstream file(path);
    int64_t limit = 0;
    if (file >> limit && limit > 0) memory = std::min(memory, Bytes(limit));
  }
  return memory;
}

}  // namespace siphon
