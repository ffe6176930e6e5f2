#ifndef SIPHON_PIPELINE_TORCH_STEP_CLOCK_H_
#define SIPHON_PIPELINE_TORCH_STEP_CLOCK_H_

#include <cstdint>

namespace siphon {

// A clock for what this thread computes. With one thread: the processor time that it got, which
// says what a core takes even where other programs take turns on it. With several, which run beside
// this one: the time that went by.
class StepClock {
 public:
  explicit StepClock(int threads) : threads_(threads) {}
  int64_t NowNs() const;

 private:
  const int threads_;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_STEP_CLOCK_H_
