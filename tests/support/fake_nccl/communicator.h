#ifndef SIPHON_TESTS_SUPPORT_FAKE_NCCL_COMMUNICATOR_H_
#define SIPHON_TESTS_SUPPORT_FAKE_NCCL_COMMUNICATOR_H_

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/transport/nccl_api.h"
#include "tests/support/fake_nccl/meeting.h"

namespace siphon::fake_nccl {

// A send or a receive.
struct Operation {
  bool sends = false;
  int peer = 0;
  char* address = nullptr;
  int64_t bytes = 0;
  int64_t number = 0;  // on its line
  cudaStream_t stream = nullptr;
};

// One rank of a communicator. It does nothing by itself: what is asked for goes on when it is asked
// how it is (Ask), or on a stream.
//
// Thread-safety: any thread.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  Communicator(std::shared_ptr<Meeting> meeting, int ranks, int rank, int device, int64_t memory);
  ~Communicator();

  // ncclCommGetAsyncError.
  NcclResult Ask();
  // What was asked of it that it cannot do; the next question says so too.
  NcclResult Refuse(NcclResult result, const std::string& why);

  // ncclSend, ncclRecv: until the group ends.
  NcclResult Add(const Operation& operation);
  NcclResult EndGroup();
  NcclResult Finalize();
  NcclResult Destroy();
  // Ends what is under way.
  void Abort();
  // As giving its memory back does: waits for all messages on the device, of any communicator.
  void GiveBack();

  std::string LastError();

 private:
  enum class State { kJoining, kReady, kLaunching, kFinalizing, kFinalized };
  struct Work;

  // All with the mutex held.
  NcclResult Fail(NcclResult result, const std::string& why);
  void GoOn();
  NcclResult Launch();

  // On a stream's thread.
  static void Run(void* work);
  // Whether the operation is done; `moved` is set when it did anything.
  bool Progress(Operation& operation, bool& is_posted, bool& moved);
  void Copy(const Operation& operation, const Post& post);

  const std::shared_ptr<Meeting> meeting_;
  const int ranks_;
  const int rank_;
  const int device_;
  const int64_t memory_;  // on the fake board
  std::atomic<bool> aborted_{false};
  std::atomic<int> late_error_{kNcclSuccess};  // of a stream's thread
  std::atomic<int64_t> on_streams_{0};

  std::mutex mutex_;
  State state_ = State::kJoining;
  int64_t questions_ = 0;
  NcclResult error_ = kNcclSuccess;
  std::string last_error_;
  std::vector<Operation> pending_;
  std::map<int, int64_t> sent_, received_;  // [peer]: numbers given out
};

}  // namespace siphon::fake_nccl

#endif  // SIPHON_TESTS_SUPPORT_FAKE_NCCL_COMMUNICATOR_H_
