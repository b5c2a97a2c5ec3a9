/* Text from elsewhere (records, workers, kernels) on its way to a person's screen. */
#ifndef MOESOL_CORE_TEXT_H
#define MOESOL_CORE_TEXT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of the character at `text` that must not reach a screen as it is, 0 for any other: the
 * controls (C0, DEL, and C1 as UTF-8), the line separators, and the marks that turn the direction
 * of what follows, with which a name can pass for another. */
size_t text_unsafe(const char *text);

/* Replaces each of them by question marks, in place. */
void text_disarm(char *text);

#ifdef __cplusplus
}
#endif
#endif
