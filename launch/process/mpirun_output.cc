#include "launch/process/mpirun_output.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "launch/process/process_probe.h"

namespace siphon {
namespace {

// Open MPI 4.1 frames its notices with lines of 74 dashes.
constexpr absl::string_view kFrame =
    "--------------------------------------------------------------------------";

// Parts of the notices that tell of a job's end (orte/tools/orterun/help-orterun.txt,
// help-mpi-api.txt).
constexpr absl::string_view kEndNotices[] = {
    "Primary job",
    "mpirun noticed that process rank",
    "mpirun detected that one or more processes exited",
    "mpirun has exited due to process rank",
    "MPI_ABORT was invoked",
    "has exited improperly",
    "exiting improperly",
    "mpirun was unable to cleanly terminate",
    "mpirun: killing job",
    "ORTE has lost communication",
};

// Whether a line that begins so has to be seen whole before it can go on.
bool MayBeMpiruns(absl::string_view begin) {
  return begin[0] == '[' || (begin.size() <= kFrame.size() && absl::StartsWith(kFrame, begin));
}

// "[host:4242] 3 more processes have sent help message help-mpi-api.txt / mpi-abort", and how
// mpirun and its libevent stumble over ranks that end while they talk to it.
bool IsMpirunsOwn(absl::string_view line) {
  return line[0] == '[' && (absl::StartsWith(line, "[warn] Epoll ") ||
                            absl::StrContains(line, " sent help message ") ||
                            absl::StrContains(line, "orte_base_help_aggregate") ||
                            absl::StrContains(line, "] ORTE_ERROR_LOG: "));
}

// The number behind `marker` and blanks.
std::optional<int> NumberAfter(absl::string_view text, absl::string_view marker) {
  const size_t found = text.find(marker);
  if (found == absl::string_view::npos) return std::nullopt;
  text = absl::StripLeadingAsciiWhitespace(text.substr(found + marker.size()));
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  int number = 0;
  if (!absl::SimpleAtoi(text.substr(0, digits), &number)) return std::nullopt;
  return number;
}

}  // namespace

std::string ExitedWith(int code) { return absl::StrCat("exited with code ", code); }

MpirunOutput::MpirunOutput(std::function<void(absl::string_view)> pass_on)
    : pass_on_(std::move(pass_on)) {}

void MpirunOutput::PassOn(absl::string_view text) {
  if (text.empty()) return;
  at_line_start_ = text.back() == '\n';
  pass_on_(text);
}

void MpirunOutput::Add(absl::string_view text) {
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    const bool complete = newline != absl::string_view::npos;
    const absl::string_view piece = text.substr(0, complete ? newline + 1 : text.size());
    text.remove_prefix(piece.size());
    if (passing_) {
      PassOn(piece);
      passing_ = !complete;
      continue;
    }
    line_.append(piece.data(), piece.size());
    if (complete) {
      EndOfLine();
    } else if (frame_.empty() && !MayBeMpiruns(line_)) {
      passing_ = true;
      PassOn(std::exchange(line_, ""));
    }
  }
}

void MpirunOutput::EndOfLine() {
  const std::string line = std::exchange(line_, "");
  const bool border = absl::StripTrailingAsciiWhitespace(line) == kFrame;
  if (frame_.empty() && !border) {
    if (!IsMpirunsOwn(line)) return PassOn(line);
    held_ += line;
    return;
  }
  const bool closes = border && !frame_.empty();
  frame_ += line;
  if (closes) EndOfFrame();
}

void MpirunOutput::EndOfFrame() {
  const std::string frame = std::exchange(frame_, "");
  const bool about_the_end =
      std::any_of(std::begin(kEndNotices), std::end(kEndNotices),
                  [&](absl::string_view notice) { return absl::StrContains(frame, notice); });
  if (!about_the_end) return PassOn(frame);
  held_ += frame;

  if (const auto rank = NumberAfter(frame, "noticed that process rank ")) {
    if (const auto signal = NumberAfter(frame, " exited on signal ")) {
      ends_.emplace(*rank, End{absl::StrCat("killed by ", DescribeSignal(*signal)), true});
    }
  } else if (const size_t name = frame.find("Process name: [["); name != std::string::npos) {
    // "[[17601,1],2]": the number of the job, the rank
    const auto named_rank = NumberAfter(absl::string_view(frame).substr(name), "],");
    const auto code = NumberAfter(frame, "Exit code:");
    if (named_rank && code) {
      ends_.emplace(*named_rank, End{ExitedWith(*code)});
    }
  } else if (const auto early = NumberAfter(frame, "due to process rank ")) {
    ends_.emplace(*early, End{"exited without finishing its work"});
  }
}

void MpirunOutput::Finish() {
  if (frame_.empty()) {
    PassOn(std::exchange(line_, ""));
  } else {
    frame_ += std::exchange(line_, "");
    EndOfFrame();
  }
  passing_ = false;
}

std::string MpirunOutput::HowRankEnded(int rank) const {
  const auto found = ends_.find(rank);
  return found == ends_.end() ? "" : found->second.how;
}

bool MpirunOutput::WasKilled(int rank) const {
  const auto found = ends_.find(rank);
  return found != ends_.end() && found->second.killed;
}

std::string MpirunOutput::HowOthersEnded(int rank) const {
  std::string text;
  for (const auto& [other, end] : ends_) {
    if (other == rank) continue;
    absl::StrAppend(&text, "  mpirun saw rank ", other, ": ", end.how, "\n");
  }
  return text;
}

}  // namespace siphon
