#ifndef SIPHON_PLANNER_DRAFTS_STEP_KEY_H_
#define SIPHON_PLANNER_DRAFTS_STEP_KEY_H_

#include <cstdint>

#include "planner/memory_plan.h"

namespace siphon {

// A hash by which what is known is found. FNV-1a (Fowler, Noll, Vo), a word at a time.
class StepKey {
 public:
  void Add(int64_t word) { key_ = (key_ ^ static_cast<uint64_t>(word)) * 0x100000001b3u; }
  void Add(const StagePlan& stage) {
    Add((static_cast<int64_t>(stage.groups.size()) * 2 +
         (stage.update == UpdatePlace::kHost ? 1 : 0)) *
            (kMostStreamBuffers + 1) +
        stage.stream_buffers);
    for (const auto& [group, choice] : stage.groups) {
      Add(group.bytes.value);
      Add(static_cast<int64_t>(choice.placement));
      for (const Stripe& stripe : choice.stripes) {
        Add(stripe.bytes.value ^ (int64_t{stripe.lender.value} << 48));
      }
    }
  }
  uint64_t Get() const { return key_; }

 private:
  uint64_t key_ = 0xcbf29ce484222325u;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_STEP_KEY_H_
