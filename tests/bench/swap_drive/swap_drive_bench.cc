// How fast tensors go to the drive of a directory and come back, by io_uring and by threads, past
// the page cache and through it: 256 MiB in groups of 8 MiB, out, in, and both at once. Checks
// every byte. Directory: the first argument, or the one for temporary files.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "planner/status.h"
#include "swap/device/cpu_backend.h"
#include "swap/device/nvme_parking.h"
#include "tests/bench/machine_name.h"

namespace siphon {
namespace {

constexpr int kRepeats = 5;
constexpr size_t kGroup = 8 << 20;
constexpr int kGroups = 32;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// One file with room for all groups twice, and the backend over it.
class Drive {
 public:
  explicit Drive(std::unique_ptr<NvmeParking> parking) : parking_(std::move(parking)) {
    CpuBackendOptions options;
    options.links.resize(1);
    options.drive = DriveLink{CopyLinkId(0), [this](CopyLane lane, absl::Span<const CopyPart> all) {
                                return parking_->Move(lane, all);
                              }};
    backend_ = std::make_unique<CpuBackend>(std::move(options));
  }
  // Group by group into that half of the file.
  std::vector<CopyEvent> StartOut(const std::vector<std::byte>& from, int half) {
    std::vector<CopyEvent> events;
    for (int group = 0; group < kGroups; ++group) {
      events.push_back(backend_->StartCopy(
          CopyLane::kOut,
          {{absl::MakeConstSpan(from).subspan(group * kGroup, kGroup), At(half, group), Link()}}));
    }
    return events;
  }
  std::vector<CopyEvent> StartIn(std::vector<std::byte>& to, int half) {
    std::vector<CopyEvent> events;
    for (int group = 0; group < kGroups; ++group) {
      events.push_back(backend_->StartCopy(
          CopyLane::kIn,
          {{At(half, group), absl::MakeSpan(to).subspan(group * kGroup, kGroup), Link()}}));
    }
    return events;
  }
  void Wait(const std::vector<CopyEvent>& events) {
    for (const CopyEvent event : events) {
      SIPHON_CHECK(backend_->Wait(event).ok(), "copies of this bench do not fail");
    }
  }
  std::string Text() const { return parking_->Text(); }

 private:
  static CopyLinkId Link() { return CopyLinkId(0); }
  CopySide<std::byte> At(int half, int group) const {
    return parking_->bytes().subspan((half * kGroups + group) * kGroup, kGroup);
  }
  std::unique_ptr<NvmeParking> parking_;
  std::unique_ptr<CpuBackend> backend_;
};

// GB/s of what `work` moves.
template <typename Work>
double Rate(double groups, const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  return groups * static_cast<double>(kGroup) / 1e9 / time.count();
}

void Measure(const std::string& directory, NvmeIoKind io, NvmeFileOptions::Direct direct) {
  auto parking = NvmeParking::Make({.file = {.directory = directory,
                                             .name = "siphon-bench",
                                             .bytes = Bytes(2 * kGroups * int64_t{kGroup}),
                                             .direct = direct},
                                    .io = io});
  if (!parking.ok()) {
    std::cout << "skipped: " << parking.status().message() << "\n";
    return;
  }
  Drive drive(*std::move(parking));
  std::vector<std::byte> from(kGroups * kGroup), to(from.size());
  for (size_t byte = 0; byte < from.size(); ++byte) from[byte] = static_cast<std::byte>(byte * 31);
  std::vector<double> out, in, both;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    out.push_back(Rate(kGroups, [&] { drive.Wait(drive.StartOut(from, 0)); }));
    in.push_back(Rate(kGroups, [&] { drive.Wait(drive.StartIn(to, 0)); }));
    SIPHON_CHECK(to == from, "copies bring every byte");
    both.push_back(Rate(2 * kGroups, [&] {
      const std::vector<CopyEvent> leaving = drive.StartOut(from, 1);
      drive.Wait(drive.StartIn(to, 0));
      drive.Wait(leaving);
    }));
  }
  std::cout << absl::StrFormat("%-32s out %5.2f GB/s, in %5.2f GB/s, both at once %5.2f GB/s\n",
                               drive.Text(), Median(out), Median(in), Median(both));
}

int Main(const std::string& directory) {
  std::cout << MachineName() << ", drive of " << directory << ", median of " << kRepeats << "\n";
  for (const auto direct :
       {NvmeFileOptions::Direct::kWherePossible, NvmeFileOptions::Direct::kNever}) {
    for (const NvmeIoKind io : {NvmeIoKind::kUring, NvmeIoKind::kThreads}) {
      Measure(directory, io, direct);
    }
  }
  return 0;
}

}  // namespace
}  // namespace siphon

int main(int argc, char** argv) {
  return siphon::Main(argc > 1 ? argv[1] : std::filesystem::temp_directory_path().string());
}
