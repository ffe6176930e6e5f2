#include "launch/run/rank.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "launch/mpi_world.h"
#include "launch/output/start_log.h"
#include "launch/plan_job/parking_region.h"
#include "launch/plan_job/plan_rings.h"
#include "launch/process/board.h"
#include "launch/process/board_relay.h"
#include "launch/process/exit_codes.h"
#include "launch/process/failure_report.h"
#include "launch/process/heartbeat.h"
#include "launch/process/inject_fault.h"
#include "launch/process/rank_process.h"
#include "launch/run/cuda_machine.h"
#include "launch/run/hold_places.h"
#include "launch/run/job/predicted_peaks.h"
#include "launch/run/nccl_memory.h"
#include "launch/run/parking/lending.h"
#include "launch/run/parking/parking_room.h"
#include "launch/run/parking/throttle_messages.h"
#include "launch/run/place_workers.h"
#include "launch/run/record/outcome_json.h"
#include "launch/run/run_worker.h"
#include "launch/run/seat/coordinate.h"
#include "launch/run/shared_board.h"
#include "launch/run/shared_directory.h"
#include "planner/status.h"

namespace siphon {
namespace {

// A few periods of a relay.
constexpr std::chrono::milliseconds kToTellOtherHosts(300);

// Each rank becomes the worker whose server its host is.
absl::Status PlaceRanks(const PreparedJob& prepared, MpiWorld& world) {
  const Topology& topology = prepared.plan_text.topology;
  if (ServerCount(topology) == 1) return absl::OkStatus();
  std::vector<int> server_of_worker;
  for (int worker = 0; worker < world.size(); ++worker) {
    server_of_worker.push_back(ServerOf(topology, DeviceOfWorker(prepared, WorkerId(worker))));
  }
  const auto workers = PlaceWorkers(server_of_worker, world.host_of_rank());
  if (!workers.ok()) {
    return ConfigError(
        prepared.job, "topology.servers",
        absl::StrCat("is ", prepared.job.topology.servers, ": ", workers.status().message()));
  }
  return world.Renumber((*workers)[world.rank()].value);
}

// On the board, from where all ranks end: what all workers know of one of them is for that one to
// say.
void DeclareOwn(Board& board, int rank, const absl::Status& status) {
  const std::optional<int> culprit = CulpritOf(status);
  if (culprit.has_value() && *culprit != rank) return;
  absl::string_view message = status.message();
  const std::string me = absl::StrCat("worker ", rank, ": ");
  while (absl::ConsumePrefix(&message, me)) {
    // once by whom it happened to and once by all who agreed on it; the report names it anyway
  }
  board.Fail(rank, absl::Status(status.code(), message), ExitCodeOfRun(status));
}

// One rank's way through a job, once MPI and the board stand.
class Rank {
 public:
  Rank(const PreparedJob& prepared, MpiWorld& world, Board& board, const DeviceOpener& open)
      : prepared_(prepared), world_(world), board_(board), faults_(world.rank()), open_(open) {}

  absl::StatusOr<RunOutcome> Run(const LivenessCheck& check) {
    SIPHON_RETURN_IF_ERROR(CheckCheckpointsAreShared(prepared_.job, world_));
    WorkerSeat seat{.me = WorkerId(world_.rank())};
    SIPHON_RETURN_IF_ERROR(OpenDevice(seat));
    SIPHON_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, MakeTransport(seat, check));
    SIPHON_ASSIGN_OR_RETURN(seat.lent, Lending());
    transport = ThrottleMessages(prepared_, std::move(transport), seat.lent);
    seat.transport = transport.get();
    seat.stop_requested = [this] { return board_.stop_requested(); };
    seat.at_action = [this](const Action& action) { return Show(ToString(action)); };
    seat.at_phase = [this](const std::string& phase) { return Show(phase); };
    seat.at_failure = [this](const absl::Status& failure) {
      DeclareOwn(board_, world_.rank(), failure);
    };
    seat.at_progress = [this](int64_t step, const std::string& checkpoint) {
      faults_.set_step(step);
      if (!world_.first_on_host()) return;
      board_.SetNote(Board::Note::kSteps, absl::StrCat(step));
      if (!checkpoint.empty()) board_.SetNote(Board::Note::kCheckpoint, checkpoint);
    };
    seat.more_shared = [this](Bytes bytes) { return world_.SharedWindow(bytes); };
    seat.slowness = [this](const std::string& link) { return faults_.SlownessOf(link); };
    seat.host_is_full = [this] { return faults_.FillsHost(); };
    seat.at_chunk = [this] { return faults_.AtChunk(); };
    return RunWorker(prepared_, seat);
  }

 private:
  absl::Status Show(const std::string& place) {
    board_.SetAction(world_.rank(), place);
    return faults_.At(place);
  }

  // The CUDA device that this worker computes on, before anything else is made there: NCCL and
  // copies are ordered behind its stream.
  absl::Status OpenDevice(WorkerSeat& seat) {
    if (prepared_.job.pipeline.backend != "cuda") return absl::OkStatus();
    SIPHON_ASSIGN_OR_RETURN(device_, open_(prepared_, seat.me));
    seat.device = &device_->worker;
    return absl::OkStatus();
  }

  // Of all lenders, those without a worker as well.
  absl::StatusOr<absl::Span<std::byte>> Lending() {
    const Bytes bytes = ParkingRegionBytes(prepared_);
    if (bytes == Bytes(0)) return absl::Span<std::byte>();
    SIPHON_RETURN_IF_ERROR(CheckLendersAreNear());
    SIPHON_ASSIGN_OR_RETURN(const absl::Span<std::byte> window, world_.SharedWindow(bytes));
    // Of several ranks it is a new file, of one any memory.
    if (world_.size() == 1) std::memset(window.data(), 0, window.size());
    return window;
  }

  // Neither a window nor memory of a device can be opened on another host.
  absl::Status CheckLendersAreNear() {
    const std::vector<int>& hosts = world_.host_of_rank();
    for (const ParkingRegion::Part& part : LayOutRegion(RegionOf(prepared_, {}).parking).parts) {
      int lender = 0;
      while (lender < world_.size() && DeviceOfWorker(prepared_, WorkerId(lender)) != part.lender) {
        ++lender;
      }
      if (lender == world_.size() || hosts[part.owner.value] == hosts[lender]) continue;
      return ConfigError(
          prepared_.job, "memory.strategy",
          absl::StrCat(prepared_.job.memory.strategy, " parks tensors of worker ", part.owner.value,
                       " with worker ", lender,
                       ", which is on another host; by topology.servers and topology.network_rate "
                       "tensors stay within one"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Transport>> MakeTransport(WorkerSeat& seat,
                                                           const LivenessCheck& check) {
    const TransportKind kind = TransportKindOf(prepared_.job.pipeline);
    const std::vector<RingSpec> rings = RingsBeside(kind, prepared_.plan, prepared_.model.spec);
    SIPHON_ASSIGN_OR_RETURN(std::unique_ptr<Transport> host,
                            MakeHostTransport(seat.me, kind, rings, check));
    if (kind == TransportKind::kNccl) return MakeDeviceTransport(seat, std::move(host), check);
    seat.communication_bytes = world_.one_host() ? IncomingRingBytes(rings, seat.me) : Bytes(0);
    return host;
  }

  // Of rings where `kind` has some, and of MPI messages where the workers are on several hosts.
  absl::StatusOr<std::unique_ptr<Transport>> MakeHostTransport(WorkerId me, TransportKind kind,
                                                               const std::vector<RingSpec>& rings,
                                                               const LivenessCheck& check) {
    const bool across = prepared_.job.pipeline.transport != "shared_memory" && !world_.one_host();
    if (kind == TransportKind::kMpi || across) return world_.MakeMpiTransport(check);
    if (!world_.one_host()) {
      return ConfigError(prepared_.job, "pipeline.transport",
                         "shared_memory, but the workers are on several hosts; mpi or auto work");
    }
    const RingLayout layout = LayOutRings(rings);
    SIPHON_ASSIGN_OR_RETURN(const absl::Span<std::byte> window,
                            world_.SharedWindow(layout.region_bytes));
    return MakeRingTransport(me, window, layout, check);
  }

  // Over NCCL, with `host` for what is in the host's memory.
  absl::StatusOr<std::unique_ptr<Transport>> MakeDeviceTransport(WorkerSeat& seat,
                                                                 std::unique_ptr<Transport> host,
                                                                 const LivenessCheck& check) {
    NcclTransportOptions options = PlanNccl(prepared_.plan, seat.me);
    options.device = device_->torch->device().index;
    options.work_stream = device_->torch->work_stream();
    SIPHON_ASSIGN_OR_RETURN(NcclTransportMade made,
                            device_->nccl->MakeTransport(options, std::move(host), check));
    SIPHON_RETURN_IF_ERROR(BookNccl(options, made, seat));
    return std::move(made.transport);
  }

  absl::Status BookNccl(const NcclTransportOptions& options, const NcclTransportMade& made,
                        WorkerSeat& seat) {
    NcclMemory nccl{.worker = seat.me,
                    .planned = NcclMemoryOf(seat.me, options.channels, options.max_ctas)};
    if (!prepared_.share_gpu) {
      nccl.measured = {.taken = made.device_memory, .free = made.device_free};
    }
    seat.communication_bytes = BookedOf(nccl);
    if (const auto warning = WarningOf(nccl); warning.has_value()) LogWarning(*warning);
    SIPHON_ASSIGN_OR_RETURN(const std::vector<Bytes> peaks, PredictedPeaks(prepared_));
    return CheckRoomBeside(nccl, peaks[static_cast<size_t>(seat.me.value)]);
  }

  const PreparedJob& prepared_;
  MpiWorld& world_;
  Board& board_;
  FaultInjector faults_;
  const DeviceOpener& open_;
  std::optional<OpenedDevice> device_;  // none: the CPU
};

[[noreturn]] void GiveUp(int rank, const absl::Status& status) {
  std::fprintf(stderr, "siphon: rank %d: %s\n", rank, std::string(status.message()).c_str());
  _exit(ExitCodeOf(status));
}

// What a rank shows of itself and how it ends when the job fails, from when it knows its board.
class Presence {
 public:
  Presence(std::unique_ptr<Board> board, int rank, const Heartbeat::Options& watch)
      : board_(std::move(board)) {
    board_->Enter(rank);
    InstallRankSignalHandlers(board_.get());
    const auto leave = [this, rank](const Board::Failure& failure) {
      if (Supervised()) _exit(failure.exit_code);  // the parent reports
      // The reporter's abort ends this process too.
      if (!IsReporter(*board_, rank) || !board_->ClaimReport()) return;
      std::fputs(FailureReport(*board_).c_str(), stderr);
      // One of another host that stood still reads of it when it is woken to be ended.
      if (several_hosts_.load()) std::this_thread::sleep_for(kToTellOtherHosts);
      if (MpiWorld* world = world_.load()) world->Abort(failure.exit_code);
      _exit(failure.exit_code);
    };
    heartbeat_.emplace(board_.get(), rank, watch, leave);
  }
  ~Presence() {
    heartbeat_.reset();
    relay_.reset();
    InstallRankSignalHandlers(nullptr);
  }
  void set_world(MpiWorld* world) { world_.store(world); }
  // Null: this host's is another rank's.
  void JoinOtherHosts(std::unique_ptr<BoardRelay> relay) {
    relay_ = std::move(relay);
    several_hosts_.store(true);
  }
  Board& board() { return *board_; }
  absl::Status Check() const { return heartbeat_->Check(); }

 private:
  std::unique_ptr<Board> board_;
  std::unique_ptr<BoardRelay> relay_;
  std::atomic<bool> several_hosts_{false};
  std::atomic<MpiWorld*> world_{nullptr};
  std::optional<Heartbeat> heartbeat_;
};

}  // namespace

void BecomeRank(const JobConfig& job, bool share_gpu) {
  DieWithParent();
  if (job.pipeline.backend != "cuda") return;
  SetCudaEnvironment(AnnouncedRank(), share_gpu ? DeviceUse::kShared : DeviceUse::kOneEach);
}

int RunRank(SharedPlan& shared, const PreparedJob& prepared, OutputFormat format,
            const DeviceOpener& open) {
  BecomeRank(prepared.job, prepared.share_gpu);
  StartLog(absl::StrCat("siphon rank ", AnnouncedRank()), prepared.job.output.log_level);
  const LaunchConfig& launch = prepared.job.launch;
  const Heartbeat::Options watch{.timeout = launch.heartbeat_timeout,
                                 .stall_timeout = launch.stall_timeout};
  std::optional<Presence> presence;
  if (Supervised()) {  // then even a hang in MPI_Init is seen
    auto board = OpenSupervisedBoard();
    if (!board.ok()) {
      // As launch.mpirun_options may have it.
      GiveUp(AnnouncedRank(), Annotate(board.status(),
                                       "siphon train watches ranks of its own host; on several "
                                       "start mpirun yourself"));
    }
    presence.emplace(*std::move(board), AnnouncedRank(), watch);
  }
  auto world = shared.Join(prepared);
  if (!world.ok()) {
    LetRankZeroReport(AnnouncedRank());
    GiveUp(AnnouncedRank(), world.status());
  }
  absl::Status placed = CheckSamePlan(prepared, **world);
  if (placed.ok()) placed = PlaceRanks(prepared, **world);
  HeldPlaces held;
  if (placed.ok() && !Supervised() && (*world)->rank() == 0) {  // else the parent has them
    absl::StatusOr<HeldPlaces> places = HoldPlaces(prepared.job);
    placed = places.status();
    if (places.ok()) held = *std::move(places);
  }
  if (!placed.ok()) {
    LetRankZeroReport((*world)->rank());
    GiveUp((*world)->rank(), placed);
  }
  const int rank = (*world)->rank();
  if (!presence.has_value()) {
    auto board = ShareBoard(**world);
    if (!board.ok()) GiveUp(rank, board.status());
    presence.emplace(*std::move(board), rank, watch);
    if ((*world)->first_on_host()) {
      presence->board().SetNote(Board::Note::kResumeCommand, prepared.resume_command);
      presence->board().SetNote(Board::Note::kCheckpoint, prepared.start);
    }
    if (!(*world)->one_host()) {
      auto relay = JoinBoards(**world, presence->board());
      if (!relay.ok()) GiveUp(rank, relay.status());
      presence->JoinOtherHosts(*std::move(relay));
    }
  }
  presence->set_world(world->get());

  Board& board = presence->board();
  const auto outcome =
      Rank(prepared, **world, board, open).Run([&presence] { return presence->Check(); });
  if (!outcome.ok()) {
    DeclareOwn(board, rank, outcome.status());
    for (;;) pause();  // the heartbeat's thread ends this process, whoever failed first
  }
  board.SetState(
      rank, outcome->end == RunEnd::kStopped ? Board::State::kStopped : Board::State::kFinished);
  if (rank == 0 && format == OutputFormat::kJson) {
    const absl::Status told = TellOutcome(OutcomeJson(*outcome));
    if (!told.ok()) GiveUp(rank, told);
  }
  // While this host's relay still passes on what the others do.
  if (const auto met = (*world)->AllGatherText(""); !met.ok()) GiveUp(rank, met.status());
  presence->set_world(nullptr);
  presence.reset();
  (*world)->Finalize();
  return kExitDone;  // a parent reads kStopped off the board; mpirun would take a 4 for a failure
}

}  // namespace siphon
