#include "tests/support/fake_nccl/communicator.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

#include "tests/support/fake_cuda/fake_cuda.h"
#include "tests/support/fake_cuda/other_fakes.h"
#include "tests/support/fake_nccl/hardware_queue.h"
#include "tests/support/fake_nccl/state.h"

namespace siphon::fake_nccl {

// A group on a stream.
struct Communicator::Work {
  std::shared_ptr<Communicator> communicator;
  std::vector<Operation> operations;
  int64_t launch = -1;  // of the device's one queue; -1: it has one for each stream
};

Communicator::Communicator(std::shared_ptr<Meeting> meeting, int ranks, int rank, int device,
                           int64_t memory)
    : meeting_(std::move(meeting)), ranks_(ranks), rank_(rank), device_(device), memory_(memory) {
  ++TheState().communicators;
}

Communicator::~Communicator() {
  if (memory_ != 0) siphon_fake_cuda_give_back(memory_);
  --TheState().communicators;
}

NcclResult Communicator::Fail(NcclResult result, const std::string& why) {
  if (error_ == kNcclSuccess) error_ = result;
  last_error_ = why;
  return result;
}

NcclResult Communicator::Refuse(NcclResult result, const std::string& why) {
  const std::lock_guard lock(mutex_);
  return Fail(result, why);
}

std::string Communicator::LastError() {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

NcclResult Communicator::Ask() {
  const std::lock_guard lock(mutex_);
  State& now = state_;
  if (error_ == kNcclSuccess && late_error_ != kNcclSuccess) {
    Fail(static_cast<NcclResult>(late_error_.load()), "found while a message was under way");
  }
  const int64_t fail_after = TheState().fail_after;
  if (error_ == kNcclSuccess && fail_after > 0 && TheState().groups >= fail_after) {
    Fail(static_cast<NcclResult>(TheState().fail_code.load()), "injected by a test");
  }
  if (error_ != kNcclSuccess) return error_;
  GoOn();
  if (error_ != kNcclSuccess) return error_;
  return now == State::kReady || now == State::kFinalized ? kNcclSuccess : kNcclInProgress;
}

void Communicator::GoOn() {
  if (state_ == State::kReady || state_ == State::kFinalized) return;
  if (state_ == State::kJoining && !meeting_->IsComplete()) return;
  if (state_ == State::kFinalizing && on_streams_ > 0) return;
  if (++questions_ <= TheState().questions) return;
  questions_ = 0;
  if (state_ == State::kJoining && meeting_->HasTwoRanksOnOneDevice()) {
    Fail(kNcclInvalidUsage, "Duplicate GPU detected");
  } else if (state_ == State::kLaunching) {
    if (const NcclResult launched = Launch(); launched != kNcclSuccess) {
      Fail(launched, "the stream took nothing");
    }
  }
  state_ = state_ == State::kFinalizing ? State::kFinalized : State::kReady;
}

NcclResult Communicator::Add(const Operation& operation) {
  const std::lock_guard lock(mutex_);
  if (error_ != kNcclSuccess) return error_;
  if (state_ != State::kReady) return Fail(kNcclInvalidUsage, "the communicator is busy");
  if (operation.peer < 0 || operation.peer >= ranks_ || operation.peer == rank_) {
    return Fail(kNcclInvalidArgument, "no such peer");
  }
  siphon_fake_cuda_place place;
  const bool on_device =
      siphon_fake_cuda_find(operation.address, static_cast<size_t>(operation.bytes), &place) == 0;
  if (!on_device || place.device != device_) {
    return Fail(kNcclInvalidArgument, "not memory of the communicator's device");
  }
  pending_.push_back(operation);
  int64_t& numbers = operation.sends ? sent_[operation.peer] : received_[operation.peer];
  pending_.back().number = numbers++;
  return kNcclSuccess;
}

NcclResult Communicator::EndGroup() {
  const std::lock_guard lock(mutex_);
  if (error_ != kNcclSuccess) return error_;
  if (++TheState().groups == TheState().fail_group) {
    return Fail(static_cast<NcclResult>(TheState().fail_code.load()), "injected by a test");
  }
  state_ = State::kLaunching;
  questions_ = 0;
  return kNcclInProgress;
}

NcclResult Communicator::Finalize() {
  const std::lock_guard lock(mutex_);
  if (error_ != kNcclSuccess) return error_;
  if (state_ != State::kReady) return Fail(kNcclInvalidUsage, "the communicator is busy");
  state_ = State::kFinalizing;
  questions_ = 0;
  return kNcclInProgress;
}

NcclResult Communicator::Destroy() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kFinalized) return Fail(kNcclInvalidUsage, "destroyed, but not finalized");
  return kNcclSuccess;
}

void Communicator::Abort() {
  ++TheState().aborts;
  aborted_ = true;
  HardwareQueue::Of(device_).Wake();
  meeting_->Ring();
}

void Communicator::GiveBack() { HardwareQueue::Of(device_).AwaitIdle(); }

NcclResult Communicator::Launch() {
  const cudaStream_t stream = pending_.empty() ? nullptr : pending_.front().stream;
  auto work = std::make_unique<Work>();
  work->communicator = shared_from_this();
  work->operations = std::exchange(pending_, {});
  for (const Operation& operation : work->operations) {
    ++(operation.sends ? TheState().sends : TheState().receives);
  }
  if (TheState().one_queue != 0) work->launch = HardwareQueue::Of(device_).Launch();
  ++on_streams_;
  ++TheState().waiting;
  HardwareQueue::Of(device_).Enter();
  if (cudaLaunchHostFunc(stream, Run, work.get()) != cudaSuccess) {
    --on_streams_;
    --TheState().waiting;
    HardwareQueue::Of(device_).Leave();
    return kNcclUnhandledCudaError;
  }
  static_cast<void>(work.release());  // Run's
  return kNcclSuccess;
}

void Communicator::Run(void* argument) {
  const std::unique_ptr<Work> work(static_cast<Work*>(argument));
  Communicator& me = *work->communicator;
  if (work->launch >= 0) {
    HardwareQueue::Of(me.device_).Begin(work->launch, [&me] { return me.aborted_.load(); });
  }
  std::vector<bool> posted(work->operations.size()), done(work->operations.size());
  size_t left = work->operations.size();
  while (left > 0 && !me.aborted_) {
    const uint32_t bell = me.meeting_->Bell();
    bool moved = false;
    for (size_t index = 0; index < work->operations.size(); ++index) {
      if (done[index]) continue;
      bool is_posted = posted[index];
      done[index] = me.Progress(work->operations[index], is_posted, moved);
      posted[index] = is_posted;
      if (done[index]) --left;
    }
    if (moved) {
      me.meeting_->Ring();
    } else if (left > 0) {
      me.meeting_->WaitForRing(bell);
    }
  }
  --me.on_streams_;
  --TheState().waiting;
  HardwareQueue::Of(me.device_).Leave();
}

bool Communicator::Progress(Operation& operation, bool& is_posted, bool& moved) {
  const int from = operation.sends ? rank_ : operation.peer;
  const int to = operation.sends ? operation.peer : rank_;
  Line& line = meeting_->page().lines[from][to];
  const int64_t number = operation.number;
  if (!operation.sends) {
    if (line.posted <= number || line.taken != number) return false;
    const Post post = line.posts[number % Line::kPosts];
    if (post.bytes != operation.bytes) return false;  // never
    Copy(operation, post);
    line.taken = number + 1;
    moved = true;
    return true;
  }
  if (!is_posted) {
    if (line.posted != number || number - line.taken >= Line::kPosts) return false;
    siphon_fake_cuda_place place;
    if (siphon_fake_cuda_find(operation.address, static_cast<size_t>(operation.bytes), &place) !=
        0) {
      late_error_ = kNcclUnhandledCudaError;  // freed meanwhile
      return false;
    }
    line.posts[number % Line::kPosts] = {
        .serial = place.serial, .offset = place.offset, .bytes = operation.bytes};
    line.posted = number + 1;
    is_posted = moved = true;
  }
  return line.taken > number;
}

// Devices' memory is files on the fake board.
void Communicator::Copy(const Operation& operation, const Post& post) {
  if (const int64_t delay = TheState().delay_ns; delay > 0) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(delay));
  }
  siphon_fake_cuda_place place;
  const std::string path =
      std::string(siphon_fake_cuda_directory()) + "/memory." + std::to_string(post.serial);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool there =
      siphon_fake_cuda_find(operation.address, static_cast<size_t>(operation.bytes), &place) == 0;
  int64_t copied = 0;
  while (file >= 0 && there && copied < operation.bytes) {
    const ssize_t got = pread(file, place.real + copied,
                              static_cast<size_t>(operation.bytes - copied), post.offset + copied);
    if (got <= 0) break;
    copied += got;
  }
  if (file >= 0) close(file);
  if (copied < operation.bytes) late_error_ = kNcclUnhandledCudaError;
}

}  // namespace siphon::fake_nccl
