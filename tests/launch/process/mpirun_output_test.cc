#include "launch/process/mpirun_output.h"

#include <string>

#include "gtest/gtest.h"
#include "launch/process/mpirun_process.h"

namespace siphon {
namespace {

const std::string kBorder(74, '-');

// Words of Open MPI 4.1.4 after a rank was killed.
const std::string kKilled =
    kBorder +
    "\nPrimary job  terminated normally, but 1 process returned\na non-zero "
    "exit code. Per user-direction, the job has been aborted.\n" +
    kBorder + "\n" + kBorder +
    "\nmpirun noticed that process rank 2 with PID 0 on node vm exited on "
    "signal 9 (Killed).\n" +
    kBorder + "\n";
// And after one ended with a code.
const std::string kExited =
    kBorder +
    "\nmpirun detected that one or more processes exited with non-zero status, thus causing\nthe "
    "job to be terminated. The first process to do so was:\n\n  Process name: [[17601,1],2]\n  "
    "Exit code:    7\n" +
    kBorder + "\n";

class Output : public testing::Test {
 protected:
  std::string passed_;
  MpirunOutput output_{
      [this](absl::string_view text) { passed_.append(text.data(), text.size()); }};
};

TEST_F(Output, PassesOnUnfinishedLinesAtOnce) {
  output_.Add("[====");
  EXPECT_EQ(passed_, "");  // may become a line of mpirun's own
  output_.Add("\rstep 1");
  output_.Add("\rstep 2");
  EXPECT_EQ(passed_, "");
  output_.Add("\n\rstep 3");
  EXPECT_EQ(passed_, "[====\rstep 1\rstep 2\n\rstep 3");
  EXPECT_FALSE(output_.at_line_start());
}

TEST_F(Output, HoldsNoticesOfTheEndAndReadsThem) {
  output_.Add("before\n" + kKilled + "after\n");
  output_.Finish();
  EXPECT_EQ(passed_, "before\nafter\n");
  EXPECT_EQ(output_.held(), kKilled);
  EXPECT_EQ(output_.HowRankEnded(2), "killed by signal 9 (Killed)");
  EXPECT_TRUE(output_.WasKilled(2));
  EXPECT_EQ(output_.HowRankEnded(1), "");
  EXPECT_FALSE(output_.WasKilled(1));
  EXPECT_EQ(output_.HowOthersEnded(1), "  mpirun saw rank 2: killed by signal 9 (Killed)\n");
}

TEST_F(Output, HoldsBackLibeventsComplaintAboutARankThatIsGone) {
  const std::string complaint =
      "[warn] Epoll MOD(1) on fd 27 failed. Old events were 6; read change was 0 (none); write "
      "change was 2 (del); close change was 0 (none): Bad file descriptor\n";
  output_.Add("before\n" + complaint + "[warn] something else\n");
  output_.Finish();
  EXPECT_EQ(passed_, "before\n[warn] something else\n");
  EXPECT_EQ(output_.held(), complaint);
}

TEST_F(Output, DoesNotCareHowThePipeCutsIt) {
  for (const char byte : "before\n-\n" + kExited + "- after\n") {
    output_.Add(absl::string_view(&byte, 1));
  }
  output_.Finish();
  EXPECT_EQ(passed_, "before\n-\n- after\n");
  EXPECT_EQ(output_.HowRankEnded(2), "exited with code 7");
}

TEST_F(Output, PassesOnOtherNoticesAndWhatLooksLikeOne) {
  const std::string notice = kBorder + "\nThere are not enough slots\n" + kBorder + "\n";
  output_.Add(notice);
  EXPECT_EQ(passed_, notice);
  output_.Add(kBorder + "\na table of a worker\n");
  output_.Finish();
  EXPECT_EQ(passed_, notice + kBorder + "\na table of a worker\n");
}

TEST_F(Output, HoldsWhatMpirunSaysAboutItsNotices) {
  const std::string own =
      "[vm:7] 3 more processes have sent help message help-mpi-api.txt / mpi-abort\n"
      "[vm:7] [[14600,0],0] ORTE_ERROR_LOG: Out of resource in file show_help.c at line 501\n";
  output_.Add(own + "[vm:7] a log line\n");
  EXPECT_EQ(passed_, "[vm:7] a log line\n");
  EXPECT_EQ(output_.held(), own);
}

TEST(MpirunCommand, HasWhatTheMachineNeedsThenTheUsersOptionsThenTheProgram) {
  const std::vector<std::string> command = MpirunCommand(
      "mpirun", 4, {.root = true, .cross_memory_attach = false, .job_directory = "/j"},
      {"--report-bindings"}, {"/bin/siphon", "train", "a job.yaml"});
  std::string text;
  for (const std::string& word : command) text += word + "\n";
  EXPECT_EQ(text,
            "mpirun\n-np\n4\n--allow-run-as-root\n--oversubscribe\n--mca\nmpi_yield_when_idle\n1\n"
            "--bind-to\nnone\n--mca\nodls_base_num_threads\n0\n--mca\nplm\nisolated\n"
            "--mca\npml\nob1\n--mca\nbtl\n"
            "self,vader\n--mca\nbtl_vader_single_copy_mechanism\nnone\n"
            "--mca\norte_tmpdir_base\n/j\n--mca\nbtl_vader_backing_directory\n/j\n"
            "--mca\nosc_sm_backing_directory\n/j\n--mca\nshmem_mmap_backing_file_base_dir\n/j\n"
            "-x\nSIPHON_BOARD\n-x\nSIPHON_JOB_DIRECTORY\n-x\nSIPHON_LAUNCHER_PID\n"
            "--report-bindings\n/bin/siphon\ntrain\na job.yaml\n");
}

TEST(MpirunProcess, NamesAProgramThatIsNotThere) {
  EXPECT_EQ(MpirunProcess::Start({"/none/mpirun"}, {}).status(),
            absl::NotFoundError("starting /none/mpirun: No such file or directory (Debian and "
                                "Ubuntu have it in openmpi-bin)"));
}

}  // namespace
}  // namespace siphon
