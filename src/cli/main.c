#include "cli/cli.h"
#include "os/clocks.h"

int main(int argc, char **argv)
{
    return cli_run(argc, argv, os_now().mono_us);
}
