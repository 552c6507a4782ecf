/* Files and directories that the commands touch themselves. */
#ifndef CLI_FILES_H
#define CLI_FILES_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "net/server.h"

/* Where data goes when nobody says: $XDG_STATE_HOME/dohle, else ~/.local/state/dohle (XDG base
 * directory specification: a relative path counts as not set). False when there is no home or the
 * path is too long. */
bool files_state_dir(char *out, size_t out_n);
/* path and what is missing above it; false with errno set. */
bool files_make_dirs(const char *path, mode_t mode);
/* The whole file, at most 1 MiB (EFBIG); false with errno set. out is closed by the caller. */
bool files_read(const char *path, struct buf *out);
/* "LISTENER HOST PORT" lines under another name, then renamed: whoever sees path sees all of it.
 * False with errno set. */
bool files_write_ports(const char *path, const struct server_port *ports, size_t n);

#endif
