/* Processes that a worker started in process groups or sessions of their own. As this process is
 * their subreaper, they become its children when the worker ends. */
#ifndef MOESOL_PROFILER_STRAYS_H
#define MOESOL_PROFILER_STRAYS_H

#include <stdbool.h>
#include <sys/types.h>

/* When a process started, in ticks since the machine's start; 0: not known. */
unsigned long long strays_start_of(pid_t pid);

/* Kills and reaps the children of this process that are as young as the worker, which started then
 * (0: not known, and nothing is done), and their children. Returns whether all are gone. */
bool strays_end(unsigned long long started);

#endif
