#include "launch/mpi_world.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launch/mpi_world_impl.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr char kBackingVariable[] = "OMPI_MCA_osc_sm_backing_directory";
constexpr char kCrashSignalsVariable[] = "OMPI_MCA_opal_signal";
constexpr char kDefaultBacking[] = "/dev/shm";
constexpr int64_t kPageBytes = 4096;
// What Open MPI 4.1 puts beside the data into a window's file: a little state, a little more for
// each rank (osc_sm_component.c), and rounding; measured: 4.5 kB for 8 ranks.
constexpr int64_t kWindowOverheadBytes = 64 * 1024;
constexpr int64_t kWindowOverheadBytesPerRank = 4 * 1024;
// Open MPI refuses a file that leaves less than 1/20 of its own size free (shmem_mmap_module.c).
constexpr int64_t kSpareFraction = 20;

std::string BackingDirectory() {
  const char* directory = std::getenv(kBackingVariable);
  return directory != nullptr && *directory != '\0' ? directory : kDefaultBacking;
}

// Free bytes of the file system of `directory`; -1 when it cannot be asked.
int64_t FreeBytes(const std::string& directory) {
  struct statvfs stats {};
  if (statvfs(directory.c_str(), &stats) != 0) return -1;
  return static_cast<int64_t>(stats.f_bavail) * static_cast<int64_t>(stats.f_frsize);
}

// `provided`: what MPI says of threads.
absl::Status InitMpi(int* argc, char*** argv, int& provided) {
  int initialized = 0;
  SIPHON_RETURN_IF_ERROR(MpiStatus(MPI_Initialized(&initialized), "MPI_Initialized"));
  if (initialized != 0) {
    return absl::FailedPreconditionError("MPI was initialised before in this process");
  }
  // Whoever sees a rank crash tells of it in a line, which a backtrace of Open MPI's would hide.
  setenv(kCrashSignalsVariable, "", /*overwrite=*/0);
  // One thread at a time makes all calls but MPI_Abort, which a watching thread may make at any
  // time.
  SIPHON_RETURN_IF_ERROR(
      MpiStatus(MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread"));
  return MpiStatus(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
                   "MPI_Comm_set_errhandler");
}

}  // namespace

Bytes SharedWindowFileBytes(Bytes bytes, int ranks) {
  const int64_t file =
      bytes.value + kPageBytes + kWindowOverheadBytes + kWindowOverheadBytesPerRank * ranks;
  return Bytes(file + file / kSpareFraction + 1);
}

absl::Status MpiStatus(int code, absl::string_view doing) {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return absl::InternalError(
      absl::StrCat(doing, ": ", std::string(text, static_cast<size_t>(length))));
}

// [rank]: its host, by the lowest rank there.
absl::StatusOr<std::vector<int>> MpiWorld::Impl::HostsOfRanks() const {
  int lowest = 0;
  SIPHON_RETURN_IF_ERROR(
      MpiStatus(MPI_Allreduce(&rank, &lowest, 1, MPI_INT, MPI_MIN, host), "MPI_Allreduce"));
  std::vector<int> lowest_of(static_cast<size_t>(size), 0);
  SIPHON_RETURN_IF_ERROR(
      MpiStatus(MPI_Allgather(&lowest, 1, MPI_INT, lowest_of.data(), 1, MPI_INT, job),
                "gathering who is on which host"));
  std::vector<int> host_of(lowest_of.size(), 0);
  int hosts = 0;
  for (size_t other = 0; other < lowest_of.size(); ++other) {
    const auto first = static_cast<size_t>(lowest_of[other]);
    host_of[other] = first == other ? hosts++ : host_of[first];
  }
  return host_of;
}

absl::Status MpiWorld::Impl::LookAround() {
  SIPHON_RETURN_IF_ERROR(MpiStatus(MPI_Comm_rank(job, &rank), "MPI_Comm_rank"));
  SIPHON_RETURN_IF_ERROR(MpiStatus(MPI_Comm_size(job, &size), "MPI_Comm_size"));
  SIPHON_RETURN_IF_ERROR(
      MpiStatus(MPI_Comm_split_type(job, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host),
                "MPI_Comm_split_type"));
  SIPHON_RETURN_IF_ERROR(
      MpiStatus(MPI_Comm_set_errhandler(host, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
  SIPHON_RETURN_IF_ERROR(MpiStatus(MPI_Comm_rank(host, &host_rank), "MPI_Comm_rank"));
  SIPHON_RETURN_IF_ERROR(MpiStatus(MPI_Comm_size(host, &host_size), "MPI_Comm_size"));
  SIPHON_ASSIGN_OR_RETURN(host_of_rank, HostsOfRanks());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<MpiWorld>> MpiWorld::Init(int* argc, char*** argv) {
  int provided = MPI_THREAD_SINGLE;
  SIPHON_RETURN_IF_ERROR(InitMpi(argc, argv, provided));
  auto impl = std::make_shared<Impl>();
  impl->has_threads = provided >= MPI_THREAD_SERIALIZED;
  SIPHON_RETURN_IF_ERROR(impl->LookAround());
  if (AnnouncedSize() > 1 && impl->size == 1) {
    return absl::FailedPreconditionError(
        absl::StrCat(AnnouncedSize(),
                     " processes were started, but MPI does not connect them: the launcher "
                     "does not fit this MPI library (with Slurm: srun --mpi=pmix, or mpirun)"));
  }
  auto world = std::unique_ptr<MpiWorld>(new MpiWorld());
  world->impl_ = std::move(impl);
  return world;
}

absl::Status MpiWorld::Renumber(int rank) {
  SIPHON_CHECK(impl_->windows.empty() && impl_->lanes.empty(), "nobody goes by the old numbers");
  MPI_Comm job = MPI_COMM_NULL;
  SIPHON_RETURN_IF_ERROR(
      MpiStatus(MPI_Comm_split(impl_->job, 0, rank, &job), "numbering ranks anew"));
  SIPHON_RETURN_IF_ERROR(
      MpiStatus(MPI_Comm_set_errhandler(job, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
  MPI_Comm_free(&impl_->host);
  if (impl_->job != MPI_COMM_WORLD) MPI_Comm_free(&impl_->job);
  impl_->job = job;
  return impl_->LookAround();
}

int MpiWorld::rank() const { return impl_->rank; }
int MpiWorld::size() const { return impl_->size; }
const std::vector<int>& MpiWorld::host_of_rank() const { return impl_->host_of_rank; }
bool MpiWorld::one_host() const { return impl_->host_size == impl_->size; }
bool MpiWorld::first_on_host() const { return impl_->host_rank == 0; }

absl::StatusOr<std::vector<std::string>> MpiWorld::AllGatherText(const std::string& mine) {
  const size_t ranks = static_cast<size_t>(size());
  const int length = static_cast<int>(mine.size());
  std::vector<int> lengths(ranks, 0), offsets(ranks, 0);
  SIPHON_RETURN_IF_ERROR(
      MpiStatus(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, impl_->job),
                "gathering the lengths of texts"));
  for (size_t rank = 1; rank < ranks; ++rank) {
    offsets[rank] = offsets[rank - 1] + lengths[rank - 1];
  }
  std::string all(static_cast<size_t>(offsets.back() + lengths.back()), '\0');
  SIPHON_RETURN_IF_ERROR(
      MpiStatus(MPI_Allgatherv(mine.data(), length, MPI_CHAR, all.data(), lengths.data(),
                               offsets.data(), MPI_CHAR, impl_->job),
                "gathering texts"));
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < ranks; ++rank) {
    texts.push_back(
        all.substr(static_cast<size_t>(offsets[rank]), static_cast<size_t>(lengths[rank])));
  }
  return texts;
}

// OK where the ranks of this host ask for the same and have the room. Collective on the host.
absl::Status MpiWorld::CheckWindow(Bytes bytes, const std::string& directory) const {
  const int64_t needed = SharedWindowFileBytes(bytes, impl_->host_size).value;
  const int64_t mine[3] = {FreeBytes(directory), bytes.value, -bytes.value};
  int64_t least[3] = {};
  SIPHON_RETURN_IF_ERROR(MpiStatus(MPI_Allreduce(mine, least, 3, MPI_INT64_T, MPI_MIN, impl_->host),
                                   "agreeing on a shared window"));
  if (least[1] != -least[2] || least[1] <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("a shared window of ", least[1], " to ",
                                                   -least[2],
                                                   " bytes: all ranks must ask for the same "
                                                   "positive number"));
  }
  // A single rank's window is ordinary memory.
  if (impl_->host_size == 1 || least[0] >= needed) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the workers' shared memory needs ", FormatBytes(Bytes(needed)), " (", needed, " bytes) in ",
      directory, ", where ",
      least[0] < 0 ? std::string("the free space is unknown (no such directory?)")
                   : absl::StrCat(FormatBytes(Bytes(least[0])), " (", least[0], " bytes) are free"),
      "; set ", kBackingVariable, " to a directory with room (mpirun --mca ",
      "osc_sm_backing_directory DIR), or enlarge ", directory, " (docker run --shm-size)"));
}

// The first rank's error, on all ranks. Collective.
absl::Status MpiWorld::Agree(const absl::Status& mine) {
  const int code = static_cast<int>(mine.code());
  int worst = 0;
  SIPHON_RETURN_IF_ERROR(
      MpiStatus(MPI_Allreduce(&code, &worst, 1, MPI_INT, MPI_MAX, impl_->job), "MPI_Allreduce"));
  if (worst == 0) return absl::OkStatus();
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                          AllGatherText(mine.ok() ? "" : absl::StrCat(code, " ", mine.message())));
  const std::string& first =
      *std::find_if(texts.begin(), texts.end(), [](const auto& text) { return !text.empty(); });
  const size_t space = first.find(' ');
  return absl::Status(static_cast<absl::StatusCode>(std::stoi(first.substr(0, space))),
                      first.substr(space + 1));
}

absl::StatusOr<absl::Span<std::byte>> MpiWorld::SharedWindow(Bytes bytes) {
  // A failing MPI_Win_allocate_shared returns an error on one rank and hangs the others, so that
  // all ranks must have agreed before that it will not fail. Asking for different sizes, or for
  // room that only some of them see, ends here.
  const std::string directory = BackingDirectory();
  SIPHON_RETURN_IF_ERROR(Agree(CheckWindow(bytes, directory)));
  // The host's first rank gives all of it. Windows begin 8 bytes behind a boundary; mappings begin
  // at a page in every process, so that rounding up to a page gives the same place to all ranks.
  const MPI_Aint share = first_on_host() ? static_cast<MPI_Aint>(bytes.value + kPageBytes) : 0;
  void* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  SIPHON_RETURN_IF_ERROR(MpiStatus(
      MPI_Win_allocate_shared(share, 1, MPI_INFO_NULL, impl_->host, &base, &window),
      absl::StrCat("allocating a shared window of ", bytes.value, " bytes in ", directory)));
  impl_->windows.push_back(window);
  MPI_Aint window_bytes = 0;
  int unit = 0;
  SIPHON_RETURN_IF_ERROR(MpiStatus(MPI_Win_shared_query(window, 0, &window_bytes, &unit, &base),
                                   "MPI_Win_shared_query"));
  const int64_t past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(base)) % kPageBytes;
  const absl::Span<std::byte> region(
      static_cast<std::byte*>(base) + (kPageBytes - past) % kPageBytes,
      static_cast<size_t>(bytes.value));
  // Zeroing touches every page now: memory that is missing after all shows here and not in the
  // middle of a step. Each rank touches a part, which spreads the pages over the NUMA nodes of the
  // ranks.
  const auto rank = static_cast<size_t>(impl_->host_rank);
  const auto ranks = static_cast<size_t>(impl_->host_size);
  const size_t begin = region.size() * rank / ranks;
  const size_t end = region.size() * (rank + 1) / ranks;
  std::memset(region.data() + begin, 0, end - begin);
  SIPHON_RETURN_IF_ERROR(MpiStatus(MPI_Barrier(impl_->host), "MPI_Barrier"));
  return region;
}

void MpiWorld::Finalize() {
  if (impl_->finalized.exchange(true)) return;
  for (MPI_Win& window : impl_->windows) MPI_Win_free(&window);
  for (LaneComms& comms : impl_->lanes) {
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  }
  MPI_Comm_free(&impl_->host);
  if (impl_->job != MPI_COMM_WORLD) MPI_Comm_free(&impl_->job);
  MPI_Finalize();
}

void MpiWorld::Abort(int code) {
  if (!impl_->finalized.load()) MPI_Abort(MPI_COMM_WORLD, code);
  _exit(code);
}

}  // namespace siphon
