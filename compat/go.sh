# What the clients in Go have in common: package program in go/. Sourced after common.sh. Go must be on the
# PATH, as new as go.mod says: Debian's is too old for today's clients.
build_go() { # into $program
    program=$(cache_dir "$(basename "$here")")/client
    (cd "$here" && GOTOOLCHAIN=local GOFLAGS=-mod=readonly go build -o "$program" .)
}
