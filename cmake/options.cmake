# Warnings, sanitizers and switches, for every target.
option(DOHLE_WERROR "warnings are errors" ON)
set(DOHLE_SANITIZE "" CACHE STRING "sanitizers, as -fsanitize= takes them")

add_library(dohle_options INTERFACE)
target_include_directories(dohle_options INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/gen)
target_compile_definitions(dohle_options INTERFACE _GNU_SOURCE DOHLE_VERSION="${PROJECT_VERSION}")
target_compile_options(dohle_options INTERFACE
    -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings
    -Wvla -Wformat=2 -Wno-unused-parameter -fno-common -ffunction-sections -fdata-sections
    $<$<BOOL:${DOHLE_WERROR}>:-Werror>)
target_link_options(dohle_options INTERFACE -Wl,--gc-sections)
if(DOHLE_SANITIZE)
    target_compile_options(dohle_options INTERFACE -fsanitize=${DOHLE_SANITIZE} -fno-omit-frame-pointer
        -fno-sanitize-recover=all)
    target_link_options(dohle_options INTERFACE -fsanitize=${DOHLE_SANITIZE})
endif()
