#include "launch/process/machine_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace siphon {
namespace {

TEST(MachineMemory, IsNoMoreThanItHas) {
  EXPECT_GT(MachineMemory(), Bytes(0));
  EXPECT_LE(MachineMemory(), Bytes(sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE)));
}

}  // namespace
}  // namespace siphon
