#include "launch/process/inject_fault.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace siphon {
namespace {

constexpr char kVariable[] = "SIPHON_INJECT_FAULT";
constexpr char kSlow[] = "slow";
constexpr char kFull[] = "full";
constexpr char kOverlook[] = "overlook";
constexpr char kCapacity[] = "memory.capacity";
constexpr char kTheHost[] = "the host";
constexpr char kChunk[] = "chunk ";
constexpr double kSlowness = 100;

const std::map<std::string, int>& SignalOfKind() {
  static const std::map<std::string, int> signals = {
      {"kill", SIGKILL}, {"stop", SIGSTOP}, {"stop_request", SIGUSR1},
      {"fail", 0},       {"refuse", 0},     {kSlow, 0},
      {kFull, 0},        {kOverlook, 0}};
  return signals;
}

}  // namespace

FaultInjector::FaultInjector(int rank) {
  const char* text = std::getenv(kVariable);
  if (text == nullptr) return;
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  int struck = 0;
  Fault fault;
  if (parts.size() != 4 || !absl::SimpleAtoi(parts[0], &struck) ||
      !absl::SimpleAtoi(parts[1], &fault.step) || !SignalOfKind().contains(parts[3])) {
    std::fprintf(stderr, "siphon: %s=%s ignored: it should be RANK:STEP:PLACE:KIND\n", kVariable,
                 text);
    return;
  }
  if (struck != rank) return;
  fault.place = parts[2];
  fault.kind = parts[3];
  absl::string_view place = fault.place;
  int64_t chunk = 0;
  if (absl::ConsumePrefix(&place, kChunk) && absl::SimpleAtoi(place, &chunk)) {
    failing_chunk_ = chunk;
  }
  fault_ = fault;
}

absl::Status FaultInjector::At(absl::string_view place) {
  if (!fault_.has_value() || fault_->step != step_ || fault_->place != place ||
      fault_->kind == kSlow || fault_->kind == kFull || fault_->kind == kOverlook) {
    return absl::OkStatus();
  }
  const std::string kind = fault_->kind;
  fault_.reset();  // once
  if (kind == "fail") return absl::InternalError(absl::StrCat("injected fault at ", place));
  if (kind == "refuse") {
    return absl::ResourceExhaustedError(absl::StrCat("injected refusal at ", place));
  }
  std::raise(SignalOfKind().at(kind));
  return absl::OkStatus();
}

absl::Status FaultInjector::AtChunk() {
  const int64_t chunk = chunks_++;
  if (failing_chunk_ != chunk) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("injected fault at ", kChunk, chunk));
}

double FaultInjector::SlownessOf(absl::string_view link) const {
  const bool slow =
      fault_.has_value() && fault_->kind == kSlow && fault_->place == link && step_ >= fault_->step;
  return slow ? kSlowness : 1;
}

bool FaultInjector::FillsHost() const {
  return fault_.has_value() && fault_->kind == kFull && fault_->place == kTheHost &&
         step_ >= fault_->step;
}

bool OverlooksCapacity() {
  const char* text = std::getenv(kVariable);
  if (text == nullptr) return false;
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  return parts.size() == 4 && parts[2] == kCapacity && parts[3] == kOverlook;
}

}  // namespace siphon
