#include "launch/output/metrics.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launch/output/text_file.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Keys in the order in which they are set, for people who read the file.
using Json = nlohmann::ordered_json;

double Seconds(Nanos time) { return static_cast<double>(time.value) / 1e9; }

double PerSecond(double amount, Nanos time) { return time.value > 0 ? amount / Seconds(time) : 0; }

Json PerWorker(const StepMetrics& step, const std::function<Json(const WorkerMetrics&)>& value) {
  Json list = Json::array();
  for (const WorkerMetrics& worker : step.workers) list.push_back(value(worker));
  return list;
}

// The lines of `text` that belong to the first `steps` steps. One that is no whole object was being
// written when its run was killed.
std::string LinesUpTo(const std::string& text, int64_t steps) {
  std::string kept;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const Json object = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) continue;
    const auto step = object.find("step");
    if (step == object.end() || !step->is_number_integer()) continue;
    if (step->get<int64_t>() <= steps) absl::StrAppend(&kept, line, "\n");
  }
  return kept;
}

}  // namespace

double TokensPerSecond(const StepMetrics& step) {
  return PerSecond(static_cast<double>(step.tokens), step.duration);
}

double TeraflopsPerSecond(const StepMetrics& step) {
  return PerSecond(3 * step.forward_flops, step.duration) * 1e-12;
}

double BubbleFraction(const StepMetrics& step) {
  if (step.workers.empty() || step.duration.value <= 0) return 0;
  double busy = 0;
  for (const WorkerMetrics& worker : step.workers) busy += Seconds(worker.busy);
  return 1 - busy / (static_cast<double>(step.workers.size()) * Seconds(step.duration));
}

std::string MetricsLine(const StepMetrics& step) {
  Json line;
  line["step"] = step.step;
  line["loss"] = step.loss;
  line["grad_norm"] = step.grad_norm;
  line["learning_rate"] = step.learning_rate;
  line["tokens_per_second"] = TokensPerSecond(step);
  line["samples_per_second"] = PerSecond(static_cast<double>(step.samples), step.duration);
  line["tflops"] = TeraflopsPerSecond(step);
  line["step_seconds"] = Seconds(step.duration);
  line["bubble_fraction"] = BubbleFraction(step);
  line["peak_bytes"] = PerWorker(step, [](const auto& worker) { return worker.peak.value; });
  line["swapped_out_bytes"] = {
      {"d2d", PerWorker(step, [](const auto& worker) { return worker.swapped_d2d.value; })},
      {"host", PerWorker(step, [](const auto& worker) { return worker.swapped_host.value; })},
      {"nvme", PerWorker(step, [](const auto& worker) { return worker.swapped_nvme.value; })}};
  line["recompute_seconds"] =
      PerWorker(step, [](const auto& worker) { return Seconds(worker.recompute); });
  line["exposed_wait_seconds"] =
      PerWorker(step, [](const auto& worker) { return Seconds(worker.wait); });
  line["swap_wait_seconds"] =
      PerWorker(step, [](const auto& worker) { return Seconds(worker.swap_wait); });
  line["second_choice_groups"] =
      PerWorker(step, [](const auto& worker) { return worker.second_choices; });
  line["replans"] = step.replans;
  if (step.loss_scale.has_value()) {
    line["loss_scale"] = *step.loss_scale;
    line["skipped_steps"] = step.skipped_steps;
  }
  if (step.validation_loss.has_value()) line["validation_loss"] = *step.validation_loss;
  return line.dump() + "\n";
}

absl::StatusOr<std::unique_ptr<MetricsWriter>> MetricsWriter::Open(
    const std::string& path, std::optional<int64_t> resumed_after) {
  std::string kept;
  if (resumed_after.has_value()) {
    SIPHON_ASSIGN_OR_RETURN(const std::string before, ReadTextFileIfThere(path));
    kept = LinesUpTo(before, *resumed_after);
  }
  SIPHON_RETURN_IF_ERROR(WriteTextFile(path, kept));
  std::unique_ptr<MetricsWriter> writer(new MetricsWriter);
  writer->path_ = path;
  SIPHON_RETURN_IF_ERROR(writer->OpenFile());
  return writer;
}

MetricsWriter::~MetricsWriter() {
  if (file_ >= 0) close(file_);
}

absl::Status MetricsWriter::OpenFile() {
  const int file = open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) {
    return absl::InvalidArgumentError(absl::StrCat("writing ", path_, ": ", std::strerror(errno)));
  }
  if (file_ >= 0) close(file_);
  file_ = file;
  return absl::OkStatus();
}

absl::StatusOr<bool> MetricsWriter::BeginAnewIfGone() {
  struct stat written = {};
  struct stat there = {};
  if (fstat(file_, &written) != 0) return false;
  if (stat(path_.c_str(), &there) == 0) {
    // Not by its number alone, which some network file systems make up anew.
    const bool same = there.st_dev == written.st_dev && there.st_ino == written.st_ino;
    if (same || written.st_nlink > 0) return false;
    return absl::FailedPreconditionError(
        absl::StrCat("another file has taken the place of ", path_, "; is another run in there?"));
  }
  // A directory that cannot be looked into is not gone.
  if (errno != ENOENT && errno != ENOTDIR) return false;
  std::error_code error;  // what fails here, the next line says
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
  SIPHON_RETURN_IF_ERROR(WriteTextFile(path_, ""));
  SIPHON_RETURN_IF_ERROR(OpenFile());
  return true;
}

absl::Status MetricsWriter::Write(const StepMetrics& step) {
  const off_t end = lseek(file_, 0, SEEK_END);
  absl::Status status = WriteAll(file_, MetricsLine(step), path_);
  if (!status.ok() && end >= 0 && ftruncate(file_, end) != 0) {
    return Annotate(status, absl::StrCat("half a line is left at byte ", end));
  }
  return status;
}

}  // namespace siphon
