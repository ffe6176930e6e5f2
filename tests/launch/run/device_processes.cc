#include "tests/launch/run/device_processes.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "launch/config/load_job_config.h"
#include "launch/run/trainer.h"
#include "tests/launch/run/checkpoint_bits.h"
#include "tests/launch/run/device_job.h"
#include "tests/support/fake_cuda/fake_control.h"

namespace siphon {

void DeviceProcesses::SetUp() { ASSERT_TRUE(FakeCuda::IsThere()) << "LD_PRELOAD the fakes"; }

DeviceProcesses::End DeviceProcesses::Run(const Start& start) const {
  const std::string mpirun =
      absl::StrCat("mpirun -np ", start.workers,
                   " --oversubscribe --bind-to none --mca pml ob1 --mca btl self,vader --mca "
                   "mpi_yield_when_idle 1 --mca btl_vader_single_copy_mechanism none ",
                   geteuid() == 0 ? "--allow-run-as-root " : "");
  const std::string command =
      absl::StrCat(start.environment, " SIPHON_FAKE_CUDA_DIR=", FakeCuda::Directory(),
                   " SIPHON_FAKE_CUDA_MEMORY=", kDeviceMemory, " TMPDIR=", folder_,
                   " OMPI_MCA_btl_vader_backing_directory=", folder_,
                   " OMPI_MCA_osc_sm_backing_directory=", folder_, " ",
                   start.launcher == Launcher::kMpirun ? mpirun : "", SIPHON_DEVICE_PROGRAM,
                   " train ", folder_, "/job.yaml ", start.options, " 2>&1");
  End end;
  FILE* const pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  while (pipe != nullptr && fgets(buffer.data(), buffer.size(), pipe) != nullptr) {
    end.said += buffer.data();
  }
  const int status = pipe == nullptr ? -1 : pclose(pipe);
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  return end;
}

void DeviceProcesses::JobFile(int workers, const std::string& strategy, int percent) const {
  std::filesystem::remove_all(folder_ + "/cuda");
  std::filesystem::create_directories(folder_);
  const JobConfig job = PlainJob(Job(workers), "cuda", folder_);
  std::ofstream(folder_ + "/job.yaml") << WriteJobConfig(Tight(job, strategy, percent));
}

std::map<std::string, std::string> DeviceProcesses::Trained() const {
  return CheckpointBits(folder_ + "/cuda/checkpoints/step-00000004");
}

std::map<std::string, std::string> DeviceProcesses::OnCpu() const {
  const auto outcome = Trainer(PlainJob(Job(4), "cpu", folder_)).Train();
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return outcome.ok() ? CheckpointBits(outcome->last_checkpoint)
                      : std::map<std::string, std::string>();
}

int DeviceProcesses::Count(const std::string& words, const std::string& text) {
  int count = 0;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace siphon
