#include "launch/process/inject_fault.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "planner/action.h"

namespace siphon {
namespace {

constexpr char kVariable[] = "SIPHON_INJECT_FAULT";
constexpr char kSlow[] = "slow";
constexpr char kFull[] = "full";
constexpr char kOverlook[] = "overlook";
constexpr char kCapacity[] = "memory.capacity";
constexpr char kFail[] = "fail";
constexpr char kHang[] = "hang";
constexpr char kTheHost[] = "the host";
constexpr char kTheDrives[] = "the drives";
constexpr char kWorker[] = "worker ";
constexpr char kDevice[] = "device ";
constexpr char kChunk[] = "chunk ";
constexpr double kSlowness = 100;

const std::map<std::string, int>& SignalOfKind() {
  static const std::map<std::string, int> signals = {
      {"kill", SIGKILL}, {"stop", SIGSTOP}, {"stop_request", SIGUSR1},
      {kFail, 0},        {"refuse", 0},     {kSlow, 0},
      {kFull, 0},        {kOverlook, 0},    {kHang, 0}};
  return signals;
}

// Empty where it is not set.
absl::string_view Text() {
  const char* const text = std::getenv(kVariable);
  return text == nullptr ? "" : text;
}

// None where it is written otherwise.
std::optional<InjectedFault> FaultOf(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  InjectedFault fault;
  const bool reads = parts.size() == 4 && absl::SimpleAtoi(parts[0], &fault.rank) &&
                     absl::SimpleAtoi(parts[1], &fault.step) && fault.step >= 0;
  if (!reads) return std::nullopt;
  fault.place = parts[2];
  fault.kind = parts[3];
  return fault;
}

// 17 of "chunk 17".
std::optional<int64_t> NumberBehind(absl::string_view words, absl::string_view place) {
  int64_t number = 0;
  if (!absl::ConsumePrefix(&place, words) || !absl::SimpleAtoi(place, &number)) return std::nullopt;
  return number >= 0 ? std::optional(number) : std::nullopt;
}

// What is wrong with the place of a link; empty: nothing.
std::string WrongLink(const InjectedFault& fault, int ranks) {
  const std::optional<int64_t> worker = NumberBehind(kWorker, fault.place);
  const bool is_worker = worker.has_value() && *worker < ranks && *worker != fault.rank;
  const bool is_known = fault.place == kTheHost || fault.place == kTheDrives || is_worker ||
                        NumberBehind(kDevice, fault.place).has_value();
  if (is_known) return "";
  return absl::StrCat("is no link of rank ", fault.rank, "; known: ", kTheHost, ", ", kTheDrives,
                      ", ", kWorker, "N of another one of ", ranks, ", ", kDevice, "N");
}

// Of an action or a phase.
std::string WrongMoment(const InjectedFault& fault, const FaultPlaces& places) {
  if (absl::c_linear_search(places.phases, fault.place)) return "";
  const std::string phases = absl::StrJoin(places.phases, ", ");
  const absl::StatusOr<Action> action = ParseAction(fault.place);
  if (!action.ok() || ToString(*action) != fault.place) {
    return absl::StrCat("is neither an action, such as ", fault.rank,
                        "F0, nor known; known: ", phases, "; with fail: ", kChunk, "N");
  }
  const Schedule& schedule = places.schedule;
  const int stage = action->stage.value;
  if (stage >= StageCount(schedule) || schedule.worker_of_stage[stage].value != fault.rank) {
    return absl::StrCat("is of stage ", stage, ", which rank ", fault.rank, " does not have");
  }
  if (action->microbatch.value < schedule.microbatches) return "";
  return absl::StrCat("is of microbatch ", action->microbatch.value, ", and a step has ",
                      schedule.microbatches);
}

// What is wrong with the place of a fault of a known kind.
std::string WrongPlace(const InjectedFault& fault, const FaultPlaces& places) {
  const auto only = [&](absl::string_view known) {
    return fault.place == known ? "" : absl::StrCat("is not known; with ", fault.kind, ": ", known);
  };
  if (fault.kind == kSlow) return WrongLink(fault, WorkerCount(places.schedule));
  if (fault.kind == kFull) return only(kTheHost);
  if (fault.kind == kOverlook) return only(kCapacity);
  if (fault.kind == kFail && NumberBehind(kChunk, fault.place).has_value()) return "";
  return WrongMoment(fault, places);
}

}  // namespace

absl::Status CheckInjectedFault(const FaultPlaces& places) {
  const absl::string_view text = Text();
  if (text.empty()) return absl::OkStatus();
  const auto refuse = [&](absl::string_view problem) {
    return absl::InvalidArgumentError(absl::StrCat(kVariable, "=", text, ": ", problem));
  };
  const std::optional<InjectedFault> fault = FaultOf(text);
  if (!fault.has_value()) return refuse("write RANK:STEP:PLACE:KIND");
  const int ranks = WorkerCount(places.schedule);
  if (fault->rank < 0 || fault->rank >= ranks) {
    return refuse(absl::StrCat("rank ", fault->rank, " is none of the job's ", ranks));
  }
  if (!SignalOfKind().contains(fault->kind)) {
    const auto name = [](std::string* out, const auto& kind) { out->append(kind.first); };
    return refuse(absl::StrCat("kind '", fault->kind, "' is not known; known: ",
                               absl::StrJoin(SignalOfKind(), ", ", name)));
  }
  const std::string wrong = WrongPlace(*fault, places);
  if (wrong.empty()) return absl::OkStatus();
  return refuse(absl::StrCat("place '", fault->place, "' ", wrong));
}

FaultInjector::FaultInjector(int rank) {
  const std::optional<InjectedFault> fault = FaultOf(Text());
  if (!fault.has_value() || fault->rank != rank) return;
  failing_chunk_ = NumberBehind(kChunk, fault->place);
  fault_ = fault;
}

absl::Status FaultInjector::At(absl::string_view place) {
  if (!fault_.has_value() || fault_->step != step_ || fault_->place != place ||
      fault_->kind == kSlow || fault_->kind == kFull || fault_->kind == kOverlook) {
    return absl::OkStatus();
  }
  const std::string kind = fault_->kind;
  fault_.reset();  // once
  if (kind == kHang) {
    while (true) pause();
  }
  if (kind == kFail) return absl::InternalError(absl::StrCat("injected fault at ", place));
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
  const std::optional<InjectedFault> fault = FaultOf(Text());
  return fault.has_value() && fault->place == kCapacity && fault->kind == kOverlook;
}

}  // namespace siphon
