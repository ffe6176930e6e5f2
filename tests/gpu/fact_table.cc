#include "tests/gpu/fact_table.h"

#include <cstdio>
#include <cstdlib>

namespace siphon {
namespace {

std::string WithUnit(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.2f %s", value, unit);
  return text;
}

}  // namespace

double SecondsSince(FactClock::time_point begin) {
  return std::chrono::duration<double>(FactClock::now() - begin).count();
}

void Need(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", doing, cudaGetErrorName(error));
  std::exit(1);
}

FactTable::FactTable() {
  std::printf("| %-72s | %-34s |\n|%s|%s|\n", "fact", "value", std::string(74, '-').c_str(),
              std::string(36, '-').c_str());
}

void FactTable::Print(const std::string& fact, const std::string& value) {
  std::printf("| %-72s | %-34s |\n", fact.c_str(), value.c_str());
  std::fflush(stdout);
}

void FactTable::Print(const std::string& fact, double value, const char* unit) {
  Print(fact, WithUnit(value, unit));
}

void FactTable::PrintWithLeast(const std::string& fact, double value, const char* unit,
                               double least) {
  PrintJudged(fact + " (goal: " + WithUnit(least, unit) + " or more)", WithUnit(value, unit),
              value >= least);
}

void FactTable::PrintWithLimit(const std::string& fact, double value, const char* unit,
                               double below) {
  PrintJudged(fact + " (goal: under " + WithUnit(below, unit) + ")", WithUnit(value, unit),
              value < below);
}

void FactTable::PrintJudged(const std::string& fact, const std::string& value, bool met) {
  Print(fact, value + (met ? "" : ", goal MISSED"));
  if (!met) missed_.push_back(fact + ": " + value);
}

}  // namespace siphon
