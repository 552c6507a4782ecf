/* A worker's view of the files: its own vfs, and the calls that wait for the device. */
#ifndef OS_DISK_H
#define OS_DISK_H

#include "os/vfs.h"

struct os_disk {
    struct disk disk;
    struct os_vfs vfs;
};

void os_disk_init(struct os_disk *d, size_t fds_max);
void os_disk_close(struct os_disk *d);

#endif
