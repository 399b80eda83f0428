//! Every key of the configuration: its name, what it says, and what it may say. Reading, printing
//! and error messages all go by this table.

use super::units::Quantity::{self, Length, Size, Speed, Time};

/// What a key may say.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// A quantity, from and to these figures in its smallest unit.
    Quantity(Quantity, i64, i64),
    /// A whole number, from and to.
    Count(i64, i64),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// True or false.
    Flag,
    /// An address and port on which to listen.
    Address,
    /// An address and port on which to listen, or "off".
    AddressOrOff,
    /// Anything else: what it is, with an example.
    Text(&'static str),
}

/// A key.
#[derive(Debug)]
pub(super) struct Key {
    pub name: &'static str,
    /// What it is, one sentence.
    pub says: &'static str,
    pub form: Form,
}

impl Form {
    /// What would be right, for comments and messages.
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

    DATA_DIR: "data_dir", Form::Text("the path of a folder, from this file's folder"),
        "Folder in which a server that is a single process keeps checkpoints and players' last places; it goes on \
         from there. Default: nothing outlives the process.";

    DEMO_NPCS: "demo_npcs", Form::Choice(&["off", "on"]),
        "Whether demo NPCs roam every scene, to try a server out; `purview dev` always has them.";

    STOP_GRACE: "grace", Form::Quantity(Time, 1_000, 2 * HOUR),
        "After this long a process that is asked to end is killed: terminationGracePeriodSeconds of Kubernetes, \
         TimeoutStopSec of systemd. At least what it may take, as `purview check` tells.";

    WS: "ws", Form::Address, "Where WebSocket clients connect.";
    TCP: "tcp", Form::AddressOrOff, "Where clients with length-prefixed frames over TCP connect.";
    RATE_LIMIT: "rate_limit", Form::Count(1, 100_000),
        "Messages a second that a session may send in the long run.";
    BURST: "burst", Form::Count(1, 1_000_000), "Messages that a session may send at once.";
    HEARTBEAT: "heartbeat", Form::Quantity(Time, 100, HOUR),
        "A session silent for this long is closed.";
    HANDSHAKE_TIMEOUT: "handshake_timeout", Form::Quantity(Time, 100, 10 * 60_000),
        "A connection that has not said hello by then is closed.";
    SEND_QUEUE: "send_queue", Form::Count(2, 65_536),
        "Frames that wait for a slow client before they are merged into its latest state.";
    SLOW_CLOSE: "slow_close", Form::Quantity(Time, 100, HOUR),
        "A client that takes nothing for this long is closed.";
    LINGER: "linger", Form::Quantity(Time, 0, 10 * 60_000),
        "For how long a player stays in its scene when its client's connection breaks, for the client to come back; 0ms = not at all.";
    MAX_SESSIONS: "max_sessions", Form::Count(1, 1_000_000), "Sessions at once.";

    LISTEN: "listen", Form::AddressOrOff, "Where the console, metrics and health are served.";

    TOKEN_FILE: "token_file", Form::Text("the path of a file, from this file's folder"),
        "File with the token for reading /api, at least 32 bytes; it is made if it is missing. Default: on \
         loopback anybody reads; elsewhere a token is made at each start, in a file that the log names.";
    COMMAND_TOKEN_FILE: "command_token_file",
        Form::Text("the path of a file, from this file's folder"),
        "File with the token for commands (POST), at least 32 bytes, which reads, too; it is made if it is \
         missing. Default: one is made at each start, in a file that the log names.";
    HOSTS: "hosts", Form::Text("names, comma-separated, without scheme and port: \"console.internal\""),
        "Names by which the console may be called, beside IP addresses and \"localhost\": a page of another \
         site cannot reach it under its own name.";

    CLUSTER_NAME: "name", Form::Text("1 to 64 bytes"),
        "The cluster's name: processes of another one are not talked to, and keep apart in etcd.";
    NODE: "node", Form::Text("1 to 255 bytes"),
        "This process's name, unique in the cluster. Default: the machine's name and the peers' port.";
    PEERS: "listen", Form::Address, "Where the other processes of the cluster connect.";
    ADVERTISE: "advertise", Form::Text("host:port, for example \"node-3.internal:7790\""),
        "Where the others find this process. Default: where it listens.";
    ETCD: "etcd",
        Form::Text("one or more addresses, parted by commas, such as \"http://127.0.0.1:2379\""),
        "The etcd by which the cluster agrees.";
    ETCD_USER: "etcd_user", Form::Text("a name"),
        "The user at etcd, where etcd asks for one; with `etcd_password_file`.";
    ETCD_PASSWORD_FILE: "etcd_password_file",
        Form::Text("the path of a file, from this file's folder"),
        "File with the password of that user.";
    POSTGRES: "postgres",
        Form::Text("an address such as \"postgres://purview@127.0.0.1:5432/purview\", or \"off\""),
        "The PostgreSQL that keeps checkpoints; a password stands in `postgres_password_file`.";
    POSTGRES_PASSWORD_FILE: "postgres_password_file",
        Form::Text("the path of a file, from this file's folder"),
        "File with the password of the user in `postgres`.";
    CHECKPOINT: "checkpoint", Form::Quantity(Time, 100, HOUR),
        "Time between two checkpoints of a region: at most so much is lost of what no client steers. At most 600 ticks.";
    LEASE: "lease", Form::Quantity(Time, 1_000, 10 * 60_000),
        "A node of which etcd hears nothing for this long owns nothing any more; whole seconds.";
    DRAIN: "drain", Form::Quantity(Time, 0, HOUR),
        "How long a node that is asked to end may take to give its regions to others.";
    CAPACITY: "capacity", Form::Count(1, 1_000_000),
        "How much this node carries, against the others: one of 200 gets twice as much as one of 100.";

    UNAUTHENTICATED: "unauthenticated", Form::Count(1, 1_000_000),
        "Connections at once that have not said a valid hello; they take no session. When there is one more, the one \
         makes room that has waited longest of the address that has most.";
    PROXIES: "proxies", Form::Text(NETWORKS),
        "Proxies that begin each connection with a header of the PROXY protocol, version 2; its client's address \
         counts for limits and logs. Others are not believed.";
    ORIGINS: "origins",
        Form::Text("a list of origins, such as [\"https://game.example\", \"http://localhost:8080\"]"),
        "Origins of the web pages that may connect. Default: all. Programs that are no browsers name none.";
    LIMITS: "limits", Form::Text("a section, [gateway.limits]"),
        "What one source address may have; IPv6 addresses count by their first 64 bits.";
    CONNECTIONS: "connections", Form::Count(1, 1_000_000), "Connections of one address at once.";
    HANDSHAKES: "handshakes", Form::Count(1, 1_000_000),
        "Connections of one address that have not said a valid hello; with one more the oldest of them ends.";
    FAILED_TOKENS: "failed_tokens", Form::Count(1, 1_000_000),
        "Tokens of one address within a minute that do not hold; then it is blocked.";
    BLOCK: "block", Form::Quantity(Time, 1_000, HOUR),
        "For how long new connections of such an address are refused.";
    EXEMPT: "exempt", Form::Text(NETWORKS),
        "Addresses and networks without these limits: load tests, or a proxy that names no clients.";
    INSECURE: "insecure", Form::Flag,
        "Whether peers, etcd and PostgreSQL may be talked to in plain text beyond this machine: only in a network \
         that nobody else can enter.";

    LISTENER_TLS: "tls", Form::Text("a section with `certificate` and `key`"),
        "The certificate that is shown to whoever connects. Without it, plain.";
    LISTENER_CERTIFICATE: "certificate",
        Form::Text("the path of a file (PEM), from this file's folder"),
        "The certificate, with those between it and its authority. It is read again when it changes.";
    LISTENER_KEY: "key", Form::Text("the path of a file (PEM), from this file's folder"),
        "The private key of that certificate. It is read again when it changes.";

    TLS: "tls", Form::Text("a section, [cluster.tls]"),
        "Certificates: with them peers, etcd and PostgreSQL are talked to by mutual TLS alone. Without it, plain.";
    CERTIFICATE: "certificate", Form::Text("the path of a file (PEM), from this file's folder"),
        "The certificate of this process, which names the host of its `advertise`.";
    PRIVATE_KEY: "key", Form::Text("the path of a file (PEM), from this file's folder"),
        "The private key of that certificate.";
    AUTHORITY: "authority", Form::Text("the path of a file (PEM), from this file's folder"),
        "The authorities whose certificates are let in.";

    SECRET_FILE: "secret_file", Form::Text("the path of a file, from this file's folder"),
        "File with the secret, at least 32 bytes, that signs tokens. `node` and `gateway` do not start without this or \
         `keys_file`. Read again when it changes.";
    KEYS_FILE: "keys_file", Form::Text("the path of a file, from this file's folder"),
        "File with a JSON Web Key Set: keys that check tokens, by their `kid`: oct (HS256), RSA (RS256), EC with P-256 \
         (ES256), OKP with Ed25519 (EdDSA). Read again when it changes.";
    ISSUER: "issuer", Form::Text("a text, for example \"https://login.example\""),
        "What a token must have as `iss`. Empty: anything.";
    AUDIENCE: "audience", Form::Text("a text, for example \"my-game\""),
        "What a token must have as `aud`, or among it. Empty: anything.";
    EXPIRY: "expiry", Form::Choice(&["required", "optional"]),
        "Whether a token must say when it expires (`exp`).";
    DUPLICATE: "duplicate", Form::Choice(&["replace", "refuse", "allow"]),
        "What becomes of two sessions of one subject in the cluster: the newer one replaces the older, or is refused, or \
         both stay. `purview dev` allows both unless this is said.";

    LEVEL: "level",
        Form::Text("\"error\", \"warn\", \"info\", \"debug\", \"trace\" or \"off\", also by module: \
                    \"info,purview_server::gateway=debug\""),
        "Least level of log lines.";
    FORMAT: "format", Form::Choice(&["text", "json"]), "Form of log lines.";

    NAME: "name", Form::Text("1 to 64 bytes"), "The scene's name, unique in a server.";
    WIDTH: "width", Form::Quantity(Length, 100, KM_1000), "Extent along x, whole lands.";
    DEPTH: "depth", Form::Quantity(Length, 100, KM_1000), "Extent along z, whole lands.";
    LAND: "land", Form::Quantity(Length, 100, KM_1000),
        "Side of a land, a power of two times the patch.";
    REGION: "region", Form::Text("two whole numbers from 1, for example [2, 2]"),
        "Size of a region in lands, along x and z.";
    PATCH: "patch", Form::Quantity(Length, 1, KM_1000),
        "Side of a patch, where one layer is enough. Default: a sixteenth of the land.";
    LAYER: "layer", Form::Text("a list of { name, patch }"),
        "Patch grids; the first is that of players. In place of `patch`.";
    KIND: "kind", Form::Text("a list of { name, layer, speed }"),
        "Kinds of entities; the first is \"player\", in the first layer.";
    VISIBILITY: "visibility", Form::Choice(&["patches", "circle", "all"]),
        "Who is in range: rings of patches, a circle, or everybody (a single region only).";
    ENTER: "enter", Form::Quantity(Length, 1, KM_1000),
        "Circle only: what is this near comes into range.";
    LEAVE: "leave", Form::Quantity(Length, 1, KM_1000),
        "Circle only: what is farther goes out of range; greater than `enter`.";
    RANGE: "range", Form::Text("\"full\", or a list of \"near\", \"middle\", \"far\""),
        "Patches only: the rings that an entity sees if it asks for none.";
    VIEW_CAP: "view_cap", Form::Count(1, 1_000), "Most players in one player's view list.";
    VIEW_MARGIN: "view_margin", Form::Quantity(Length, 0, 100_000),
        "How much nearer a stranger must be to replace somebody in a view list.";
    BONDS: "bonds", Form::Text("{ kinds, cap, enter, leave, fight }, each of which may be left out"),
        "What makes players special to each other, so that they are seen before others.";
    BOND_KINDS: "kinds", Form::Text("a list of names, for example [\"couple\", \"party\", \"fight\"]"),
        "Kinds of bonds, strongest first; acts aimed at others make bonds of the kind \"fight\".";
    BOND_CAP: "cap", Form::Count(0, 1_000),
        "Most companions who are seen before others, the strongest and nearest ones.";
    BOND_ENTER: "enter", Form::Quantity(Length, 0, KM_1000),
        "What is this near comes into range for its companions, however far others see; 0 = as others.";
    BOND_LEAVE: "leave", Form::Quantity(Length, 0, KM_1000),
        "Companions who are farther go out of range; greater than `enter`, or 0 with it.";
    FIGHT: "fight", Form::Quantity(Time, 0, 24 * HOUR),
        "How long a fight lasts after the last act aimed at the other; 0 = acts make no bonds.";
    RATES: "rates", Form::Text("{ near, middle, far }, each a time of whole ticks"),
        "Time between two updates of something seen, by its ring; whole ticks.";
    NEAR: "near", Form::Quantity(Time, 10, HOUR / 4), "In the patch one stands in.";
    MIDDLE: "middle", Form::Quantity(Time, 10, HOUR / 4), "In the ring around it.";
    FAR: "far", Form::Quantity(Time, 10, HOUR / 4), "In the ring around that.";
    FRAME_BUDGET: "frame_budget", Form::Quantity(Size, 64, 1 << 20),
        "Most bytes of moves in one frame; what does not fit waits a tick.";
    HANDOFF_MARGIN: "handoff_margin", Form::Quantity(Length, 0, KM_1000),
        "How far past a border an entity goes before it is handed off.";
    TOP_SPEED: "top_speed", Form::Quantity(Speed, 1, 10_000_000),
        "Top speed of entities, whatever is granted to them.";
    SPEED: "speed", Form::Quantity(Speed, 0, 10_000_000),
        "How fast entities of the kind may be of their own; default: the scene's top speed.";
    MOVES: "moves", Form::Choice(&["judged", "trusted"]),
        "How clients move: by paths and vectors that the server judges, or by places that it trusts, \
         as recordings have them.";
    JUMPS: "jumps", Form::Choice(&["clients", "logic"]),
        "Who says where players appear and jump to: their clients, too, or the server's logic alone.";
    MOVEMENT: "movement",
        Form::Text("{ tile, word, grace, leash, allowance, climb_up, climb_down }, each of which may be \
                    left out"),
        "The figures by which moves are judged.";
    MOVE_TILE: "tile", Form::Quantity(Length, 1, 100_000),
        "Side of a tile where no map says it.";
    WORD: "word", Form::Quantity(Time, 50, 10_000),
        "A client that walks says a word at least this often.";
    GRACE: "grace", Form::Quantity(Time, 10, 10_000),
        "For how long beyond that an entity walks on without a word; at least a tick.";
    LEASH: "leash", Form::Quantity(Time, 50, 30_000),
        "A client stops when no word of this age was acknowledged; at least `word`.";
    ALLOWANCE: "allowance", Form::Quantity(Time, 51, 60_000),
        "How much more walking a client may claim than time has passed; more than `leash`.";
    CLIMB_UP: "climb_up", Form::Quantity(Length, 0, 100_000),
        "How much higher the next tile may lie; without it and `climb_down` heights stop nobody.";
    CLIMB_DOWN: "climb_down", Form::Quantity(Length, 0, 100_000),
        "How much lower the next tile may lie; as much as `climb_up` if it does not say.";
    BAND: "band", Form::Quantity(Length, 0, KM_1000),
        "Width of the band that a region mirrors to its neighbours; \"auto\" = the least that is enough.";
    LINES: "lines", Form::Count(1, 1_000_000), "Planes that automatic joins fill.";
    PLANE_GROUPS: "plane_groups", Form::Count(1, 256),
        "Groups of planes with regions of their own, which may live on different nodes.";
    LINE_CAPACITY: "line_capacity", Form::Count(1, 1_000_000), "Players for which a line has room.";
    MAP: "map", Form::Text("a section, [scene.map]"),
        "Where one can walk: tiles free or blocked, heights, doors. Without it everywhere, and flat.";
    TILE: "tile", Form::Quantity(Length, 1, 100_000),
        "Side of a tile of the map; it divides the scene's sides.";
    FILE: "file",
        Form::Text("the path of a file, from this file's folder: a Tiled map (.tmx, .tmj, .json) or a \
                    grey-scale picture (.png), of a tile or pixel for each tile"),
        "What is blocked.";
    MAP_LAYER: "layer", Form::Text("the name of a tile layer"),
        "Tiled maps only: the layer of which every tile is blocked.";
    THRESHOLD: "threshold", Form::Count(1, 255),
        "Pictures only: the grey, of 255, from which on a pixel is light.";
    BLOCKED: "blocked", Form::Choice(&["dark", "light"]),
        "Pictures only: which pixels are blocked.";
    HEIGHT: "height",
        Form::Text("the path of a grey-scale picture (.png), from this file's folder, of a pixel for \
                    each tile"),
        "How high the tiles lie; it counts in place of heights in a Tiled map.";
    HEIGHT_STEP: "height_step", Form::Quantity(Length, 1, 1_500),
        "What a grey level, or a step of a Tiled property `height`, is worth.";
    HEIGHT_ZERO: "height_zero", Form::Count(0, 65_535),
        "The grey level of the height picture that lies at 0.";
    DOOR: "door", Form::Text("a list of { name, tiles, open }"),
        "Doors and bridges beside those of a Tiled map.";
    DOOR_NAME: "name", Form::Text("1 to 64 bytes"), "By which it is opened and closed.";
    TILES: "tiles", Form::Text("four whole numbers, for example [10, 4, 2, 1]"),
        "West and north edge, width and depth, in tiles.";
    OPEN: "open", Form::Choice(&["no", "yes"]), "Whether it is open from the start.";
    SPAWN: "spawn", Form::Text("two lengths, for example [\"10m\", \"20m\"]"),
        "Where a player that names no place appears, x and z. Default: the middle of the map.";
}

/// The word of `known` next to `word`, if one is near enough to be what was meant.
pub(super) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let lower = word.to_lowercase().replace('-', "_");
    let limit = (lower.chars().count() / 3).max(2);
    known
        .iter()
        .map(|k| (distance(&lower, k), *k))
        .filter(|(d, k)| *d <= limit && *d < k.len())
        .min_by_key(|(d, _)| *d)
        .map(|(_, k)| k)
}

/// Edits between two words (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let cost = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
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

    #[test]
    fn edits_are_counted() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
