#include "pipeline/stage_worker.h"
