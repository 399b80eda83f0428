#!/bin/sh
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    mkdir -p "$PGDATA"
    initdb --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --auth=scram-sha-256
    PGPASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
    export PGPASSWORD
    shift
    pg_ctl -w start -o "-c listen_addresses= $*"
    createdb --username="$POSTGRES_USER" "$POSTGRES_DB"
    pg_ctl -w -m fast stop
    unset PGPASSWORD
    set -- postgres "$@"
fi
exec "$@" -c listen_addresses='*'
