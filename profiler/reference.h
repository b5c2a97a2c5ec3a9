/* The second check of a case, for any back end: a sample of tokens of draw 0 against the CPU kernel
 * `cpu-reference`, which gets only the experts that each token hits. Expected rows are cached. */
#ifndef MOESOL_PROFILER_REFERENCE_H
#define MOESOL_PROFILER_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "../cases/suite.h"
#include "../core/error.h"
#include "../core/record.h"
#include "backend.h"

#define REFERENCE_MAX_TOKENS 3

/* The tokens that are sampled: first, middle and last, each once. Returns how many. */
size_t reference_tokens(int64_t batch_seq_len, int64_t tokens[REFERENCE_MAX_TOKENS]);

/* Output rows of the given tokens of draw 0 of a case: rows is [count, H]. Returns 0, or -1 with
 * *err. */
int reference_rows(const struct suite *suite, const struct suite_case *suite_case,
                   const int64_t *tokens, size_t count, uint16_t *rows, struct error *err);

/* After backend->check() of draw 0: compares the sampled rows of its output, under record_case's
 * atol and rtol, and fills the reference_ members of its correctness. */
int reference_check(const struct backend *backend, struct backend_session *session,
                    const struct suite *suite, const struct suite_case *suite_case,
                    struct record_case *record_case, struct error *err);

#endif
