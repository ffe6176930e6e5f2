#ifndef SIPHON_TESTS_GPU_FACT_TABLE_H_
#define SIPHON_TESTS_GPU_FACT_TABLE_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "planner/status.h"

namespace siphon {

using FactClock = std::chrono::steady_clock;

inline constexpr int kFactRounds = 5;  // the median counts

double SecondsSince(FactClock::time_point begin);

template <typename Run>
double MedianOf(const Run& run) {
  std::vector<double> times;
  for (int round = 0; round < kFactRounds; ++round) times.push_back(run());
  std::sort(times.begin(), times.end());
  return times[kFactRounds / 2];
}

// Ends the program with exit code 1 and what was being done.
void Need(cudaError_t error, const char* doing);

template <typename T>
T Need(absl::StatusOr<T> made) {
  SIPHON_CHECK(made.ok(), made.status().message());
  return *std::move(made);
}

// Prints facts to standard output as rows of a table, and remembers which goals were missed.
class FactTable {
 public:
  FactTable();
  void Print(const std::string& fact, const std::string& value);
  void Print(const std::string& fact, double value, const char* unit);
  void PrintWithLeast(const std::string& fact, double value, const char* unit, double least);
  void PrintWithLimit(const std::string& fact, double value, const char* unit, double below);
  const std::vector<std::string>& missed() const { return missed_; }

 private:
  void PrintJudged(const std::string& fact, const std::string& value, bool met);

  std::vector<std::string> missed_;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_GPU_FACT_TABLE_H_
