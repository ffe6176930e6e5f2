#include "pipeline/transport/ring_transport.h"
