# The structs, tables and codes of the Kafka protocol: src/wire/gen.py makes them from
# src/wire/schema, into gen/wire of the build directory.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

file(GLOB wire_schemas CONFIGURE_DEPENDS
    ${CMAKE_SOURCE_DIR}/src/wire/schema/*.txt ${CMAKE_SOURCE_DIR}/src/wire/schema/api/*.txt)
set(wire_gen ${CMAKE_BINARY_DIR}/gen/wire)
set(wire_gen_sources
    ${wire_gen}/messages.c ${wire_gen}/registry.c ${wire_gen}/index.c ${wire_gen}/error.c)
set(wire_gen_headers ${wire_gen}/messages.h ${wire_gen}/api_key.h ${wire_gen}/error.h)

add_custom_command(
    OUTPUT ${wire_gen_sources} ${wire_gen_headers}
    COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/src/wire/gen.py ${wire_gen} ${wire_schemas}
    DEPENDS ${CMAKE_SOURCE_DIR}/src/wire/gen.py ${wire_schemas}
    COMMENT "Generating the Kafka protocol"
    VERBATIM)
add_custom_target(dohle_wire_gen DEPENDS ${wire_gen_sources} ${wire_gen_headers})

target_sources(dohle_wire PRIVATE ${wire_gen_sources} ${wire_gen_headers})
# Whoever includes the headers links dohle_options, directly or through a library.
add_dependencies(dohle_options dohle_wire_gen)
