#include "partitioner/partition_model.h"
