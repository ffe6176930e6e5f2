#ifndef SIPHON_PIPELINE_TORCH_ATEN_H_
#define SIPHON_PIPELINE_TORCH_ATEN_H_

// LibTorch's door: the only header of the project that includes it, and precompiled. ATen, the
// autograd engine and custom functions; not torch/torch.h, which takes four times as long to
// compile.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/version.h>

#endif  // SIPHON_PIPELINE_TORCH_ATEN_H_
