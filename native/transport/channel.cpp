#include "transport/channel.h"

namespace weft::transport {

std::string_view to_string(PathKind kind) {
    switch (kind) {
        case PathKind::shm: return "shm";
        case PathKind::tcp: return "tcp";
    }
    return "unknown";
}

}  // namespace weft::transport
