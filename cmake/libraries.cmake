# What the libraries need beyond each other.
include(cmake/wire.cmake OPTIONAL)
dohle_link(dohle_wire dep_z dep_lz4 dep_zstd dep_snappy)
dohle_link(dohle_os Threads::Threads)
dohle_link(dohle_net dep_ev)
dohle_link(dohle_cli dep_jansson)
