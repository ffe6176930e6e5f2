#ifndef SIPHON_TESTS_PLANNER_DICE_H_
#define SIPHON_TESTS_PLANNER_DICE_H_

#include <cstdint>
#include <random>

namespace siphon {

// Random numbers by seed, for properties over many cases. The same on every machine, as
// std::uniform_int_distribution is not.
class Dice {
 public:
  explicit Dice(int seed) : engine_(static_cast<uint32_t>(seed)) {}
  // Uniform in [low, high].
  int Roll(int low, int high) {
    return low + static_cast<int>(engine_() % static_cast<uint32_t>(high - low + 1));
  }

 private:
  std::mt19937 engine_;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_DICE_H_
