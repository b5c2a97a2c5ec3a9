/* getrandom(), and numbers below a limit by rejection. */
#include "secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

uint64_t secret_bits(void) {
    uint64_t bits;
    ssize_t got;
    do
        got = getrandom(&bits, sizeof bits, 0);
    while (got < 0 && errno == EINTR);
    if (got == (ssize_t)sizeof bits)
        return bits;
    fprintf(stderr, "moesol: no random numbers from the operating system: getrandom() failed\n");
    abort();
}

uint64_t secret_below(uint64_t limit) {
    uint64_t most = UINT64_MAX - UINT64_MAX % limit, bits;
    do
        bits = secret_bits();
    while (bits >= most);
    return bits % limit;
}
