#include "cli/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX_BYTES = 1 << 20 };

bool files_state_dir(char *out, size_t out_n)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (state != NULL && state[0] == '/')
        n = snprintf(out, out_n, "%s/dohle", state);
    else if (home != NULL && home[0] == '/')
        n = snprintf(out, out_n, "%s/.local/state/dohle", home);
    return n > 0 && (size_t)n < out_n;
}

static bool make_dir(const char *path, mode_t mode)
{
    struct stat st;
    if (mkdir(path, mode) == 0)
        return true;
    if (errno == EEXIST && stat(path, &st) == 0) {
        errno = ENOTDIR;
        return S_ISDIR(st.st_mode);
    }
    return false;
}

bool files_make_dirs(const char *path, mode_t mode)
{
    char part[PATH_MAX];
    const size_t n = strlen(path);
    if (n == 0 || n >= sizeof part) {
        errno = n == 0 ? ENOENT : ENAMETOOLONG;
        return false;
    }
    memcpy(part, path, n + 1);
    for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (!make_dir(part, mode))
            return false;
        *slash = '/';
    }
    return make_dir(part, mode);
}

static bool read_all(int fd, struct buf *out)
{
    for (;;) {
        if (buf_reserve(out, 4096) != ERR_NONE) {
            errno = ENOMEM;
            return false;
        }
        const ssize_t n = read(fd, out->p + out->n, out->cap - out->n);
        if (n == -1 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0;
        out->n += (size_t)n;
        if (out->n > FILE_MAX_BYTES) {
            errno = EFBIG;
            return false;
        }
    }
}

bool files_read(const char *path, struct buf *out)
{
    buf_init(out);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1)
        return false;
    const bool ok = read_all(fd, out);
    const int saved = errno;
    (void)close(fd);
    errno = saved;
    return ok;
}

bool files_write_ports(const char *path, const struct server_port *ports, size_t n)
{
    char temp[PATH_MAX];
    const int temp_n = snprintf(temp, sizeof temp, "%s.%ld.tmp", path, (long)getpid());
    if (temp_n < 0 || (size_t)temp_n >= sizeof temp) {
        errno = ENAMETOOLONG;
        return false;
    }
    FILE *f = fopen(temp, "we");
    if (f == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        fprintf(f, "%s %s %u\n", ports[i].listener, ports[i].host, ports[i].port);
    const bool written = !ferror(f);
    if (fclose(f) == 0 && written && rename(temp, path) == 0)
        return true;
    const int saved = errno;
    (void)unlink(temp);
    errno = saved;
    return false;
}
