#include "pipeline/transport/transport.h"
