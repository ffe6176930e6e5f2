#include "launch/run/record/run_recorder.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launch/output/figure_text.h"
#include "launch/output/memory_cost.h"
#include "launch/output/metrics.h"
#include "launch/output/progress.h"
#include "launch/output/run_summary.h"
#include "launch/output/terminal.h"
#include "launch/output/text_file.h"
#include "launch/output/timeline_page.h"
#include "launch/output/trace.h"
#include "launch/profile/predict_step.h"
#include "launch/run/record/memory_line.h"
#include "launch/run/record/plan_deviation.h"
#include "launch/run/record/run_report.h"
#include "launch/run/seat/training_state.h"
#include "planner/marked_grid.h"
#include "planner/status.h"

namespace siphon {
namespace {

Nanos Now() {
  return Nanos(std::chrono::duration_cast<std::chrono::nanoseconds>(
                   std::chrono::steady_clock::now().time_since_epoch())
                   .count());
}

void ToStandardError(absl::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

double ForwardFlops(const ModelSpec& model) {
  double flops = 0;
  for (const LayerSpec& layer : model.layers) flops += static_cast<double>(layer.forward_flops);
  return flops;
}

bool KnowsMemory(const ModelSpec& model) {
  return std::all_of(model.layers.begin(), model.layers.end(),
                     [](const LayerSpec& layer) { return layer.memory.has_value(); });
}

// What a first look at a run wants to know, before the first step.
std::string Headline(const PreparedJob& prepared) {
  const JobConfig& job = prepared.job;
  const int64_t workers = WorkerCount(prepared.plan.training);
  return absl::StrCat(
      "training ", job.model.kind, " with ", ParameterCount(prepared.model.spec), " parameters",
      job.train.precision == "fp32" ? "" : absl::StrCat(" in ", job.train.precision), ": ",
      CountText(workers, "worker"), ", schedule ", job.pipeline.schedule, ", ",
      CountText(prepared.plan.training.microbatches, "microbatch"), " of ", job.train.microbatch,
      ", ", CountText(job.pipeline.threads_per_worker, "thread"), " a worker");
}

}  // namespace

struct RunRecorder::Impl {
  Impl(const PreparedJob& job, int64_t first_step)
      : prepared(job),
        directory(job.job.output.directory),
        begin(Now()),
        first_step(first_step),
        forward_flops(ForwardFlops(job.model.spec)),
        progress({.first_step = first_step,
                  .total_steps = job.job.train.steps,
                  .columns = TerminalColumns()},
                 begin, ToStandardError) {}

  StepMetrics MetricsOf(const StepSummary& summary, const std::vector<StepRecord>& workers) const {
    const TrainConfig& train = prepared.job.train;
    StepMetrics metrics{.step = summary.step,
                        .loss = summary.loss,
                        .grad_norm = summary.gradient_norm,
                        .learning_rate = summary.learning_rate,
                        .duration = summary.duration,
                        .tokens = train.global_batch * ElementCount(prepared.data.target),
                        .samples = train.global_batch,
                        .forward_flops = forward_flops * train.global_batch,
                        .validation_loss = summary.validation_loss,
                        .replans = summary.replans,
                        .loss_scale = summary.loss_scale,
                        .skipped_steps = summary.skipped_steps};
    for (const StepRecord& record : workers) {
      metrics.workers.push_back({.peak = Bytes(record.peak_bytes),
                                 .busy = Nanos(record.busy_ns),
                                 .wait = Nanos(record.wait_ns),
                                 .swap_wait = Nanos(record.swap_wait_ns),
                                 .recompute = Nanos(record.recompute_ns),
                                 .swapped_d2d = Bytes(record.out_to_peers_bytes),
                                 .swapped_host = Bytes(record.out_to_host_bytes),
                                 .swapped_nvme = Bytes(record.out_to_nvme_bytes),
                                 .second_choices = record.second_choices});
    }
    return metrics;
  }

  void Expect(const SimulatedStep& step) {
    predicted = step;
    deviation.emplace(step, PlanDeviation::Known{.times = !prepared.job.pipeline.profile.empty(),
                                                 .memory = KnowsMemory(prepared.model.spec)});
  }

  // Of a plan that the run follows from now on.
  void ExpectPlan(const PlanText& plan) {
    const auto step = PredictStep(plan);
    if (step.ok()) {
      Expect(*step);
    } else {
      predicted.reset();
      deviation.reset();
    }
  }

  // What goes wrong with a prediction is no reason not to train.
  void WritePrediction() {
    const auto step = PredictStep(prepared.plan_text);
    absl::Status status = step.status();
    if (step.ok()) {
      Expect(*step);
      if (!prepared.job.output.trace) return;
      const bool unit = prepared.plan_text.costs == kUnitCosts;
      status = WriteTextFile(directory + "/predicted.trace.json",
                             TraceJson(unit ? "predicted, unit times" : "predicted", *step));
    }
    if (status.ok()) return;
    // The grid behind the first line is for siphon simulate, which shows it for plan.txt.
    warnings.push_back(absl::StrCat("no prediction: ", SentenceOf(status)));
  }

  absl::Status WriteReport(const std::vector<WorkerTimeline>& workers, int64_t step) const {
    if (!prepared.job.output.report || !predicted.has_value()) return absl::OkStatus();
    const PlanText& plan = replanned.has_value() ? *replanned : prepared.plan_text;
    TimelinePage page = RunReport(plan, *predicted, {step, workers, peaks});
    const std::string line = MemoryLine(prepared);
    if (!line.empty()) page.facts.emplace_back("memory", line);
    if (!replan.empty()) page.facts.emplace_back("plan", replan);
    return WriteTextFile(directory + "/report.html", TimelineHtml(page));
  }

  const PreparedJob& prepared;
  const std::string directory;
  const Nanos begin;
  const int64_t first_step;
  const double forward_flops;
  ProgressPrinter progress;
  std::unique_ptr<MetricsWriter> metrics;  // null when switched off
  int64_t tokens = 0;
  Nanos training;  // all steps together
  MemoryCost memory;
  std::vector<Bytes> peaks;  // [worker], of all steps so far
  std::string trace_path;
  std::optional<SimulatedStep> predicted;
  std::optional<PlanDeviation> deviation;
  std::optional<PlanText> replanned;  // the plan in force, where it is not the job's
  std::string replan;                 // what was said of it
  std::vector<std::string> warnings;
};

RunRecorder::RunRecorder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RunRecorder::~RunRecorder() = default;

absl::StatusOr<std::unique_ptr<RunRecorder>> RunRecorder::Open(const PreparedJob& prepared,
                                                               int64_t first_step) {
  const JobConfig& job = prepared.job;
  auto impl = std::make_unique<Impl>(prepared, first_step);
  const auto refuse = [&job](const absl::Status& status) {
    // A full disk is nothing that the job says.
    if (absl::IsResourceExhausted(status)) return absl::InternalError(status.message());
    return ConfigError(job, "output.directory", status.message());
  };
  std::error_code error;
  std::filesystem::create_directories(impl->directory, error);
  if (error) {
    return refuse(absl::InvalidArgumentError(
        absl::StrCat("cannot make '", impl->directory, "': ", error.message())));
  }
  const std::string plan = ToString(prepared.plan_text);
  if (const auto written = WriteTextFile(impl->directory + "/plan.txt", plan); !written.ok()) {
    return refuse(written);
  }
  if (job.output.metrics) {
    auto writer =
        MetricsWriter::Open(impl->directory + "/metrics.jsonl",
                            first_step > 0 ? std::optional<int64_t>(first_step) : std::nullopt);
    if (!writer.ok()) return refuse(writer.status());
    impl->metrics = *std::move(writer);
  }
  impl->WritePrediction();
  impl->progress.Say(Headline(prepared));
  if (const std::string memory = MemoryLine(prepared); !memory.empty()) {
    impl->progress.Say(memory);
  }
  if (first_step > 0) impl->progress.Say(absl::StrCat("continuing after step ", first_step));
  return std::unique_ptr<RunRecorder>(new RunRecorder(std::move(impl)));
}

// Metrics that cannot be written are no reason to lose the run.
void RunRecorder::Record(const StepSummary& summary, const std::vector<StepRecord>& workers) {
  const StepMetrics metrics = impl_->MetricsOf(summary, workers);
  impl_->tokens += metrics.tokens;
  impl_->training += summary.duration;
  Add(metrics, impl_->memory);
  impl_->peaks.resize(metrics.workers.size());
  for (size_t worker = 0; worker < metrics.workers.size(); ++worker) {
    impl_->peaks[worker] = std::max(impl_->peaks[worker], metrics.workers[worker].peak);
  }
  impl_->progress.Step(metrics, Now());
  if (impl_->deviation.has_value()) {
    if (const auto note = impl_->deviation->Note(metrics); note.has_value()) KeepWarning(*note);
  }
  if (impl_->metrics == nullptr) return;
  const absl::StatusOr<bool> anew = impl_->metrics->BeginAnewIfGone();
  if (anew.ok() && *anew) {
    KeepWarning(absl::StrCat(impl_->metrics->path(),
                             " was removed or moved during the run: it begins anew with step ",
                             summary.step));
  }
  const absl::Status written = anew.ok() ? impl_->metrics->Write(metrics) : anew.status();
  if (!written.ok()) {
    KeepWarning(
        absl::StrCat("no more metrics from step ", summary.step, " on: ", written.message()));
    impl_->metrics.reset();
  }
}

void RunRecorder::RecordTrace(const std::vector<WorkerTimeline>& workers, int64_t step) {
  const absl::Status reported = impl_->WriteReport(workers, step);
  if (!reported.ok()) KeepWarning(absl::StrCat("no report: ", reported.message()));
  const std::string path = impl_->directory + "/measured.trace.json";
  const absl::Status written = siphon::WriteTrace(path, "measured", workers);
  if (written.ok()) {
    impl_->trace_path = path;
  } else {
    KeepWarning(absl::StrCat("no trace: ", written.message()));
  }
}

void RunRecorder::ShowWarning(const std::string& warning) {
  impl_->progress.Say(absl::StrCat("warning: ", warning));
}

void RunRecorder::RecordReplan(const std::string& what, const PlanText& plan) {
  Say(what);
  impl_->replan = what;
  impl_->replanned = plan;
  impl_->ExpectPlan(plan);
  const absl::Status written = WriteTextFile(impl_->directory + "/replanned.txt", ToString(plan));
  if (!written.ok()) KeepWarning(absl::StrCat("no replanned.txt: ", written.message()));
}

void RunRecorder::Say(const std::string& line) { impl_->progress.Say(line); }

void RunRecorder::RecordFallBack(const std::string& what, const FollowedPlan& plan) {
  KeepWarning(what);
  PlanText followed = impl_->replanned.has_value() ? *impl_->replanned : impl_->prepared.plan_text;
  followed.memory = plan.memory;
  followed.training = plan.schedule;
  impl_->ExpectPlan(followed);
}

void RunRecorder::KeepWarning(const std::string& warning) {
  impl_->warnings.push_back(warning);
  ShowWarning(warning);
}

void RunRecorder::Close(const RunOutcome& outcome) {
  const JobConfig& job = impl_->prepared.job;
  RunSummary summary{.first_step = impl_->first_step,
                     .steps_done = outcome.steps_done,
                     .total_steps = job.train.steps,
                     .duration = Now() - impl_->begin,
                     .training = impl_->training,
                     .tokens = impl_->tokens,
                     .last_loss = outcome.last_loss,
                     .last_validation_loss = outcome.last_validation_loss,
                     .parked = ParkedText(impl_->memory),
                     .recomputed = RecomputedText(impl_->memory),
                     .checkpoint = outcome.last_checkpoint,
                     .checkpoint_step = outcome.checkpoint_step,
                     .trace = impl_->trace_path,
                     .warnings = impl_->warnings};
  std::error_code error;
  if (!summary.trace.empty() && !std::filesystem::exists(summary.trace, error)) {
    summary.warnings.push_back(absl::StrCat(summary.trace, " was removed or moved during the run"));
    summary.trace.clear();
  }
  summary.warnings.insert(summary.warnings.begin(), outcome.warnings.begin(),
                          outcome.warnings.end());
  if (impl_->metrics != nullptr) summary.metrics = impl_->metrics->path();
  if (outcome.end == RunEnd::kStopped && !impl_->prepared.resume_command.empty()) {
    summary.next_commands.push_back(impl_->prepared.resume_command);
  }
  if (!outcome.last_checkpoint.empty() && job.model.kind == "gpt" && job.data.kind == "text") {
    const std::string& place =
        job.checkpoint.directory.empty() ? job.output.directory : job.checkpoint.directory;
    summary.next_commands.push_back(absl::StrCat(impl_->prepared.program, " generate --checkpoint ",
                                                 place, " --prompt \"In the beginning\""));
  }
  impl_->progress.Finish();
  ToStandardError(ToString(summary));
}

}  // namespace siphon
