//! Every key of the configuration: name, meaning and legal values. Reading, printing and error
//! messages use this table and nothing else, so that the three never disagree.

use super::units::Quantity::{self, Flow, Length, Size, Speed, Time};

/// The legal values of a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// A quantity with its minimum and maximum, in the smallest unit.
    Quantity(Quantity, i64, i64),
    /// A whole number with its minimum and maximum.
    Count(i64, i64),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// True or false.
    Flag,
    /// An address and port on which to listen.
    Address,
    /// An address and port on which to listen, or "off".
    AddressOrOff,
    /// Any other form: a description with an example.
    Text(&'static str),
}

/// A key of the configuration.
#[derive(Debug)]
pub(super) struct Key {
    pub name: &'static str,
    /// The meaning, in one sentence.
    pub says: &'static str,
    pub form: Form,
}

impl Form {
    /// The legal values as text, for comments and messages.
    pub fn rule(self) -> String {
        match self {
            Form::Quantity(q, min, max) => {
                format!("{} from {:?} to {:?}", q.a(), q.text(min), q.text(max))
            }
            Form::Count(min, i64::MAX) => format!("a whole number from {min}"),
            Form::Count(min, max) => format!("a whole number from {min} to {max}"),
            Form::Choice(words) => {
                let words: Vec<_> = words.iter().map(|w| format!("{w:?}")).collect();
                format!("one of {}", words.join(", "))
            }
            Form::Flag => "true or false".into(),
            Form::Address => "an address and port such as \"127.0.0.1:7711\" (port 0: any)".into(),
            Form::AddressOrOff => {
                "an address and port such as \"127.0.0.1:7712\" (port 0: any), or \"off\"".into()
            }
            Form::Text(what) => what.into(),
        }
    }
}

pub(super) const KM_1000: i64 = 100_000_000;
const HOUR: i64 = 3_600_000;
const NETWORKS: &str =
    "a list of addresses and networks, such as [\"10.0.0.7\", \"2001:db8::/64\"]";

macro_rules! keys {
    ($($id:ident: $name:literal, $form:expr, $says:literal;)*) => {
        $(pub(super) const $id: Key = Key { name: $name, says: $says, form: $form };)*
    };
}

keys! {
    TICK: "tick", Form::Quantity(Time, 10, 10_000), "Time between two ticks of every scene.";

    ARBITERS: "arbiters", Form::Count(0, 1_024),
        "Threads over which the regions are spread; 0 = one per core.";

    REGION_THREADS: "region_threads", Form::Count(1, 256),
        "Most threads that work on one tick of a region. All regions of the process share the threads beside their own.";

    DATA_DIR: "data_dir", Form::Text("the path of a folder, relative to this file's folder"),
        "Folder in which a single-process server keeps checkpoints and the players' last positions; the next start \
         continues from there. Default: nothing is kept when the process ends.";

    DEMO: "demo", Form::Flag,
        "Whether demo NPCs roam every scene, and scenes with the kinds of the example game have its rules, to try a server \
         out; `purview dev` always has them.";

    STOP_GRACE: "grace", Form::Quantity(Time, 1_000, 2 * HOUR),
        "How long the system that runs this process waits before it kills a process that is shutting down: \
         terminationGracePeriodSeconds of Kubernetes, TimeoutStopSec of systemd. The minimum is shown by `purview check`.";

    WS: "ws", Form::Address, "The address on which WebSocket clients connect.";
    TCP: "tcp", Form::AddressOrOff,
        "The address on which clients with length-prefixed frames over TCP connect.";
    RATE_LIMIT: "rate_limit", Form::Count(1, 100_000),
        "Messages per second that are read of a session on average; who sends more is read more slowly, and is closed \
         after 10 s of it.";
    BURST: "burst", Form::Count(1, 1_000_000), "Messages that are read of a session in one burst: what a client sends late, after a stall, is one.";
    HEARTBEAT: "heartbeat", Form::Quantity(Time, 100, HOUR),
        "A session that sends nothing for this long is closed.";
    HANDSHAKE_TIMEOUT: "handshake_timeout", Form::Quantity(Time, 100, 10 * 60_000),
        "A connection without a valid hello after this time is closed.";
    SEND_QUEUE: "send_queue", Form::Count(2, 65_536),
        "Frames queued for a slow client before they are merged into the latest state.";
    SLOW_CLOSE: "slow_close", Form::Quantity(Time, 100, HOUR),
        "A client that reads nothing for this long is closed.";
    GRACE_PERIOD: "grace_period", Form::Quantity(Time, 0, 10 * 60_000),
        "How long a player stays in the scene after the client's connection breaks, so that the client can resume; \
         0ms = the player leaves at once.";
    STORE_WAIT: "store_wait", Form::Quantity(Time, 0, 60_000),
        "How long a join waits while the store of players' records is out of reach; then it is refused, and may be repeated.";
    MAX_SESSIONS: "max_sessions", Form::Count(1, 1_000_000), "Most sessions at the same time.";

    LOGIC_LISTEN: "listen", Form::AddressOrOff,
        "The address on which logic workers connect: programs with the rules of the game, over gRPC. A gateway does not \
         listen there; it asks the workers of the nodes about its players.";
    LOGIC_TOKEN_FILE: "token_file", Form::Text("the path of a file, relative to this file's folder"),
        "File with the token that logic workers must show, at least 32 bytes. Default: none; needed beyond this machine.";
    LOGIC_RESUME: "resume", Form::Quantity(Time, 100, HOUR),
        "How long a logic worker without a connection can resume its session.";
    LOGIC_TAKEOVER: "takeover", Form::Quantity(Time, 100, 60_000),
        "After how long without a connection, or without an answer, the regions of a logic worker go to others.";
    LOGIC_ASK: "ask", Form::Choice(&["nobody", "joins", "jumps", "both"]),
        "About which players logic workers are asked whether they may come: those that join, those that clients take \
         elsewhere, or both.";
    LOGIC_ANSWER: "answer_within", Form::Quantity(Time, 10, 60_000),
        "How long the answer of a logic worker may take.";
    LOGIC_NO_ANSWER: "no_answer", Form::Choice(&["admit", "refuse"]),
        "What becomes of a player about which no logic worker answers.";
    LOGIC_WORKERS: "workers", Form::Count(1, 1_024), "Most logic workers that are connected to a process.";

    LISTEN: "listen", Form::AddressOrOff, "The address of the console, metrics and health checks.";

    TOKEN_FILE: "token_file", Form::Text("the path of a file, relative to this file's folder"),
        "File with the token for reading /api, at least 32 bytes; created if missing. Default: on loopback no token \
         is needed; elsewhere each start creates a token in a file that the log names.";
    COMMAND_TOKEN_FILE: "command_token_file",
        Form::Text("the path of a file, relative to this file's folder"),
        "File with the token for commands (POST), at least 32 bytes; it permits reading, too; created if missing. \
         Default: each start creates a token in a file that the log names.";
    HOSTS: "hosts", Form::Text("names, comma-separated, without scheme and port: \"console.internal\""),
        "Host names of the console, in addition to IP addresses and \"localhost\". Requests under any other name are \
         refused, so that a foreign web page cannot reach the console.";

    CLUSTER_NAME: "name", Form::Text("1 to 64 bytes of printable text"),
        "The cluster's name. Processes of different clusters refuse each other and use different keys in etcd.";
    NODE: "node", Form::Text("1 to 255 bytes of printable text"),
        "This process's name, unique in the cluster. Default: the machine's name and the peer port.";
    PEERS: "listen", Form::Address, "The address on which other processes of the cluster connect.";
    ADVERTISE: "advertise", Form::Text("host:port, for example \"node-3.internal:7790\""),
        "The address under which other processes reach this one. Default: `listen`.";
    ETCD: "etcd",
        Form::Text("one or more comma-separated addresses, such as \"http://127.0.0.1:2379\""),
        "The etcd that holds membership, leases and the layout.";
    ETCD_USER: "etcd_user", Form::Text("a name"),
        "The etcd user, if etcd requires one; needs `etcd_password_file`.";
    ETCD_PASSWORD_FILE: "etcd_password_file",
        Form::Text("the path of a file, relative to this file's folder"),
        "File with the password of `etcd_user`.";
    POSTGRES: "postgres",
        Form::Text("an address such as \"postgres://purview@127.0.0.1:5432/purview\", or \"off\""),
        "The PostgreSQL that stores checkpoints. The password belongs in `postgres_password_file`.";
    POSTGRES_PASSWORD_FILE: "postgres_password_file",
        Form::Text("the path of a file, relative to this file's folder"),
        "File with the password of the user in `postgres`.";
    CHECKPOINT: "checkpoint", Form::Quantity(Time, 100, HOUR),
        "Time between two checkpoints of a region. After a failure at most this much is lost of NPCs and other \
         entities that no client steers. At most 600 ticks.";
    LEASE: "lease", Form::Quantity(Time, 1_000, 10 * 60_000),
        "A node that does not renew its lease at etcd for this long loses its regions; whole seconds.";
    DRAIN: "drain", Form::Quantity(Time, 0, HOUR),
        "How long a node that is shutting down may take to migrate its regions to other nodes.";
    CAPACITY: "capacity", Form::Count(1, 1_000_000),
        "Capacity of this node relative to other nodes: a node of 200 gets twice as much load as a node of 100.";

    UNAUTHENTICATED: "unauthenticated", Form::Count(1, 1_000_000),
        "Most connections without a valid hello at the same time; they do not count as sessions. One more closes the \
         oldest connection of the address that has most.";
    PROXIES: "proxies", Form::Text(NETWORKS),
        "Proxies that begin each connection with a PROXY protocol header, version 2. Limits and logs then use the \
         client address in the header. Headers from other addresses are refused.";
    ORIGINS: "origins",
        Form::Text("a list of origins, such as [\"https://game.example\", \"http://localhost:8080\"]"),
        "Origins of the web pages that may connect. Default: all. Programs other than browsers send no origin.";
    LIMITS: "limits", Form::Text("a section, [gateway.limits]"),
        "Limits per source address. IPv6 addresses count by their first 64 bits, and by their first 48 bits with 16 times \
         these numbers.";
    CONNECTIONS: "connections", Form::Count(1, 1_000_000), "Most connections of one address at the same time.";
    HANDSHAKES: "handshakes", Form::Count(1, 1_000_000),
        "Most connections of one address without a valid hello; one more closes the oldest of them.";
    FAILED_TOKENS: "failed_tokens", Form::Count(1, 1_000_000),
        "Invalid tokens from one address within a minute; one more blocks the address.";
    BLOCK: "block", Form::Quantity(Time, 1_000, HOUR),
        "How long new connections of a blocked address are refused.";
    EXEMPT: "exempt", Form::Text(NETWORKS),
        "Addresses and networks without these limits: load tests, or a proxy that does not name its clients.";
    INSECURE: "insecure", Form::Flag,
        "Whether traffic to peers, etcd and PostgreSQL may leave this machine unencrypted. Only for a network that \
         only the cluster can reach.";

    LISTENER_TLS: "tls", Form::Text("a section with `certificate` and `key`"),
        "The certificate that clients are shown. Without this section connections are not encrypted.";
    LISTENER_CERTIFICATE: "certificate",
        Form::Text("the path of a file (PEM), relative to this file's folder"),
        "The certificate chain: the certificate, then its intermediates. Reloaded when the file changes.";
    LISTENER_KEY: "key", Form::Text("the path of a file (PEM), relative to this file's folder"),
        "The private key of that certificate. Reloaded when the file changes.";

    TLS: "tls", Form::Text("a section, [cluster.tls]"),
        "Certificates. With this section all traffic with peers, etcd and PostgreSQL uses mutual TLS; without it none is \
         encrypted.";
    CERTIFICATE: "certificate", Form::Text("the path of a file (PEM), relative to this file's folder"),
        "The certificate of this process; it must name the host in `advertise`.";
    PRIVATE_KEY: "key", Form::Text("the path of a file (PEM), relative to this file's folder"),
        "The private key of that certificate.";
    AUTHORITY: "authority", Form::Text("the path of a file (PEM), relative to this file's folder"),
        "The certificate authorities that this process trusts.";

    SECRET_FILE: "secret_file", Form::Text("the path of a file, relative to this file's folder"),
        "File with the secret, at least 32 bytes, that signs tokens. `serve` and `node` need this or `keys_file`. \
         Reloaded when the file changes.";
    KEYS_FILE: "keys_file", Form::Text("the path of a file, relative to this file's folder"),
        "File with a JSON Web Key Set that verifies tokens, by `kid`: oct (HS256), RSA (RS256), EC with P-256 (ES256), \
         OKP with Ed25519 (EdDSA). Reloaded when the file changes.";
    ISSUER: "issuer", Form::Text("a text, for example \"https://login.example\""),
        "The `iss` that a token must have. Empty: any.";
    AUDIENCE: "audience", Form::Text("a text, for example \"my-game\""),
        "The `aud` that a token must have or contain. Empty: any.";
    EXPIRY: "expiry", Form::Choice(&["required", "optional"]),
        "Whether a token must state its expiry time (`exp`).";
    DUPLICATE: "duplicate", Form::Choice(&["replace", "refuse", "allow"]),
        "What happens when a subject opens a second session in the cluster: the newer session replaces the older, or is \
         refused, or both stay. Default of `purview dev`: allow.";
    SUBJECT_SESSIONS: "max_sessions", Form::Count(1, 1_000_000),
        "Most sessions of one subject at the same time at a gateway, from a valid hello on; one more is closed with 4012. \
         No limit by default where `duplicate` is \"allow\".";

    LEVEL: "level",
        Form::Text("\"error\", \"warn\", \"info\", \"debug\", \"trace\" or \"off\", also by module: \
                    \"info,purview_server::gateway=debug\""),
        "Lowest level of log lines that are written.";
    FORMAT: "format", Form::Choice(&["text", "json"]), "Format of log lines.";

    NAME: "name", Form::Text("1 to 64 bytes of printable text"), "The scene's name, unique in a server.";
    WIDTH: "width", Form::Quantity(Length, 100, KM_1000), "Extent along x, whole lands.";
    DEPTH: "depth", Form::Quantity(Length, 100, KM_1000), "Extent along z, whole lands.";
    HEIGHT_LIMIT: "height_limit", Form::Quantity(Length, 100, KM_1000),
        "Positions lie at most so far above and below height 0.";
    LAND: "land", Form::Quantity(Length, 100, KM_1000),
        "Side of a land, a power of two times the patch.";
    REGION: "region", Form::Text("two whole numbers from 1, for example [2, 2]"),
        "Size of a region in lands, along x and z.";
    PATCH: "patch", Form::Quantity(Length, 1, KM_1000),
        "Side of a patch, where one layer is enough. Default: a sixteenth of the land.";
    LAYER: "layer", Form::Text("a list of { name, patch }"),
        "Patch grids; players use the first. Replaces `patch`.";
    KIND: "kind", Form::Text("a list of { name, layer, speed, properties, watch, sights }"),
        "Kinds of entities; the first is \"player\", in the first layer.";
    SIGHTS: "sights", Form::Text("a list of ranges, for example [[\"near\"], [\"near\", \"middle\"]]"),
        "Patches only, and only of the first kind: beside the scene's range, the rings in which a client may ask to \
         be shown what is not a player.";
    PROPERTY_ID: "id", Form::Count(0, 63),
        "The property's number on the wire, unique in its kind; 0 is \"appearance\".";
    PROPERTY_TYPE: "type",
        Form::Choice(&["any", "bool", "int", "float", "text", "bytes", "list", "map"]),
        "The values that the property takes; nil fits every type.";
    PROPERTY_AUDIENCE: "audience", Form::Choice(&["viewers", "owner", "bonded", "server"]),
        "Which clients are told the property.";
    DETAIL: "detail", Form::Choice(&["near", "middle", "far"]),
        "The farthest ring in which viewers are told changes; beyond it they keep the last value.";
    WRITER: "writer", Form::Choice(&["logic", "owner"]),
        "Who sets the property: game logic alone, or the player's client, too.";
    PERSIST: "persist", Form::Flag,
        "Whether the property is stored with the player's last position and restored at the next join.";
    PROPERTY_MAX: "max", Form::Count(1, 1_024),
        "Longest value, bytes of MessagePack.";
    VISIBILITY: "visibility", Form::Choice(&["patches", "circle", "all"]),
        "Which entities are in range: rings of patches, a circle, or all (one region only).";
    ENTER: "enter", Form::Quantity(Length, 1, KM_1000),
        "Circle only: an entity nearer than this comes into range.";
    LEAVE: "leave", Form::Quantity(Length, 1, KM_1000),
        "Circle only: an entity farther than this goes out of range; greater than `enter`.";
    RANGE: "range", Form::Text("\"full\", or a list of \"near\", \"middle\", \"far\""),
        "Patches only: the rings in which players see each other, and all else unless their clients ask for \
         one of the kind's `sights`.";
    PATCH_MARGIN: "patch_margin", Form::Quantity(Length, 0, KM_1000),
        "Patches only: how much nearer each of two entities in view of each other counts, at most half a patch; \
         \"auto\" = 2 m, or half a patch where that is less.";
    VIEW_CAP: "view_cap", Form::Count(1, 1_000), "Most players in one player's view list.";
    VIEW_MARGIN: "view_margin", Form::Quantity(Length, 0, 100_000),
        "How much nearer a new player must be to replace a player in a view list.";
    BONDS: "bonds", Form::Text("{ kinds, cap, enter, leave, fight }, each of which may be left out"),
        "Bonds between players: bonded players come first in each other's view lists.";
    WATCH: "watch", Form::Text("a section: { kinds = [\"player\"], enter = \"20m\", leave = \"25m\" }"),
        "What entities of the kind watch: the game's logic is told when one comes near, and when it is gone.";
    WATCH_KINDS: "kinds", Form::Text("a list of names, for example [\"player\"]"),
        "The kinds that are watched.";
    WATCH_ENTER: "enter", Form::Quantity(Length, 1, KM_1000),
        "An entity nearer than this is sighted.";
    WATCH_LEAVE: "leave", Form::Quantity(Length, 1, KM_1000),
        "An entity farther than this is lost; at least `enter`. Default: a quarter more than `enter`.";
    BOND_KINDS: "kinds", Form::Text("a list of names, for example [\"couple\", \"party\", \"fight\"]"),
        "Kinds of bonds, strongest first; an action aimed at another player makes a bond of the kind \"fight\".";
    BOND_CAP: "cap", Form::Count(0, 1_000),
        "Most bonded players with priority in a view list: the strongest and nearest ones.";
    BOND_ENTER: "enter", Form::Quantity(Length, 0, KM_1000),
        "Bonded players nearer than this come into range, whatever the scene's own range; 0 = the scene's range.";
    BOND_LEAVE: "leave", Form::Quantity(Length, 0, KM_1000),
        "Bonded players farther than this go out of range; greater than `enter`, or 0 with it.";
    FIGHT: "fight", Form::Quantity(Time, 0, 24 * HOUR),
        "How long a fight lasts after the last action aimed at the other player; 0 = actions make no bonds.";
    RATES: "rates", Form::Text("{ near, middle, far }, each a time of whole ticks"),
        "Time between two updates of an entity in view, per ring; whole ticks.";
    NEAR: "near", Form::Quantity(Time, 10, HOUR / 4), "In the viewer's own patch.";
    MIDDLE: "middle", Form::Quantity(Time, 10, HOUR / 4), "In the first ring around it.";
    FAR: "far", Form::Quantity(Time, 10, HOUR / 4), "In the second ring around it.";
    UPDATE_ERROR: "update_error", Form::Text("{ min, share }, or \"off\""),
        "How wrong a client may show an entity before it is told at once: the greater of two figures; \"off\" = clients \
         are told by the rates alone.";
    UPDATE_MIN: "min", Form::Quantity(Length, 1, 5_000), "The tolerance for near entities.";
    UPDATE_SHARE: "share", Form::Text("a share from \"0%\" to \"100%\", in tenths of a percent"),
        "The tolerance as a share of the distance.";
    FRAME_BUDGET: "frame_budget", Form::Quantity(Size, 64, 1 << 20),
        "Most bytes of moves in one frame; the rest waits for the next tick.";
    EGRESS: "egress", Form::Quantity(Flow, 4_000, 1_000_000_000),
        "Most that one client is sent, or \"off\": rates stretch, those of far entities first.";
    PACE: "pace", Form::Text("{ acts, bytes }, each of which may be left out"),
        "What one client may make others be told in a second.";
    PACE_ACTS: "acts", Form::Count(1, 1_000), "Actions of a client in a second.";
    PACE_BYTES: "bytes", Form::Quantity(Size, 1_024, 1 << 20),
        "Bytes of a client's actions and of the properties that it sets, in a second.";
    CROWD: "crowd", Form::Text("{ max, every }, or \"off\""),
        "What clients that ask for it are told of the players beyond their view lists.";
    CROWD_MAX: "max", Form::Count(1, 1_000), "Most players in a crowd, the nearest ones.";
    CROWD_EVERY: "every", Form::Quantity(Time, 10, HOUR / 4),
        "Time between two tellings of a crowd; whole ticks.";
    HANDOFF_MARGIN: "handoff_margin", Form::Quantity(Length, 0, KM_1000),
        "How far past a border an entity goes before its handoff.";
    TOP_SPEED: "top_speed", Form::Quantity(Speed, 1, 10_000_000),
        "Top speed of all entities; no grant exceeds it.";
    SPEED: "speed", Form::Quantity(Speed, 0, 10_000_000),
        "Top speed of the kind without a grant; default: the scene's top speed.";
    MOVES: "moves", Form::Choice(&["judged", "trusted"]),
        "How clients move: \"judged\": by paths and vectors that the server validates; \"trusted\": by positions that the \
         server accepts, as in recordings.";
    TELEPORTS: "teleports", Form::Choice(&["logic", "clients"]),
        "What decides where players appear and teleport: only the server's logic, or clients as well, whose \
         teleports no rule of movement judges.";
    MOVEMENT: "movement",
        Form::Text("{ tile, command, grace, leash, allowance, climb_up, climb_down }, each of which may be \
                    left out"),
        "Limits for the validation of moves.";
    MOVE_TILE: "tile", Form::Quantity(Length, 1, 100_000),
        "Side of a tile in a scene without a map.";
    COMMAND: "command", Form::Quantity(Time, 50, 10_000),
        "A walking client sends a move command at least this often.";
    GRACE: "grace", Form::Quantity(Time, 10, 10_000),
        "How much longer an entity walks on without a move command; at least one tick.";
    LEASH: "leash", Form::Quantity(Time, 50, 30_000),
        "A client stops when no move command of this age was acknowledged; at least `command`.";
    ALLOWANCE: "allowance", Form::Quantity(Time, 51, 60_000),
        "How much more walking a client may claim than time has passed; greater than `leash`.";
    CLIMB_UP: "climb_up", Form::Quantity(Length, 0, 100_000),
        "How much higher the next tile may be; without `climb_up` and `climb_down` heights do not limit walking.";
    CLIMB_DOWN: "climb_down", Form::Quantity(Length, 0, 100_000),
        "How much lower the next tile may be; default: `climb_up`.";
    BAND: "band", Form::Quantity(Length, 0, KM_1000),
        "Width of the band that a region mirrors to its neighbours; \"auto\" = the narrowest legal width.";
    LINES: "lines", Form::Count(1, 1_000_000), "Planes (lines) over which players without a chosen plane are spread.";
    PLANE_GROUPS: "plane_groups", Form::Count(1, 256),
        "Groups of planes with regions of their own; the groups may run on different nodes.";
    LINE_CAPACITY: "line_capacity", Form::Count(1, 1_000_000), "Most players in a line.";
    MAP: "map", Form::Text("a section, [scene.map]"),
        "The walkable area: blocked tiles, heights, doors. Without it the scene is flat and walkable everywhere.";
    TILE: "tile", Form::Quantity(Length, 1, 100_000),
        "Side of a tile of the map; it divides the scene's sides.";
    FILE: "file",
        Form::Text("the path of a file, relative to this file's folder: a Tiled map (.tmx, .tmj, .json) or a \
                    grey-scale picture (.png), of a tile or pixel for each tile"),
        "The file of blocked tiles.";
    MAP_LAYER: "layer", Form::Text("the name of a tile layer"),
        "Tiled maps only: the layer whose tiles are blocked.";
    THRESHOLD: "threshold", Form::Count(1, 255),
        "Pictures only: the grey level, up to 255, from which a pixel counts as light.";
    BLOCKED: "blocked", Form::Choice(&["dark", "light"]),
        "Pictures only: which pixels are blocked.";
    HEIGHT: "height",
        Form::Text("the path of a grey-scale picture (.png), relative to this file's folder, of a pixel for \
                    each tile"),
        "Heights of the tiles; replaces heights in a Tiled map.";
    HEIGHT_STEP: "height_step", Form::Quantity(Length, 1, 1_500),
        "Height of one grey level, or of one step of the Tiled property `height`.";
    HEIGHT_ZERO: "height_zero", Form::Count(0, 65_535),
        "The grey level of the height picture that means height 0.";
    DOOR: "door", Form::Text("a list of { name, tiles, open }"),
        "Doors and bridges, in addition to those of a Tiled map.";
    DOOR_NAME: "name", Form::Text("1 to 64 bytes of printable text"), "The name by which the logic opens and closes the door.";
    TILES: "tiles", Form::Text("four whole numbers, for example [10, 4, 2, 1]"),
        "West and north edge, width and depth, in tiles.";
    OPEN: "open", Form::Flag, "Whether the door is open at the start.";
    SPAWN: "spawn", Form::Text("two lengths, for example [\"10m\", \"20m\"]"),
        "Where a player without a position of its own appears, x and z. Default: the middle of the map.";
}

/// The word of `known` that is nearest to `word`, if it is near enough to be a likely typing error.
pub(super) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let lower = word.to_lowercase().replace('-', "_");
    let limit = (lower.chars().count() / 3).max(2);
    known
        .iter()
        .map(|k| (strsim::levenshtein(&lower, k), *k))
        .filter(|(d, k)| *d <= limit && *d < k.len())
        .min_by_key(|(d, _)| *d)
        .map(|(_, k)| k)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found() {
        let known = ["heartbeat", "burst", "ws", "tcp"];
        assert_eq!(nearest("heart_beat", &known), Some("heartbeat"));
        assert_eq!(nearest("brust", &known), Some("burst"));
        assert_eq!(nearest("wss", &known), Some("ws"));
        assert_eq!(nearest("elephant", &known), None);
    }
}
