// A job without a model, to be killed: "parent" supervises, "rank" is what it starts under mpirun.
// Ranks go through the actions of a step together, over a window of shared memory as real workers
// do, and one of them may be told to fail.
//
//   fault_rank parent WORKERS STEPS ROOT[,ROOT] WINDOW_MIB RANK:STEP:ACTION:FAULT ...
//   fault_rank rank STEPS PARENT_PID RANK:STEP:ACTION:FAULT ...

#include <mpi.h>
#include <sched.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launch/process/board.h"
#include "launch/process/exit_codes.h"
#include "launch/process/heartbeat.h"
#include "launch/process/rank_process.h"
#include "launch/process/supervise.h"

namespace siphon {
namespace {

using std::chrono::milliseconds;

constexpr Nanos kHeartbeatTimeout(2'000'000'000);

// What the parent hands to all ranks: longer than what a buffer takes at once.
const std::string& Plan() {
  static const auto* const plan = new std::string(100'000, 'p');
  return *plan;
}

bool HasPlan() {
  std::ifstream file(SupervisedPlanPath());
  return std::string(std::istreambuf_iterator<char>(file), {}) == Plan();
}

int Number(const std::string& text) {
  int number = 0;
  if (!absl::SimpleAtoi(text, &number)) std::exit(2);
  return number;
}

struct Fault {
  int rank = 0;
  int step = 0;
  std::string action;
  std::string kind;
};

// What all ranks see. One step ends for all of them in the same way.
struct Shared {
  std::atomic<int64_t> arrived;
  std::atomic<int32_t> stop;
};

class Rank {
 public:
  Rank(int steps, pid_t parent, std::vector<Fault> faults)
      : steps_(steps), parent_(parent), faults_(std::move(faults)) {}

  int Run() {
    DieWithParent();
    if (!HasPlan()) return std::fprintf(stderr, "no plan\n"), 1;
    rank_ = Number(std::getenv("OMPI_COMM_WORLD_RANK"));
    absl::StatusOr<std::unique_ptr<Board>> board = OpenSupervisedBoard();
    if (!board.ok()) return std::fprintf(stderr, "%s\n", board.status().ToString().c_str()), 1;
    board_ = std::move(*board);
    Meet("load");
    board_->Enter(rank_);
    InstallRankSignalHandlers(board_.get());
    heartbeat_ = std::make_unique<Heartbeat>(board_.get(), rank_,
                                             Heartbeat::Options{.timeout = kHeartbeatTimeout},
                                             [this](const Board::Failure& failure) {
                                               if (!ignore_failures_)
                                                 MPI_Abort(MPI_COMM_WORLD, failure.exit_code);
                                             });
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    void* base = nullptr;
    MPI_Win window;
    MPI_Win_allocate_shared(rank_ == 0 ? 4096 : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base,
                            &window);
    MPI_Aint size = 0;
    int unit = 0;
    MPI_Win_shared_query(window, 0, &size, &unit, &base);
    shared_ = static_cast<Shared*>(base);
    const bool stopped = Train();
    board_->SetAction(rank_, "");
    board_->SetState(rank_, stopped ? Board::State::kStopped : Board::State::kFinished);
    Meet("leave");
    heartbeat_.reset();
    MPI_Win_free(&window);
    MPI_Finalize();
    InstallRankSignalHandlers(nullptr);
    return 0;
  }

 private:
  // True if it was told to stop.
  bool Train() {
    for (step_ = 1; step_ <= steps_; ++step_) {
      for (const char* action : {"0F0", "0B0", "0STEP"}) Act(action);
      if (rank_ == 0) shared_->stop = board_->stop_requested() && !never_stop_ ? 1 : 0;
      Together();
      const bool stop = shared_->stop != 0;
      if (rank_ == 0) board_->SetNote(Board::Note::kSteps, absl::StrCat(step_));
      if (stop || step_ % 5 == 0) {
        Act("writing a checkpoint");
        if (rank_ == 0)
          board_->SetNote(Board::Note::kCheckpoint, absl::StrCat("ckpt/step-", step_));
      }
      if (stop) return true;
    }
    return false;
  }

  void Act(const std::string& action) {
    board_->SetAction(rank_, action);
    Meet(action);
    std::this_thread::sleep_for(milliseconds(2));
    Together();
  }

  // Waits for all ranks as a transport does: yielding, and asking whether they live.
  void Together() {
    round_ += ranks_;
    shared_->arrived.fetch_add(1);
    while (shared_->arrived.load() < round_) {
      if (!heartbeat_->Check().ok() && !ignore_failures_) pause();  // the heartbeat's thread aborts
      sched_yield();
    }
  }

  void Meet(const std::string& action) {
    for (const Fault& fault : faults_) {
      if (fault.rank == rank_ && fault.step == step_ && fault.action == action) Do(fault.kind);
    }
  }

  void Do(const std::string& kind) {
    const std::map<std::string, std::function<void()>> faults = {
        {"kill", [] { raise(SIGKILL); }},
        {"segv", [] { raise(SIGSEGV); }},
        {"stop", [] { raise(SIGSTOP); }},
        {"exit0", [] { _exit(0); }},
        {"exit7", [] { _exit(7); }},
        {"fail", [&] { Leave(absl::InternalError("injected:\nforward of stage 0")); }},
        {"bad_input", [&] { Leave(absl::InvalidArgumentError("injected: data is empty")); }},
        {"no_room", [&] { Leave(absl::ResourceExhaustedError("injected"), kExitDoesNotFit); }},
        {"deaf", [&] { ignore_failures_ = true; }},
        {"stubborn", [&] { never_stop_ = true; }},
        {"child",
         [] {
           if (fork() == 0)
             for (;;) pause();
         }},
        {"kill_mpirun", [] { kill(getppid(), SIGKILL); }},
        {"kill_parent", [&] { kill(parent_, SIGKILL); }},
        {"usr1_parent", [&] { kill(parent_, SIGUSR1); }},
        {"usr1_mpirun", [&] { kill(getppid(), SIGUSR1); }},
        {"term_mpirun", [] { kill(getppid(), SIGTERM); }},
        {"term_parent", [&] { kill(parent_, SIGTERM); }},
        {"int_parent", [&] { kill(parent_, SIGINT); }},
        {"int_group", [&] { kill(-parent_, SIGINT); }},
    };
    const auto found = faults.find(kind);
    if (found == faults.end()) std::abort();
    found->second();
  }

  [[noreturn]] void Leave(const absl::Status& cause, std::optional<int> code = std::nullopt) {
    board_->Fail(rank_, cause, code);
    for (;;) pause();  // the heartbeat's thread aborts
  }

  const int steps_;
  const pid_t parent_;
  const std::vector<Fault> faults_;
  int rank_ = 0;
  int ranks_ = 0;
  int step_ = 0;
  int64_t round_ = 0;
  std::atomic<bool> ignore_failures_{false};
  bool never_stop_ = false;
  std::unique_ptr<Board> board_;
  std::unique_ptr<Heartbeat> heartbeat_;
  Shared* shared_ = nullptr;
};

int Main(const std::vector<std::string>& arguments) {
  if (arguments[1] == "parent") {
    SuperviseOptions options;
    options.workers = Number(arguments[2]);
    options.command = {arguments[0], "rank", arguments[3], absl::StrCat(getpid())};
    options.command.insert(options.command.end(), arguments.begin() + 6, arguments.end());
    options.roots = absl::StrSplit(arguments[4], ',');
    options.window_bytes = Bytes(int64_t{Number(arguments[5])} << 20);
    options.plan = Plan();
    options.heartbeat_timeout = kHeartbeatTimeout;
    options.resume_command = "siphon train job.yaml --set checkpoint.resume=auto";
    return Supervise(options);
  }
  std::vector<Fault> faults;
  for (size_t i = 4; i < arguments.size(); ++i) {
    const std::vector<std::string> parts = absl::StrSplit(arguments[i], ':');
    faults.push_back({Number(parts[0]), Number(parts[1]), parts[2], parts[3]});
  }
  return Rank(Number(arguments[2]), Number(arguments[3]), faults).Run();
}

}  // namespace
}  // namespace siphon

int main(int argc, char** argv) { return siphon::Main({argv, argv + argc}); }
