// What LibTorch's allocator and streams (libc10_cuda) import besides what the project calls. There
// are no graphs, pools of the runtime's own, or entry points of a driver.

#include <cuda_runtime_api.h>

#include "tests/support/fake_cuda/state.h"

#if CUDART_VERSION >= 13000  // of which LibTorch's library is

using siphon::fake_cuda::Finish;

extern "C" {

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  FAKE_CUDA_ENTER();
  *least = 0;
  *greatest = -1;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  FAKE_CUDA_ENTER();
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status,
                                     unsigned long long*, cudaGraph_t*, const cudaGraphNode_t**,
                                     const cudaGraphEdgeData**, size_t*) {
  FAKE_CUDA_ENTER();
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  FAKE_CUDA_ENTER();
  thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  const cudaStreamCaptureMode before = current;
  current = *mode;
  *mode = before;
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t, cudaGraphNode_t*, cudaGraphEdgeData*,
                                         size_t*) {
  return Finish(cudaErrorNotSupported);
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t*, int) {
  return Finish(cudaErrorNotSupported);
}
cudaError_t cudaMallocAsync(void**, size_t, cudaStream_t) { return Finish(cudaErrorNotSupported); }
cudaError_t cudaFreeAsync(void*, cudaStream_t) { return Finish(cudaErrorNotSupported); }
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return Finish(cudaErrorNotSupported);
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return Finish(cudaErrorNotSupported);
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) {
  return Finish(cudaErrorNotSupported);
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return Finish(cudaErrorNotSupported); }
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void**, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult*) {
  return Finish(cudaErrorNotSupported);
}

}  // extern "C"

#endif
