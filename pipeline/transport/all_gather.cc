#include "pipeline/transport/all_gather.h"
