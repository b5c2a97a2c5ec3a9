/* The commands of the measuring side, for the table in moesol.c. argv[0] is the command's name;
 * each returns the exit code. */
#ifndef MOESOL_PROFILER_COMMANDS_H
#define MOESOL_PROFILER_COMMANDS_H

int cmd_run(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_worker(int argc, char **argv); /* not listed: what `moesol run` starts */
int cmd_ceilings(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_doctor(int argc, char **argv);

#endif
