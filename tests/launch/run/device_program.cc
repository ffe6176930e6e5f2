// The program with devices for tests (slab_device.h), as a shell runs it:
//
//   device_program train JOB.yaml --set ...
//
// SIPHON_BROKEN_RANK: the one whose device the fake lets break where its own variables say so, none
// of the others. Each rank that ends well says how many copies went from or to memory of the host
// that is not locked, how much memory was freed while others had it open, how often it opened
// memory of others, on which devices it has a context, and how many events it recorded.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/mpi_world.h"
#include "launch/process/exit_codes.h"
#include "launch/run/command_line.h"
#include "launch/run/train_command.h"
#include "pipeline/torch/memory/counting_allocator.h"
#include "tests/launch/run/slab_device.h"
#include "tests/support/fake_cuda/fake_control.h"

namespace siphon {
namespace {

// "1 3"
std::string DevicesWithContexts() {
  std::vector<int> devices;
  const int64_t contexts = FakeCuda::Get("contexts");
  for (int device = 0; device < FakeCuda::Get("devices"); ++device) {
    if ((contexts >> device) % 2 == 1) devices.push_back(device);
  }
  return absl::StrJoin(devices, " ");
}

int RunDeviceProgram(int argc, char** argv) {
  InstallCountingAllocator();
  const auto parsed = ParseCommandLine(std::vector<std::string>(argv + 1, argv + argc));
  if (!parsed.ok() || !std::holds_alternative<TrainArguments>(*parsed)) {
    std::fprintf(stderr, "device_program: %s\n", std::string(parsed.status().message()).c_str());
    return kExitBadInput;
  }
  const JobDevices devices = SlabDevices(SIPHON_CUDA_MODULE);
  const char* const broken = std::getenv("SIPHON_BROKEN_RANK");
  if (broken == nullptr || std::to_string(AnnouncedRank()) != broken) {
    FakeCuda::Set("fail_record", 0);
  }
  const bool is_rank = StartedUnderMpi();
  const int code = TrainCommand(&argc, &argv, std::get<TrainArguments>(*parsed), nullptr, devices);
  if (is_rank) {
    std::fputs(
        absl::StrCat(FakeCuda::Get("pageable"), " copies of memory that is not locked, ",
                     FakeCuda::Get("freed_while_opened"), " freed while others had it open, ",
                     FakeCuda::Get("opens"), " opened, contexts on ", DevicesWithContexts(), ", ",
                     FakeCuda::Get("records"), " events\n")
            .c_str(),
        stderr);
  }
  return code;
}

}  // namespace
}  // namespace siphon

int main(int argc, char** argv) { return siphon::RunDeviceProgram(argc, argv); }
