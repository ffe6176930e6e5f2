#ifndef SIPHON_TESTS_SWAP_DEVICE_SCRATCH_DRIVE_H_
#define SIPHON_TESTS_SWAP_DEVICE_SCRATCH_DRIVE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "planner/units.h"
#include "swap/device/nvme_file.h"
#include "tests/planner/dice.h"

namespace siphon {

// A directory of a test's own on the disk of its machine, removed at the end.
class ScratchDrive {
 public:
  ScratchDrive() {
    path_ = testing::TempDir() + "/siphon-drive-XXXXXX";
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~ScratchDrive() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDrive(const ScratchDrive&) = delete;
  ScratchDrive& operator=(const ScratchDrive&) = delete;
  const std::string& path() const { return path_; }
  bool empty() const { return std::filesystem::is_empty(path_); }
  NvmeFileOptions File(int64_t bytes, NvmeFileOptions::Direct direct =
                                          NvmeFileOptions::Direct::kWherePossible) const {
    return {.directory = path_, .name = "parked", .bytes = Bytes(bytes), .direct = direct};
  }

 private:
  std::string path_;
};

inline std::vector<std::byte> DiceBytes(Dice& dice, size_t bytes) {
  std::vector<std::byte> random(bytes);
  for (std::byte& byte : random) byte = static_cast<std::byte>(dice.Roll(0, 255));
  return random;
}

}  // namespace siphon

#endif  // SIPHON_TESTS_SWAP_DEVICE_SCRATCH_DRIVE_H_
