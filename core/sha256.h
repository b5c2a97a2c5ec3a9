/* SHA-256 (FIPS 180-4), for the hashes that records and suites carry. */
#ifndef MOESOL_CORE_SHA256_H
#define MOESOL_CORE_SHA256_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Lower-case hex of the digest and a NUL. */
void sha256_hex(const void *data, size_t size, char hex[65]);

#ifdef __cplusplus
}
#endif
#endif
