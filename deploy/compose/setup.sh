#!/bin/sh
# Makes certificates, passwords and tokens, once, and gives each service those that it needs, in a volume of its own
# and owned by the user of that service. A second run changes nothing.
set -eu
umask 077
made=/volumes/authority
if [ ! -e "$made/done" ]; then
    # What an interrupted run has left.
    rm -rf "${made:?}/"*
    purview certs "$made/certs" --node node-1 --node node-2 --node node-3 \
        --gateway gateway-1 --gateway gateway-2 --name etcd --name postgres \
        --name nodes --days 3650
    for secret in token.secret postgres.password logic.token console.token command.token; do
        head -c 32 /dev/urandom | base64 >"$made/$secret"
    done
    : >"$made/done"
fi

# give VOLUME UID FILE...: copies files into a volume.
give() {
    volume=/volumes/$1
    uid=$2
    shift 2
    for file in "$@"; do
        # A process that reads meanwhile has the old file or the new one.
        cp "$made/$file" "$volume/.new"
        chown "$uid:$uid" "$volume/.new"
        mv "$volume/.new" "$volume/${file##*/}"
    done
    chown "$uid:$uid" "$volume"
}

for node in node-1 node-2 node-3; do
    give "$node" 65532 certs/ca.pem "certs/$node.pem" "certs/$node.key" token.secret \
        postgres.password logic.token console.token command.token
done
for gateway in gateway-1 gateway-2; do
    give "$gateway" 65532 certs/ca.pem "certs/$gateway.pem" "certs/$gateway.key" token.secret \
        postgres.password console.token command.token
done
give etcd 65532 certs/ca.pem certs/etcd.pem certs/etcd.key
give postgres 999 certs/ca.pem certs/postgres.pem certs/postgres.key postgres.password
give worker 65532 certs/ca.pem logic.token
# Tokens for the bots of the profile `bots`, which last a day.
for n in $(seq 1 "$BOTS"); do
    purview token "bot-$n" --for 24h --set "token.secret_file=$made/token.secret"
done >"$made/bots.tokens"
give bots 65532 bots.tokens
# Data belong to the users of their services.
chown 65532:65532 /volumes/etcd-data
chown 999:999 /volumes/postgres-data
echo "certificates, passwords and tokens are there"
