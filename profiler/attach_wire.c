/* Sending and receiving whole pieces over a socket. */
#include "attach_wire.h"

#include <errno.h>
#include <sys/socket.h>

int attach_send(int socket, const void *data, size_t bytes) {
    const char *next = data;
    while (bytes > 0) {
        ssize_t sent = send(socket, next, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return -1;
        next += sent;
        bytes -= (size_t)sent;
    }
    return 0;
}

int attach_receive(int socket, void *data, size_t bytes) {
    char *next = data;
    while (bytes > 0) {
        ssize_t got = recv(socket, next, bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -1;
        next += got;
        bytes -= (size_t)got;
    }
    return 0;
}
