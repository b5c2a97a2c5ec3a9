/* A command line as one text, quoted so that it can be taken apart again (and pasted in a shell).
 */
#ifndef MOESOL_PROFILER_COMMAND_TEXT_H
#define MOESOL_PROFILER_COMMAND_TEXT_H

#include <stddef.h>

#include "../core/error.h"

/* "moesol" and argv, words with other than plain characters in single quotes. A line that does not
 * fit ends in "...", which command_text_split() refuses. */
void command_text_join(int argc, char **argv, char *text, size_t size);

/* argv of a text that command_text_join() made, without the "moesol"; the words and the array are
 * one allocation: free(*argv). */
int command_text_split(const char *text, int *argc, char ***argv, struct error *err);

#endif
