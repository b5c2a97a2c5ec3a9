/* SOL-ExecBench's problem files: definition.json says what a problem is, workload.jsonl has a case
 * a line. Those of the MoE token-repeat problem become a suite. Both are untrusted input. What a
 * file has that is not supported is an error that names it; no key is passed over in silence. */
#ifndef MOESOL_CASES_DEFINITION_H
#define MOESOL_CASES_DEFINITION_H

#include "../core/error.h"
#include "suite.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PROBLEM_BYTES_MOST (1u << 20)
#define PROBLEM_NOTES_MOST 8

struct problem_file {
    const char *path; /* for messages */
    const char *text;
    size_t length;
};

/* What the files leave to the tool, or say in more than one way: a text each, for people. */
struct problem_notes {
    char texts[PROBLEM_NOTES_MOST][400];
    size_t count;
};

/* Makes the text of a suite.json (malloc()ed, the caller's), named after the definition, one case
 * a workload, the notes in it; the same files give the same text. The reference in the definition
 * is Python, and is not run. Returns 0, or -1 with *err (EXIT_USAGE). */
int definition_to_suite(const struct problem_file *definition, const struct problem_file *workload,
                        char **suite_text, struct problem_notes *notes, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
