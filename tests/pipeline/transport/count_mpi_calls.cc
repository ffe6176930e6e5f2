#include "tests/pipeline/transport/count_mpi_calls.h"

#include <mpi.h>

#include <atomic>

namespace siphon {
namespace {

std::atomic<int64_t> calls{0};

}  // namespace

int64_t MpiCallCount() { return calls.load(); }

}  // namespace siphon

// The signature, and the arguments handed on.
#define COUNTED(name, parameters, arguments) \
  extern "C" int name parameters {           \
    ++siphon::calls;                         \
    return P##name arguments;                \
  }

COUNTED(MPI_Send, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c),
        (b, n, t, to, tag, c))
COUNTED(MPI_Recv, (void* b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status* s),
        (b, n, t, from, tag, c, s))
COUNTED(MPI_Isend,
        (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* r),
        (b, n, t, to, tag, c, r))
COUNTED(MPI_Irecv, (void* b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request* r),
        (b, n, t, from, tag, c, r))
COUNTED(MPI_Test, (MPI_Request * r, int* done, MPI_Status* s), (r, done, s))
COUNTED(MPI_Testall, (int n, MPI_Request r[], int* done, MPI_Status s[]), (n, r, done, s))
COUNTED(MPI_Testany, (int n, MPI_Request r[], int* i, int* done, MPI_Status* s), (n, r, i, done, s))
COUNTED(MPI_Testsome, (int n, MPI_Request r[], int* m, int i[], MPI_Status s[]), (n, r, m, i, s))
COUNTED(MPI_Wait, (MPI_Request * r, MPI_Status* s), (r, s))
COUNTED(MPI_Waitall, (int n, MPI_Request r[], MPI_Status s[]), (n, r, s))
COUNTED(MPI_Waitany, (int n, MPI_Request r[], int* i, MPI_Status* s), (n, r, i, s))
COUNTED(MPI_Probe, (int from, int tag, MPI_Comm c, MPI_Status* s), (from, tag, c, s))
COUNTED(MPI_Iprobe, (int from, int tag, MPI_Comm c, int* flag, MPI_Status* s),
        (from, tag, c, flag, s))
COUNTED(MPI_Barrier, (MPI_Comm c), (c))
COUNTED(MPI_Ibarrier, (MPI_Comm c, MPI_Request* r), (c, r))
COUNTED(MPI_Bcast, (void* b, int n, MPI_Datatype t, int root, MPI_Comm c), (b, n, t, root, c))
COUNTED(MPI_Allreduce, (const void* b, void* out, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c),
        (b, out, n, t, op, c))
COUNTED(MPI_Allgather,
        (const void* b, int n, MPI_Datatype t, void* out, int m, MPI_Datatype u, MPI_Comm c),
        (b, n, t, out, m, u, c))
COUNTED(MPI_Put,
        (const void* b, int n, MPI_Datatype t, int to, MPI_Aint at, int m, MPI_Datatype u,
         MPI_Win w),
        (b, n, t, to, at, m, u, w))
COUNTED(MPI_Get,
        (void* b, int n, MPI_Datatype t, int from, MPI_Aint at, int m, MPI_Datatype u, MPI_Win w),
        (b, n, t, from, at, m, u, w))
COUNTED(MPI_Win_sync, (MPI_Win w), (w))
COUNTED(MPI_Win_fence, (int assert, MPI_Win w), (assert, w))
COUNTED(MPI_Win_lock, (int type, int rank, int assert, MPI_Win w), (type, rank, assert, w))
COUNTED(MPI_Win_unlock, (int rank, MPI_Win w), (rank, w))
COUNTED(MPI_Win_lock_all, (int assert, MPI_Win w), (assert, w))
COUNTED(MPI_Win_unlock_all, (MPI_Win w), (w))
COUNTED(MPI_Win_flush, (int rank, MPI_Win w), (rank, w))
COUNTED(MPI_Win_shared_query, (MPI_Win w, int rank, MPI_Aint* n, int* unit, void* base),
        (w, rank, n, unit, base))
