#include "os/error.h"

#include <errno.h>

enum err os_error(int errnum)
{
    switch (errnum) {
    case ENOMEM:
        return ERR_NOMEM;
    case ENOSPC:
    case EDQUOT:
        return ERR_NOSPC;
    case ENOENT:
    case ENOTDIR:
        return ERR_NOENT;
    case EEXIST:
    case ENOTEMPTY:
        return ERR_EXIST;
    case EACCES:
    case EPERM:
    case EROFS:
        return ERR_ACCESS;
    case EMFILE:
    case ENFILE:
        return ERR_NFILE;
    case EBUSY:
    case ETXTBSY:
        return ERR_BUSY;
    case EAGAIN:
        return ERR_AGAIN;
    case EFBIG:
    case EOVERFLOW:
        return ERR_TOO_LARGE;
    case EINVAL:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
        return ERR_INVALID;
    default:
        return ERR_IO;
    }
}
