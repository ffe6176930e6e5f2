#include "launch/checkpoint/checkpoint_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "launch/checkpoint/checkpoint.h"
#include "launch/checkpoint/sidecar.h"
#include "planner/status.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kPartial = ".partial";
constexpr absl::string_view kReplaced = ".replaced";
constexpr absl::string_view kRemoved = ".removed";

std::string HiddenName(int64_t step, absl::string_view ending) {
  return absl::StrCat(".", CheckpointName(step), ending);
}

// 120 of ".step-00000120.partial" with that ending; of "step-00000120" with none.
std::optional<int64_t> StepOf(absl::string_view name, absl::string_view ending) {
  if (!ending.empty() && !(absl::ConsumePrefix(&name, ".") && absl::ConsumeSuffix(&name, ending))) {
    return std::nullopt;
  }
  int64_t step = 0;
  const absl::string_view whole = name;
  if (!absl::ConsumePrefix(&name, "step-") || !absl::SimpleAtoi(name, &step)) return std::nullopt;
  if (whole != CheckpointName(step)) return std::nullopt;
  return step;
}

absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  if (error) return FileError(error.value(), absl::StrCat(directory, ": listing the directory"));
  std::sort(names.begin(), names.end());
  return names;
}

std::string In(const std::string& directory, absl::string_view name) {
  return fs::path(directory) / std::string(name);
}

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

absl::StatusOr<int64_t> SequenceOf(const std::string& path) {
  const std::string sidecar_path = In(path, kSidecarName);
  SIPHON_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(sidecar_path, kMostJsonBytes));
  const auto sidecar = ParseSidecar(text);
  if (!sidecar.ok()) return Annotate(sidecar.status(), sidecar_path);
  return sidecar->sequence;
}

// flock on the directory itself: nothing to clean up after a crash.
absl::StatusOr<std::shared_ptr<const void>> Hold(const std::string& path, int kind) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return FileError(errno, absl::StrCat(path, ": opening the directory"));
  std::shared_ptr<const void> hold(new int(descriptor), [](const void* opened) {
    ::close(*static_cast<const int*>(opened));
    delete static_cast<const int*>(opened);
  });
  // File systems without locks give other errors; there the hold protects nothing, and reading
  // still works.
  if (::flock(descriptor, kind | LOCK_NB) < 0 && errno == EWOULDBLOCK) return nullptr;
  return hold;
}

absl::Status Rename(const std::string& from, const std::string& to, const FileOperations& files) {
  if (files.rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return FileError(errno, absl::StrCat(from, ": renaming to ", to));
}

// With the two names exchanged at once, or where the file system cannot, with the old one set aside
// first.
absl::Status Replace(const std::string& partial, const std::string& final_path,
                     const std::string& replaced, const FileOperations& files) {
  if (files.exchange(partial.c_str(), final_path.c_str()) == 0) return absl::OkStatus();
  if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) {
    return FileError(errno, absl::StrCat(partial, ": exchanging with ", final_path));
  }
  SIPHON_RETURN_IF_ERROR(Rename(final_path, replaced, files));
  const absl::Status status = Rename(partial, final_path, files);
  if (!status.ok()) files.rename(replaced.c_str(), final_path.c_str());
  return status;
}

// Out of sight in one step, so that a crash never leaves half of it under its name.
absl::Status Delete(const std::string& directory, const StoredCheckpoint& checkpoint,
                    const FileOperations& files) {
  SIPHON_ASSIGN_OR_RETURN(const auto hold, Hold(checkpoint.path, LOCK_EX));
  if (hold == nullptr) return absl::OkStatus();  // being read: the next save tries again
  const std::string removed = In(directory, HiddenName(checkpoint.step, kRemoved));
  SIPHON_RETURN_IF_ERROR(RemoveTree(removed, files));
  SIPHON_RETURN_IF_ERROR(Rename(checkpoint.path, removed, files));
  return RemoveTree(removed, files);
}

}  // namespace

std::string CheckpointName(int64_t step) { return absl::StrFormat("step-%08d", step); }

std::string PartialPath(const std::string& directory, int64_t step) {
  return In(directory, HiddenName(step, kPartial));
}

absl::StatusOr<std::vector<StoredCheckpoint>> ListCheckpoints(const std::string& directory) {
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(directory));
  std::vector<StoredCheckpoint> found;
  for (const std::string& name : names) {
    const auto step = StepOf(name, "");
    const auto replaced = StepOf(name, kReplaced);
    const bool set_aside = replaced && !Exists(In(directory, CheckpointName(*replaced)));
    if (!step && !set_aside) continue;
    StoredCheckpoint checkpoint{.step = step ? *step : *replaced, .path = In(directory, name)};
    checkpoint.sequence = SequenceOf(checkpoint.path);
    found.push_back(std::move(checkpoint));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::pair(a.sequence.value_or(-1), a.step) < std::pair(b.sequence.value_or(-1), b.step);
  });
  return found;
}

absl::Status CleanCheckpointDirectory(const std::string& directory, const FileOperations& files) {
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(directory));
  absl::Status first;
  for (const std::string& name : names) {
    const std::string path = In(directory, name);
    const auto replaced = StepOf(name, kReplaced);
    if (replaced && !Exists(In(directory, CheckpointName(*replaced)))) {
      first.Update(Rename(path, In(directory, CheckpointName(*replaced)), files));
    } else if (replaced || StepOf(name, kPartial) || StepOf(name, kRemoved)) {
      first.Update(RemoveTree(path, files));
    }
  }
  return first;
}

absl::StatusOr<std::string> PublishCheckpoint(const std::string& partial,
                                              const FileOperations& files) {
  const std::string directory = fs::path(partial).parent_path();
  const auto step = StepOf(fs::path(partial).filename().string(), kPartial);
  if (!step) {
    return absl::InternalError(absl::StrCat(partial, ": is not a path of BeginCheckpoint"));
  }
  const std::string final_path = In(directory, CheckpointName(*step));
  const std::string replaced = In(directory, HiddenName(*step, kReplaced));
  if (!Exists(final_path)) {
    SIPHON_RETURN_IF_ERROR(Rename(partial, final_path, files));
    SIPHON_RETURN_IF_ERROR(SyncDirectory(directory, files));
    return final_path;
  }
  if (!Exists(In(final_path, kSidecarName))) {
    return absl::InvalidArgumentError(absl::StrCat(
        final_path, ": is there and is not a checkpoint (it has no ", kSidecarName,
        "); it is not overwritten: move it away or choose another checkpoint.directory"));
  }
  SIPHON_RETURN_IF_ERROR(Replace(partial, final_path, replaced, files));
  SIPHON_RETURN_IF_ERROR(SyncDirectory(directory, files));
  // The new one stands; if the old one cannot be deleted now, the next save does it.
  RemoveTree(partial, files).IgnoreError();
  RemoveTree(replaced, files).IgnoreError();
  return final_path;
}

absl::Status PruneCheckpoints(const std::string& directory, const std::string& newest, int64_t keep,
                              const FileOperations& files) {
  if (keep <= 0) return absl::OkStatus();
  SIPHON_ASSIGN_OR_RETURN(std::vector<StoredCheckpoint> found, ListCheckpoints(directory));
  std::erase_if(found, [&](const StoredCheckpoint& checkpoint) {
    return checkpoint.path == newest || !checkpoint.sequence.ok();
  });
  absl::Status first;
  const int64_t others = keep - 1;  // beside the newest
  const int64_t count = static_cast<int64_t>(found.size()) - others;
  for (int64_t index = 0; index < count; ++index) {
    first.Update(Delete(directory, found[static_cast<size_t>(index)], files));
  }
  return first;
}

absl::StatusOr<std::shared_ptr<const void>> HoldForReading(const std::string& path) {
  return Hold(path, LOCK_SH);
}

absl::StatusOr<std::shared_ptr<const void>> HoldAlone(const std::string& path) {
  return Hold(path, LOCK_EX);
}

absl::StatusOr<std::string> NewestCheckpoint(const std::string& directory) {
  SIPHON_ASSIGN_OR_RETURN(const std::vector<StoredCheckpoint> found, ListCheckpoints(directory));
  const StoredCheckpoint* newest = nullptr;
  for (const StoredCheckpoint& checkpoint : found) {
    if (checkpoint.sequence.ok()) newest = &checkpoint;
  }
  for (const StoredCheckpoint& checkpoint : found) {
    // Its place in time is unknown. A later step says that work would be lost silently by taking an
    // earlier one.
    if (!checkpoint.sequence.ok() && (newest == nullptr || checkpoint.step > newest->step)) {
      return absl::InvalidArgumentError(
          absl::StrCat(checkpoint.sequence.status().message(), "; ", checkpoint.path,
                       " may be the newest checkpoint: repair it or move it away",
                       newest == nullptr ? "" : absl::StrCat(" to continue from ", newest->path)));
    }
  }
  if (newest != nullptr) return newest->path;
  return absl::NotFoundError(absl::StrCat(directory, ": holds no complete checkpoint"));
}

}  // namespace siphon
