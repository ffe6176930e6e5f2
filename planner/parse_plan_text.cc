#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/plan_file/check_plan.h"
#include "planner/plan_file/job_text.h"
#include "planner/plan_file/plan_keys.h"
#include "planner/plan_file/plan_words.h"
#include "planner/plan_file/program_lines.h"
#include "planner/plan_file/stage_text.h"
#include "planner/plan_file/topology_text.h"
#include "planner/plan_file/worker_text.h"
#include "planner/plan_text.h"
#include "planner/status.h"

namespace siphon {
namespace {

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
  enum class Section {
    kNone,
    kJob,
    kPredicted,
    kTopology,
    kWorker,
    kStage,
    kShared,
    kTraining,
    kEvaluation
  };

  absl::Status Start(const PlanLine& line);
  absl::Status BeginSection(const PlanLine& line);
  absl::Status BeginStage(const PlanWord& number);
  absl::Status BeginWorker(const PlanWord& number);
  absl::Status BeginOnlyOne(const PlanLine& line);
  absl::Status AddContent(const PlanLine& line);
  absl::Status AddPair(const PlanLine& line, const PlanPair& pair);
  absl::Status AddShared(const PlanPair& pair);
  absl::Status OncePerSection(const PlanWord& key);
  absl::Status CheckSectionComplete() const;
  absl::Status CheckAllSections(int last_line) const;
  absl::Status TakePrograms();
  absl::Status TakeMapping();
  void TakeStages();

  PlanText plan_;
  bool started_ = false;
  Section section_ = Section::kNone;
  PlanWord header_;                       // of the section that is being read
  std::set<absl::string_view> keys_;      // of that section, so far
  std::set<absl::string_view> sections_;  // read so far
  PlanPlaces places_;
  std::vector<WorkerLines> workers_;
  std::vector<StageLines> stages_;
  ProgramLines training_;
  ProgramLines evaluation_;
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

absl::Status OutOfOrder(const PlanWord& number, absl::string_view what, int index, size_t next) {
  return ErrorAt(number,
                 absl::StrCat(what, " ", index, " is out of order; the next one is ", next));
}

// Ascending without gaps, so that a large number makes no large table.
absl::Status PlanReader::BeginStage(const PlanWord& number) {
  SIPHON_ASSIGN_OR_RETURN(const int index, ParseSmallNumber(number, 0));
  if (static_cast<size_t>(index) != stages_.size()) {
    return OutOfOrder(number, kStageSection, index, stages_.size());
  }
  const int first_layer = stages_.empty() ? 0 : stages_.back().stage.layers.end;
  stages_.push_back({.header = header_, .first_layer = first_layer});
  section_ = Section::kStage;
  return absl::OkStatus();
}

// Workers of which there is nothing to say may be left out; whether they exist is known at the end.
absl::Status PlanReader::BeginWorker(const PlanWord& number) {
  SIPHON_ASSIGN_OR_RETURN(const int index, ParseSmallNumber(number, 0));
  if (static_cast<size_t>(index) < workers_.size()) {
    return OutOfOrder(number, kWorkerSection, index, workers_.size());
  }
  constexpr int kMostWorkers = 1 << 16;
  if (index >= kMostWorkers) {
    return ErrorAt(number, absl::StrCat("worker ", index, " is one too many; at most ",
                                        kMostWorkers, " workers"));
  }
  workers_.resize(static_cast<size_t>(index) + 1);
  places_.last_worker = header_;
  section_ = Section::kWorker;
  return absl::OkStatus();
}

absl::Status PlanReader::BeginSection(const PlanLine& line) {
  SIPHON_RETURN_IF_ERROR(CheckSectionComplete());
  header_ = WordAt(line, line.words);
  keys_.clear();
  const auto [first, rest] = CutFirstWord(header_);
  if (first.text == kStageSection) return BeginStage(rest);
  if (first.text == kWorkerSection) return BeginWorker(rest);
  return BeginOnlyOne(line);
}

absl::Status PlanReader::BeginOnlyOne(const PlanLine& line) {
  struct Row {
    absl::string_view name;
    Section section;
    PlanWord PlanPlaces::*place;
  };
  static constexpr std::array<Row, 6> kRows = {
      {{kJobSection, Section::kJob, &PlanPlaces::job},
       {kPredictedSection, Section::kPredicted, &PlanPlaces::predicted},
       {kTopologySection, Section::kTopology, &PlanPlaces::topology},
       {kSharedSection, Section::kShared, nullptr},
       {kTrainingSection, Section::kTraining, &PlanPlaces::training},
       {kEvaluationSection, Section::kEvaluation, &PlanPlaces::evaluation}}};
  if (!sections_.insert(line.words).second) {
    return ErrorAt(
        header_, absl::StrCat("a second section ", QuotedWord(line.words), "; put both into one"));
  }
  for (const Row& row : kRows) {
    if (row.name != line.words) continue;
    section_ = row.section;
    if (row.place != nullptr) places_.*row.place = header_;
    return absl::OkStatus();
  }
  return ErrorAt(header_,
                 absl::StrCat("unknown section ", QuotedWord(line.words), "; known: ",
                              absl::StrJoin({kJobSection, kPredictedSection, kTopologySection,
                                             kWorkerSection, kStageSection, kSharedSection,
                                             kTrainingSection, kEvaluationSection},
                                            ", "),
                              " (lines of a section are indented)"));
}

absl::Status PlanReader::AddContent(const PlanLine& line) {
  // Names of parameters may have a colon in them; the last one counts there.
  const size_t colon = section_ == Section::kShared ? line.words.rfind(':') : line.words.find(':');
  const PlanWord all = WordAt(line, line.words);
  if (colon == absl::string_view::npos) {
    return ErrorAt(all, absl::StrCat(QuotedWord(line.words), " has no colon; write 'key: value'"));
  }
  return AddPair(line,
                 {WordAt(line, absl::StripTrailingAsciiWhitespace(line.words.substr(0, colon))),
                  WordAt(line, absl::StripLeadingAsciiWhitespace(line.words.substr(colon + 1)))});
}

absl::Status PlanReader::AddPair(const PlanLine& line, const PlanPair& pair) {
  if (section_ == Section::kTraining) return training_.Add(line, pair);
  if (section_ == Section::kEvaluation) return evaluation_.Add(line, pair);
  if (section_ != Section::kNone) SIPHON_RETURN_IF_ERROR(OncePerSection(pair.key));
  switch (section_) {
    case Section::kJob:
      return ReadJobLine(pair, plan_);
    case Section::kPredicted:
      return ReadPredictedLine(pair, plan_.predicted);
    case Section::kTopology:
      return ReadTopologyLine(pair, plan_.topology);
    case Section::kWorker:
      return ReadWorkerLine(pair, workers_.back());
    case Section::kStage:
      return ReadStageLine(pair, stages_.back());
    case Section::kShared:
      return AddShared(pair);
    default:
      return ErrorAt(WordAt(line, line.words),
                     "a line before the first section; begin with 'job', not indented");
  }
}

absl::Status PlanReader::OncePerSection(const PlanWord& key) {
  if (keys_.insert(key.text).second) return absl::OkStatus();
  return ErrorAt(key, absl::StrCat(QuotedWord(key.text), " stands twice in '", header_.text, "'"));
}

absl::Status PlanReader::AddShared(const PlanPair& pair) {
  PlanSharing shared{.parameter = std::string(pair.key.text)};
  for (const PlanWord& word : SplitWord(pair.value, ',')) {
    SIPHON_ASSIGN_OR_RETURN(const int stage, ParseSmallNumber(word, 0));
    shared.stages.push_back(StageId(stage));
  }
  plan_.shared_parameters.push_back(std::move(shared));
  return absl::OkStatus();
}

absl::Status PlanReader::CheckSectionComplete() const {
  std::vector<absl::string_view> needed;
  if (section_ == Section::kJob) needed = {kMicrobatchKey, kGlobalBatchKey, kCostsKey};
  if (section_ == Section::kStage) needed = {kWorkerKey, kLayersKey};
  for (const absl::string_view key : needed) {
    if (keys_.contains(key)) continue;
    return ErrorAt(header_,
                   absl::StrCat("'", header_.text, "' has no line '", key, ": '; it needs one"));
  }
  return absl::OkStatus();
}

absl::Status PlanReader::CheckAllSections(int last_line) const {
  if (!started_) {
    return ErrorAt({1, 1, ""},
                   absl::StrCat("the file is empty; a plan begins with '", kFirstLine, "'"));
  }
  SIPHON_RETURN_IF_ERROR(CheckSectionComplete());
  for (const absl::string_view section : {kJobSection, kTrainingSection}) {
    if (sections_.contains(section)) continue;
    return ErrorAt({last_line, 1, ""}, absl::StrCat("the section '", section, "' is missing"));
  }
  return absl::OkStatus();
}

absl::Status PlanReader::TakePrograms() {
  const int replicas = plan_.training.replicas;
  const WeightRule weight_rule = plan_.training.weight_rule;
  SIPHON_ASSIGN_OR_RETURN(plan_.training, training_.Parse(places_.training));
  plan_.training.replicas = replicas;
  plan_.training.weight_rule = weight_rule;
  if (places_.evaluation.line > 0) {
    SIPHON_ASSIGN_OR_RETURN(plan_.evaluation, evaluation_.Parse(places_.evaluation));
  }
  return absl::OkStatus();
}

// All workers say their devices, or none does.
absl::Status PlanReader::TakeMapping() {
  std::vector<DeviceId>& devices = plan_.mapping.device_of_worker;
  const auto said = [](const WorkerLines& worker) { return !worker.devices.empty(); };
  if (std::none_of(workers_.begin(), workers_.end(), said)) return absl::OkStatus();
  workers_.resize(std::max(workers_.size(), plan_.training.programs.size()));
  const auto replicas = static_cast<size_t>(plan_.training.replicas);
  for (size_t worker = 0; worker < workers_.size(); ++worker) {
    const size_t count = workers_[worker].devices.size();
    places_.device_of_worker.push_back(workers_[worker].device);
    if (count == replicas) continue;
    const bool nowhere = workers_[worker].device.line == 0;
    return ErrorAt(nowhere ? places_.last_worker : workers_[worker].device,
                   absl::StrCat("worker ", worker, " has ", count, " devices; it needs ", replicas,
                                ", one for each replica"));
  }
  for (size_t replica = 0; replica < replicas; ++replica) {
    for (const WorkerLines& worker : workers_) devices.push_back(worker.devices[replica]);
  }
  return absl::OkStatus();
}

// A memory plan that keeps everything is an empty one.
void PlanReader::TakeStages() {
  for (StageLines& lines : stages_) {
    places_.stages.push_back({lines.header, lines.worker, std::move(lines.groups)});
    plan_.stages.push_back(std::move(lines.stage));
    plan_.memory.stages.push_back(std::move(lines.memory));
  }
  const auto keeps = [](const StagePlan& stage) { return stage == StagePlan(); };
  if (std::all_of(plan_.memory.stages.begin(), plan_.memory.stages.end(), keeps)) {
    plan_.memory.stages.clear();
  }
}

absl::StatusOr<PlanText> PlanReader::Finish(int last_line) && {
  SIPHON_RETURN_IF_ERROR(CheckAllSections(last_line));
  SIPHON_RETURN_IF_ERROR(TakePrograms());
  SIPHON_RETURN_IF_ERROR(TakeMapping());
  TakeStages();
  for (const WorkerLines& lines : workers_) plan_.workers.push_back(lines.worker);
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
