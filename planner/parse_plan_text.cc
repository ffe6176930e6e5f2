#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "planner/check_plan.h"
#include "planner/plan_keys.h"
#include "planner/plan_text.h"
#include "planner/plan_words.h"
#include "planner/status.h"

namespace siphon {
namespace {

struct KeyValue {
  PlanWord key;
  PlanWord value;
};

template <typename Value>
absl::Status Take(absl::StatusOr<Value> parsed, const PlanWord& word, Value& into) {
  if (!parsed.ok()) return ErrorAt(word, parsed.status().message());
  into = *std::move(parsed);
  return absl::OkStatus();
}

// The lines of a plan one after the other, each told to the section that it stands in.
class PlanReader {
 public:
  absl::Status Add(const PlanLine& line) {
    if (!started_) return Start(line);
    const bool indented = line.words.data() != line.whole.data();
    return indented ? AddContent(line) : BeginSection(line);
  }

  absl::StatusOr<PlanText> Finish(int last_line) &&;

 private:
  enum class Section { kNone, kJob, kWorker, kStage, kShared, kTraining, kEvaluation };
  // The lines of a section of programs, for ParseSchedule.
  struct Programs {
    PlanWord header;  // line 0: there is none
    std::string text;
    std::vector<int> lines;  // of each program
  };

  absl::Status Start(const PlanLine& line);
  absl::Status BeginSection(const PlanLine& line);
  absl::Status BeginNumbered(const PlanWord& number, Section section);
  absl::Status AddContent(const PlanLine& line);
  absl::Status AddJob(const KeyValue& pair);
  absl::Status AddCores(const PlanWord& value);
  absl::Status AddWorker(const KeyValue& pair);
  absl::Status AddStage(const KeyValue& pair);
  absl::Status AddShared(const KeyValue& pair);
  absl::Status AddProgram(const PlanLine& line, const KeyValue& pair, Programs& programs);
  absl::Status OncePerSection(const PlanWord& key);
  absl::Status Missing(const PlanWord& header, absl::string_view key) const;
  absl::Status CheckSectionComplete() const;
  absl::StatusOr<Schedule> ParsePrograms(const Programs& programs) const;

  PlanText plan_;
  bool started_ = false;
  Section section_ = Section::kNone;
  PlanWord header_;                       // of the section that is being read
  std::set<absl::string_view> keys_;      // of that section, so far
  std::set<absl::string_view> sections_;  // read so far
  PlanPlaces places_;
  Programs training_;
  Programs evaluation_;
};

absl::Status PlanReader::Start(const PlanLine& line) {
  if (line.words != kFirstLine) {
    return ErrorAt(WordAt(line, line.words),
                   absl::StrCat(QuotedWord(line.words),
                                " is not the first line of a plan file; it is '", kFirstLine, "'"));
  }
  started_ = true;
  return absl::OkStatus();
}

absl::Status PlanReader::BeginNumbered(const PlanWord& number, Section section) {
  const bool is_stage = section == Section::kStage;
  SIPHON_ASSIGN_OR_RETURN(const int index, ParseSmallNumber(number, 0));
  // Ascending without gaps, so that a large number makes no large table. Workers of which there is
  // nothing to say may be left out; whether they exist is known at the end.
  const size_t expected = is_stage ? plan_.stages.size() : plan_.workers.size();
  if (is_stage ? static_cast<size_t>(index) != expected : static_cast<size_t>(index) < expected) {
    return ErrorAt(number, absl::StrCat(is_stage ? "stage " : "worker ", index,
                                        " is out of order; the next one is ", expected));
  }
  if (is_stage) {
    plan_.stages.emplace_back();
    places_.stages.push_back(header_);
    places_.worker_of_stage.emplace_back();
  } else {
    // More workers than letters so far cannot have programs.
    constexpr int kMostWorkers = 1 << 16;
    if (index >= kMostWorkers) {
      return ErrorAt(number, absl::StrCat("worker ", index, " is one too many; at most ",
                                          kMostWorkers, " workers"));
    }
    plan_.workers.resize(static_cast<size_t>(index) + 1);
    places_.last_worker = header_;
  }
  section_ = section;
  return absl::OkStatus();
}

absl::Status PlanReader::BeginSection(const PlanLine& line) {
  SIPHON_RETURN_IF_ERROR(CheckSectionComplete());
  header_ = WordAt(line, line.words);
  keys_.clear();
  const size_t blank = std::min(line.words.find_first_of(" \t"), line.words.size());
  const absl::string_view first = line.words.substr(0, blank);
  const PlanWord rest = WordAt(line, absl::StripLeadingAsciiWhitespace(line.words.substr(blank)));
  if (first == kStageSection) return BeginNumbered(rest, Section::kStage);
  if (first == kWorkerSection) return BeginNumbered(rest, Section::kWorker);
  if (!sections_.insert(line.words).second) {
    return ErrorAt(
        header_, absl::StrCat("a second section ", QuotedWord(line.words), "; put both into one"));
  }
  if (line.words == kJobSection) {
    section_ = Section::kJob;
    places_.job = header_;
  } else if (line.words == kSharedSection) {
    section_ = Section::kShared;
  } else if (line.words == kTrainingSection) {
    section_ = Section::kTraining;
    training_.header = header_;
  } else if (line.words == kEvaluationSection) {
    section_ = Section::kEvaluation;
    evaluation_.header = header_;
  } else {
    return ErrorAt(
        header_, absl::StrCat("unknown section ", QuotedWord(line.words), "; known: ",
                              absl::StrJoin({kJobSection, kWorkerSection, kStageSection,
                                             kSharedSection, kTrainingSection, kEvaluationSection},
                                            ", "),
                              " (lines of a section are indented)"));
  }
  return absl::OkStatus();
}

absl::Status PlanReader::AddContent(const PlanLine& line) {
  // Names of parameters may have a colon in them; the last one counts there.
  const size_t colon = section_ == Section::kShared ? line.words.rfind(':') : line.words.find(':');
  const PlanWord all = WordAt(line, line.words);
  if (colon == absl::string_view::npos) {
    return ErrorAt(all, absl::StrCat(QuotedWord(line.words), " has no colon; write 'key: value'"));
  }
  const KeyValue pair = {
      WordAt(line, absl::StripTrailingAsciiWhitespace(line.words.substr(0, colon))),
      WordAt(line, absl::StripLeadingAsciiWhitespace(line.words.substr(colon + 1)))};
  switch (section_) {
    case Section::kNone:
      return ErrorAt(all, "a line before the first section; begin with 'job', not indented");
    case Section::kJob:
      return AddJob(pair);
    case Section::kWorker:
      return AddWorker(pair);
    case Section::kStage:
      return AddStage(pair);
    case Section::kShared:
      return AddShared(pair);
    case Section::kTraining:
      return AddProgram(line, pair, training_);
    case Section::kEvaluation:
      return AddProgram(line, pair, evaluation_);
  }
  return absl::InternalError("a section without a reader");
}

absl::Status PlanReader::OncePerSection(const PlanWord& key) {
  if (keys_.insert(key.text).second) return absl::OkStatus();
  return ErrorAt(key, absl::StrCat(QuotedWord(key.text), " stands twice in '", header_.text, "'"));
}

absl::Status PlanReader::AddJob(const KeyValue& pair) {
  SIPHON_RETURN_IF_ERROR(OncePerSection(pair.key));
  const absl::string_view key = pair.key.text;
  const PlanWord& value = pair.value;
  if (key == kModelKey) return Take<std::string>(std::string(value.text), value, plan_.model);
  if (key == kScheduleKey) return Take<std::string>(std::string(value.text), value, plan_.schedule);
  if (key == kCostsKey) return Take<std::string>(std::string(value.text), value, plan_.costs);
  if (key == kLinkLatencyKey) return Take(ParseNanos(value.text), value, plan_.link_latency);
  if (key == kLinkRateKey) return Take(ParseRate(value.text), value, plan_.link_rate);
  if (key == kCopyRateKey) return Take(ParseRate(value.text), value, plan_.copy_rate);
  if (key == kCoresTogetherKey) return AddCores(value);
  if (key == kMessageRoomKey) {
    SIPHON_ASSIGN_OR_RETURN(plan_.message_room, ParseSmallNumber(value, 0));
    return absl::OkStatus();
  }
  if (key == kMicrobatchKey) {
    SIPHON_ASSIGN_OR_RETURN(plan_.microbatch, ParseLargeNumber(value, 1));
    return absl::OkStatus();
  }
  if (key == kGlobalBatchKey) {
    SIPHON_ASSIGN_OR_RETURN(plan_.global_batch, ParseLargeNumber(value, 1));
    return absl::OkStatus();
  }
  if (key == kReplicasKey) {
    SIPHON_ASSIGN_OR_RETURN(plan_.training.replicas, ParseSmallNumber(value, 1));
    return absl::OkStatus();
  }
  if (key == kWeightRuleKey) {
    if (value.text != kOneGroupBehindWord) {
      return ErrorAt(value, absl::StrCat(kWeightRuleKey, " is ", QuotedWord(value.text),
                                         "; the only rule to name is ", kOneGroupBehindWord));
    }
    plan_.training.weight_rule = WeightRule::kOneGroupBehind;
    return absl::OkStatus();
  }
  return ErrorAt(
      pair.key,
      absl::StrCat("unknown key ", QuotedWord(key), "; known: ",
                   absl::StrJoin({kModelKey, kScheduleKey, kMicrobatchKey, kGlobalBatchKey,
                                  kReplicasKey, kWeightRuleKey, kCostsKey, kLinkLatencyKey,
                                  kLinkRateKey, kCopyRateKey, kMessageRoomKey, kCoresTogetherKey},
                                 ", ")));
}

absl::Status PlanReader::AddCores(const PlanWord& value) {
  for (const absl::string_view untrimmed : absl::StrSplit(value.text, ',')) {
    const absl::string_view text = absl::StripAsciiWhitespace(untrimmed);
    const int offset = static_cast<int>(text.data() - value.text.data());
    SIPHON_ASSIGN_OR_RETURN(const int together,
                            ParseSmallNumber({value.line, value.column + offset, text}, 1));
    plan_.cores_together.push_back(together);
  }
  return absl::OkStatus();
}

absl::Status PlanReader::AddWorker(const KeyValue& pair) {
  SIPHON_RETURN_IF_ERROR(OncePerSection(pair.key));
  PlanWorker& worker = plan_.workers.back();
  if (pair.key.text == kCapacityKey) {
    return Take(ParseBytes(pair.value.text), pair.value, worker.capacity);
  }
  if (pair.key.text == kCommunicationKey) {
    return Take(ParseBytes(pair.value.text), pair.value, worker.communication);
  }
  return ErrorAt(pair.key, absl::StrCat("unknown key ", QuotedWord(pair.key.text),
                                        "; known: ", kCapacityKey, ", ", kCommunicationKey));
}

absl::Status PlanReader::AddStage(const KeyValue& pair) {
  SIPHON_RETURN_IF_ERROR(OncePerSection(pair.key));
  PlanStage& stage = plan_.stages.back();
  const absl::string_view key = pair.key.text;
  const PlanWord& value = pair.value;
  if (key == kNamesKey) return Take<std::string>(std::string(value.text), value, stage.names);
  if (key == kWorkerKey) {
    places_.worker_of_stage.back() = value;
    SIPHON_ASSIGN_OR_RETURN(stage.worker.value, ParseSmallNumber(value, 0));
    return absl::OkStatus();
  }
  if (key == kLayersKey) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(value.text, absl::MaxSplits(" to ", 1));
    if (!absl::SimpleAtoi(ends.first, &stage.layers.begin) ||
        !absl::SimpleAtoi(ends.second, &stage.layers.end) || stage.layers.begin < 0 ||
        stage.layers.end < stage.layers.begin || stage.layers.end == 2147483647) {
      return ErrorAt(value, absl::StrCat(QuotedWord(value.text),
                                         " are no layers; write the first and the last: '0 to 2'"));
    }
    ++stage.layers.end;
    return absl::OkStatus();
  }
  for (const CostTimeKey& known : kCostTimes) {
    if (key == known.name) return Take(ParseNanos(value.text), value, stage.cost.*known.member);
  }
  for (const CostSizeKey& known : kCostSizes) {
    if (key == known.name) return Take(ParseBytes(value.text), value, stage.cost.*known.member);
  }
  const auto append = [](std::string* out, const auto& known) { absl::StrAppend(out, known.name); };
  return ErrorAt(pair.key, absl::StrCat("unknown key ", QuotedWord(key), "; known: ", kWorkerKey,
                                        ", ", kLayersKey, ", ", kNamesKey, ", ",
                                        absl::StrJoin(kCostTimes, ", ", append), ", ",
                                        absl::StrJoin(kCostSizes, ", ", append)));
}

absl::Status PlanReader::AddShared(const KeyValue& pair) {
  SIPHON_RETURN_IF_ERROR(OncePerSection(pair.key));
  PlanSharing shared{.parameter = std::string(pair.key.text)};
  for (const absl::string_view untrimmed : absl::StrSplit(pair.value.text, ',')) {
    const absl::string_view text = absl::StripAsciiWhitespace(untrimmed);
    const int offset = static_cast<int>(text.data() - pair.value.text.data());
    SIPHON_ASSIGN_OR_RETURN(
        const int stage, ParseSmallNumber({pair.value.line, pair.value.column + offset, text}, 0));
    shared.stages.push_back(StageId(stage));
  }
  plan_.shared_parameters.push_back(std::move(shared));
  return absl::OkStatus();
}

absl::Status PlanReader::AddProgram(const PlanLine& line, const KeyValue& pair,
                                    Programs& programs) {
  const std::string expected = absl::StrCat("worker ", programs.lines.size());
  if (pair.key.text != expected) {
    return ErrorAt(pair.key,
                   absl::StrCat(QuotedWord(pair.key.text), " where the program of ", expected,
                                " belongs; write '", expected, ": ' and its actions"));
  }
  // Everything keeps its line and column, so that what ParseSchedule says of them is true.
  programs.text.append(
      static_cast<size_t>(line.number - (programs.lines.empty() ? 1 : programs.lines.back())),
      '\n');
  programs.text.append(static_cast<size_t>(pair.value.column) - 1, ' ');
  absl::StrAppend(&programs.text, pair.value.text);
  programs.lines.push_back(line.number);
  return absl::OkStatus();
}

absl::Status PlanReader::Missing(const PlanWord& header, absl::string_view key) const {
  return ErrorAt(header,
                 absl::StrCat("'", header.text, "' has no line '", key, ": '; it needs one"));
}

absl::Status PlanReader::CheckSectionComplete() const {
  if (section_ == Section::kJob) {
    for (const absl::string_view key : {kMicrobatchKey, kGlobalBatchKey, kCostsKey}) {
      if (!keys_.contains(key)) return Missing(header_, key);
    }
  }
  if (section_ == Section::kStage) {
    for (const absl::string_view key : {kWorkerKey, kLayersKey}) {
      if (!keys_.contains(key)) return Missing(header_, key);
    }
  }
  return absl::OkStatus();
}

// A program for each line of the file up to the section's end came back; only those of workers
// count.
absl::StatusOr<Schedule> PlanReader::ParsePrograms(const Programs& programs) const {
  if (programs.lines.empty()) {
    return ErrorAt(programs.header, absl::StrCat("'", programs.header.text,
                                                 "' has no programs; write 'worker 0: ' and its "
                                                 "actions"));
  }
  absl::StatusOr<Schedule> parsed = ParseSchedule(programs.text);
  if (!parsed.ok()) {
    const absl::string_view message = parsed.status().message();
    const bool has_place = !message.empty() && absl::ascii_isdigit(message[0]);
    return has_place ? parsed.status() : ErrorAt(programs.header, message);
  }
  Schedule schedule{.microbatches = parsed->microbatches};
  for (const int line : programs.lines) {
    // ParseSchedule drops nothing but trailing lines without a cell.
    const auto index = static_cast<size_t>(line) - 1;
    schedule.programs.push_back(index < parsed->programs.size() ? std::move(parsed->programs[index])
                                                                : std::vector<Action>());
  }
  for (const WorkerId line : parsed->worker_of_stage) {
    const auto found =
        std::lower_bound(programs.lines.begin(), programs.lines.end(), line.value + 1);
    schedule.worker_of_stage.push_back(WorkerId(static_cast<int>(found - programs.lines.begin())));
  }
  return schedule;
}

absl::StatusOr<PlanText> PlanReader::Finish(int last_line) && {
  if (!started_) {
    return ErrorAt({1, 1, ""},
                   absl::StrCat("the file is empty; a plan begins with '", kFirstLine, "'"));
  }
  SIPHON_RETURN_IF_ERROR(CheckSectionComplete());
  for (const absl::string_view section : {kJobSection, kTrainingSection}) {
    if (!sections_.contains(section)) {
      return ErrorAt({last_line, 1, ""}, absl::StrCat("the section '", section, "' is missing"));
    }
  }
  places_.training = training_.header;
  places_.evaluation = evaluation_.header;
  const int replicas = plan_.training.replicas;
  const WeightRule weight_rule = plan_.training.weight_rule;
  SIPHON_ASSIGN_OR_RETURN(plan_.training, ParsePrograms(training_));
  plan_.training.replicas = replicas;
  plan_.training.weight_rule = weight_rule;
  if (evaluation_.header.line > 0) {
    SIPHON_ASSIGN_OR_RETURN(plan_.evaluation, ParsePrograms(evaluation_));
  }
  SIPHON_RETURN_IF_ERROR(CheckPlan(plan_, places_));
  plan_.workers.resize(plan_.training.programs.size());
  return std::move(plan_);
}

// Without comment and blanks around; empty when there is nothing else.
absl::string_view WordsOf(absl::string_view line) {
  return absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
}

}  // namespace

absl::StatusOr<PlanText> ParsePlanText(absl::string_view text) {
  PlanReader reader;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view words = WordsOf(line);
    if (words.empty()) continue;
    SIPHON_RETURN_IF_ERROR(reader.Add({number, line, words}));
  }
  return std::move(reader).Finish(number);
}

}  // namespace siphon
