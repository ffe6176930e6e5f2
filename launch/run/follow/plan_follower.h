#ifndef SIPHON_LAUNCH_RUN_FOLLOW_PLAN_FOLLOWER_H_
#define SIPHON_LAUNCH_RUN_FOLLOW_PLAN_FOLLOWER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "launch/profile/fall_back.h"
#include "launch/run/follow/leaving.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/parking/host_memory.h"
#include "launch/run/parking/lending.h"
#include "launch/run/parking/parking_room.h"
#include "launch/run/seat/coordinate.h"
#include "launch/run/seat/link_watch.h"
#include "launch/run/seat/seat_memory.h"
#include "launch/run/seat/step_record.h"
#include "launch/run/seat/worker_seat.h"
#include "planner/plan_text.h"
#include "planner/schedule.h"
#include "swap/memory_ledger.h"

namespace siphon {

// Which of two plans a run goes on with.
enum class PlanInForceIs { kBefore, kNext };

// The plan that one worker's run follows at the moment, with the room that it parks in and lends:
// that of the job until a lender takes its memory back, the host gives none, or a link is far
// slower than planned. Then the groups concerned go their second way from the next step on, on all
// workers at once, since each of them comes to the same from what all have said.
//
// Thread-safety: one thread, the worker's. The arguments outlive this.
class PlanFollower {
 public:
  PlanFollower(const PreparedJob& prepared, const WorkerSeat& seat, SeatMemory& memory,
               Coordinator& coordinator);

  // Collective, before the first step: what this worker lends counts on its books from now on, and
  // what it parks has its room. What is refused there is the first thing that second choices are
  // taken for. Errors: ResourceExhausted where there are none, on all workers.
  absl::Status TakeRoom();
  // Collective, behind the last step: gives the room back, in an order in which nobody touches what
  // is gone. CUDA workers need it; others may.
  absl::Status Close();

  const FollowedPlan& plan() const { return now_.plan; }
  const Schedule& evaluation() const { return evaluation_; }
  // Whether no group has taken its second choice.
  bool AsPlanned() const;
  const Lending& lent() const { return lent_; }
  // The books of the host's memory.
  MemoryLedger& host() { return host_; }
  SwapEngine* engine() { return room_ == nullptr ? nullptr : &room_->engine(); }
  // Collective, behind TakeRoom and before the first step: so much memory of the host for this
  // worker's optimizer steps there, while the plan is in force; where the host refuses, of its
  // drive, if that is their second choice. Errors: as TakeRoom.
  absl::Status TakeHostMemory(Bytes bytes);
  // That memory; of the plan in force behind MoveTo.
  absl::Span<std::byte> host_memory() const { return host_memory_.bytes(); }

  // Around a step: what tests make of the links; what there is to say of them and of lending.
  void BeforeStep();
  absl::Status Report(Nanos step, StepRecord& mine);
  // Collective, between two steps, with the records of all workers; `next_step` counts from 1.
  // Errors: as TakeRoom.
  absl::Status Follow(const std::vector<StepRecord>& records, int64_t next_step);

  // [link], of the last step.
  const std::vector<LinkState>& link_use() const { return link_use_; }

  // Another plan for the same stages on the same devices, with memory that its lenders share.
  struct NextPlan {
    PlanInForce plan;
    Schedule evaluation;
    RoomRegion region;
    SecondStripes second;
    Bytes host_steps;  // of the host, for this worker's optimizer steps there
  };
  // Collective. Errors: on all workers, who go on as before: ResourceExhausted where there is no
  // memory to share.
  absl::StatusOr<NextPlan> Prepare(const PlanText& plan);
  // Collective, between two steps: follows `next` from `next_step` on; what worker and engine had
  // is gone. Where its memory is refused, and no second choice helps, the plan before stays in
  // force, and that is noted. Requires: all workers have taken their training state out
  // (CarriedState). Errors: as TakeRoom.
  absl::StatusOr<PlanInForceIs> MoveTo(NextPlan next, int64_t next_step);

  // What was done since the last call, in a sentence each: "worker 0: the link to worker 3 is 7.2x
  // slower than planned: 4 groups go to the host from step 12 on".
  std::vector<std::string> TakeNotes() { return std::exchange(notes_, {}); }

 private:
  void ShareOwn(RoomRegion& region);
  absl::Status TakeRoomFor(int64_t next_step);
  absl::Status TakeHostMemoryFor(int64_t next_step);
  absl::Status MapHostMemory();
  void FillHost();
  absl::Status LeaveRoom();
  absl::Status MakeRoom();
  std::vector<Leaving> OwnersOf(WorkerId lender) const;
  // Collective: what all workers' devices do not reach.
  absl::StatusOr<std::vector<Leaving>> OutOfReach() const;
  // Of this worker, who says so.
  absl::Status WhyRefused(const Leaving& leaving) const;
  absl::Status Leave(const std::vector<Leaving>& all, int64_t next_step);
  absl::Status NoSecondChoice(const absl::Status& fallen, const absl::Status& mine);
  void NoteMoved(const Leaving& leaving, const std::map<Placement, int>& moved, int64_t next_step);
  absl::Status MoveRoom();

  const PreparedJob& prepared_;
  const WorkerSeat& seat_;
  MemoryLedger host_;     // of all workers together, where they share memory
  const NumaPlace numa_;  // of what this worker lends, and has on the host
  Coordinator& coordinator_;
  RoomRegion region_;     // with the parking of the plan that now_ came from
  Schedule evaluation_;   // of that plan
  SecondStripes second_;  // of that plan
  PlanInForce now_;
  HostMapping host_memory_;  // for optimizer steps on the host
  Lending lent_;
  std::unique_ptr<ParkingRoom> room_;  // null where nobody parks anything
  LinkWatch watch_;
  std::vector<LinkState> link_use_;
  Bytes host_steps_;                     // what host_memory_ has by the plan in force
  absl::Status room_refusal_;            // why it has no room with the host, or on the drive
  std::vector<int64_t> second_choices_;  // [worker]: groups that have taken theirs
  std::vector<std::string> notes_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_FOLLOW_PLAN_FOLLOWER_H_
