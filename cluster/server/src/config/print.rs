//! Prints a configuration as TOML, with the meaning, the legal values and the default of each key.

use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;
use purview::scene::spec::{BondSpec, CrowdSpec, MoveSpec, Moves, UpdateError};
use purview::scene::{RangeSet, SceneSpec, Visibility};

use super::keys::{self, Form, Key};
use super::units::Quantity;
use super::{
    AddressLimits, CertificateSettings, ClusterSettings, Config, GatewaySettings, LogFormat,
    LogicSettings, TokenSettings,
};
use super::{kind_properties, kind_watch};
use crate::logins::Duplicate;
use crate::maps::{DoorSpec, MapSpec, Shade};

/// The text of `config`.
pub(super) fn print(config: &Config) -> String {
    let d = Config::default();
    let mut out = Page::default();
    out.key(&keys::TICK, &ms(config.tick_ms.into()), &ms(d.tick_ms.into()));
    out.section("[server]");
    out.key(&keys::ARBITERS, &config.server.arbiters, &d.server.arbiters);
    let region_threads = (&config.server.region_threads, &d.server.region_threads);
    out.key(&keys::REGION_THREADS, region_threads.0, region_threads.1);
    match &config.server.data_dir {
        Some(path) => out.key(&keys::DATA_DIR, &text(&path.to_string_lossy()), &"none"),
        None => {
            out.about(&keys::DATA_DIR, &"none");
            out.0.push_str("# data_dir = \"data\"\n");
        }
    }
    let time = |t: Duration| ms(t.as_millis() as i64);
    out.key(&keys::DEMO, &config.server.demo, &d.server.demo);
    out.key(&keys::STOP_GRACE, &time(config.server.grace), &time(d.server.grace));
    gateway(&mut out, &config.gateway, &d.gateway);
    out.section("[console]");
    out.key(&keys::LISTEN, &address(config.console.listen), &address(d.console.listen));
    out.file(&keys::TOKEN_FILE, config.console.token_file.as_deref(), "", "console.token");
    let file = config.console.command_token_file.as_deref();
    out.file(&keys::COMMAND_TOKEN_FILE, file, "", "command.token");
    out.key(&keys::HOSTS, &text(&config.console.hosts.join(", ")), &text(""));
    listener_tls(&mut out, "[console.tls]", config.console.tls.as_ref());
    logic(&mut out, &config.logic, &d.logic);
    cluster(&mut out, &config.cluster, &d.cluster);
    token(&mut out, &config.token);
    out.section("[log]");
    out.key(&keys::LEVEL, &text(&config.log.level), &text(&d.log.level));
    let format = |f| match f {
        LogFormat::Text => text("text"),
        LogFormat::Json => text("json"),
    };
    out.key(&keys::FORMAT, &format(config.log.format), &format(d.log.format));
    for settings in &config.scenes {
        scene(&mut out, &settings.spec, &super::default_scene(), config.tick_ms);
        match &settings.map {
            Some(spec) => map(&mut out, spec, &MapSpec::default()),
            None => out.about(&keys::MAP, &"none"),
        }
    }
    out.0
}

fn token(out: &mut Page, t: &TokenSettings) {
    out.section("[token]");
    let files = [
        (&keys::SECRET_FILE, &t.secret_file, "purview.secret"),
        (&keys::KEYS_FILE, &t.keys_file, "keys.json"),
    ];
    for (key, path, example) in files {
        match path {
            Some(path) => out.key(key, &text(&path.to_string_lossy()), &"none"),
            None => {
                out.about(key, &"none");
                out.line(format_args!("# {} = {example:?}", key.name));
            }
        }
    }
    for (key, said) in [(&keys::ISSUER, &t.issuer), (&keys::AUDIENCE, &t.audience)] {
        out.key(key, &text(said.as_deref().unwrap_or_default()), &"anything");
    }
    let expiry = if t.may_last { "optional" } else { "required" };
    out.key(&keys::EXPIRY, &text(expiry), &text("required"));
    let name = |duplicate| match duplicate {
        Duplicate::Replace => text("replace"),
        Duplicate::Refuse => text("refuse"),
        Duplicate::Allow => text("allow"),
    };
    match t.duplicate {
        Some(duplicate) => out.key(&keys::DUPLICATE, &name(duplicate), &text("replace")),
        None => {
            out.about(&keys::DUPLICATE, &text("replace"));
            out.line(format_args!("# duplicate = \"replace\""));
        }
    }
    match t.max_sessions {
        Some(most) => out.key(&keys::SUBJECT_SESSIONS, &most, &8),
        None => {
            out.about(&keys::SUBJECT_SESSIONS, &8);
            out.line(format_args!("# {} = 8", keys::SUBJECT_SESSIONS.name));
        }
    }
}

fn cluster(out: &mut Page, c: &ClusterSettings, d: &ClusterSettings) {
    out.section("[cluster]");
    out.key(&keys::CLUSTER_NAME, &text(&c.name), &text(&d.name));
    out.key(&keys::NODE, &text(&c.node), &text(&d.node));
    out.key(&keys::PEERS, &address(Some(c.listen)), &address(Some(d.listen)));
    out.key(&keys::ADVERTISE, &text(&c.advertise), &text(&d.advertise));
    out.key(&keys::ETCD, &text(&c.etcd), &text(&d.etcd));
    let time = |t: Duration| ms(t.as_millis() as i64);
    out.key(&keys::ETCD_USER, &text(&c.etcd_user), &text(&d.etcd_user));
    let file = c.etcd_password_file.as_deref();
    out.file(&keys::ETCD_PASSWORD_FILE, file, "none", "etcd.password");
    out.key(&keys::POSTGRES, &text(&c.postgres), &text(&d.postgres));
    let file = c.postgres_password_file.as_deref();
    out.file(&keys::POSTGRES_PASSWORD_FILE, file, "none", "postgres.password");
    out.key(&keys::CHECKPOINT, &time(c.checkpoint), &time(d.checkpoint));
    out.key(&keys::LEASE, &time(c.lease), &time(d.lease));
    out.key(&keys::DRAIN, &time(c.drain), &time(d.drain));
    out.key(&keys::CAPACITY, &c.capacity, &d.capacity);
    out.key(&keys::INSECURE, &c.insecure, &d.insecure);
    let Some(tls) = &c.tls else { return out.about(&keys::TLS, &"none") };
    out.section("[cluster.tls]");
    let path = |file: &std::path::Path| text(&file.to_string_lossy());
    out.key(&keys::CERTIFICATE, &path(&tls.certificate), &"none");
    out.key(&keys::PRIVATE_KEY, &path(&tls.key), &"none");
    out.key(&keys::AUTHORITY, &path(&tls.authority), &"none");
}

fn logic(out: &mut Page, l: &LogicSettings, d: &LogicSettings) {
    let time = |t: Duration| ms(t.as_millis() as i64);
    out.section("[logic]");
    out.key(&keys::LOGIC_LISTEN, &address(l.listen), &address(d.listen));
    out.file(&keys::LOGIC_TOKEN_FILE, l.token_file.as_deref(), "", "logic.token");
    out.key(&keys::LOGIC_RESUME, &time(l.resume), &time(d.resume));
    out.key(&keys::LOGIC_TAKEOVER, &time(l.takeover), &time(d.takeover));
    let Form::Choice(words) = keys::LOGIC_ASK.form else { return };
    let word = |l: &LogicSettings| {
        let at = super::logic::ASKS.iter().position(|ask| *ask == l.ask);
        text(words[at.unwrap_or(0)])
    };
    out.key(&keys::LOGIC_ASK, &word(l), &word(d));
    out.key(&keys::LOGIC_ANSWER, &time(l.answer_within), &time(d.answer_within));
    let policy = |l: &LogicSettings| text(if l.admits_unanswered { "admit" } else { "refuse" });
    out.key(&keys::LOGIC_NO_ANSWER, &policy(l), &policy(d));
    out.key(&keys::LOGIC_WORKERS, &l.workers, &d.workers);
    listener_tls(out, "[logic.tls]", l.tls.as_ref());
}

fn gateway(out: &mut Page, g: &GatewaySettings, d: &GatewaySettings) {
    let time = |t: Duration| ms(t.as_millis() as i64);
    out.section("[gateway]");
    out.key(&keys::WS, &address(Some(g.ws)), &address(Some(d.ws)));
    out.key(&keys::TCP, &address(g.tcp), &address(d.tcp));
    out.key(&keys::RATE_LIMIT, &g.rate_limit, &d.rate_limit);
    out.key(&keys::BURST, &g.burst, &d.burst);
    out.key(&keys::HEARTBEAT, &time(g.heartbeat), &time(d.heartbeat));
    out.key(&keys::HANDSHAKE_TIMEOUT, &time(g.handshake_timeout), &time(d.handshake_timeout));
    out.key(&keys::SEND_QUEUE, &g.send_queue, &d.send_queue);
    out.key(&keys::SLOW_CLOSE, &time(g.slow_close), &time(d.slow_close));
    out.key(&keys::GRACE_PERIOD, &time(g.grace_period), &time(d.grace_period));
    out.key(&keys::STORE_WAIT, &time(g.store_wait), &time(d.store_wait));
    out.key(&keys::MAX_SESSIONS, &g.max_sessions, &d.max_sessions);
    out.key(&keys::UNAUTHENTICATED, &g.unauthenticated, &d.unauthenticated);
    out.key(&keys::PROXIES, &networks(&g.proxies), &networks(&d.proxies));
    let origins: Vec<_> = g.origins.iter().map(|origin| text(origin)).collect();
    out.key(&keys::ORIGINS, &format!("[{}]", origins.join(", ")), &"");
    limits(out, &g.limits, &d.limits);
    listener_tls(out, "[gateway.tls]", g.tls.as_ref());
}

fn networks(networks: &[IpNet]) -> String {
    let all: Vec<_> = networks.iter().map(|net| text(&net.to_string())).collect();
    format!("[{}]", all.join(", "))
}

fn limits(out: &mut Page, l: &AddressLimits, d: &AddressLimits) {
    out.section("[gateway.limits]");
    out.key(&keys::CONNECTIONS, &l.connections, &d.connections);
    out.key(&keys::HANDSHAKES, &l.handshakes, &d.handshakes);
    out.key(&keys::FAILED_TOKENS, &l.failed_tokens, &d.failed_tokens);
    let time = |t: Duration| ms(t.as_millis() as i64);
    out.key(&keys::BLOCK, &time(l.block), &time(d.block));
    out.key(&keys::EXEMPT, &networks(&l.exempt), &networks(&d.exempt));
}

fn listener_tls(out: &mut Page, header: &str, tls: Option<&CertificateSettings>) {
    let Some(tls) = tls else { return out.about(&keys::LISTENER_TLS, &"none") };
    out.section(header);
    let path = |file: &std::path::Path| text(&file.to_string_lossy());
    out.key(&keys::LISTENER_CERTIFICATE, &path(&tls.certificate), &"none");
    out.key(&keys::LISTENER_KEY, &path(&tls.key), &"none");
}

fn scene(out: &mut Page, s: &SceneSpec, d: &SceneSpec, tick_ms: u32) {
    out.section("[[scene]]");
    out.key(&keys::NAME, &text(&s.name), &text(&d.name));
    out.key(&keys::WIDTH, &cm(s.width_cm), &cm(d.width_cm));
    out.key(&keys::DEPTH, &cm(s.depth_cm), &cm(d.depth_cm));
    out.key(&keys::HEIGHT_LIMIT, &cm(s.height_limit_cm), &cm(d.height_limit_cm));
    out.key(&keys::LAND, &cm(s.land_cm), &cm(d.land_cm));
    let region = |s: &SceneSpec| format!("[{}, {}]", s.region_lands_x, s.region_lands_z);
    out.key(&keys::REGION, &region(s), &region(d));
    layers_and_kinds(out, s, d);
    visibility(out, s, d);
    out.key(&keys::VIEW_CAP, &s.view_cap, &d.view_cap);
    out.key(&keys::VIEW_MARGIN, &cm(s.view_margin_cm), &cm(d.view_margin_cm));
    let bonds = |b: &BondSpec| {
        let kinds: Vec<_> = b.kinds.iter().map(|k| text(k)).collect();
        let (kinds, fight) = (kinds.join(", "), ms(b.fight_ms.into()));
        let (cap, enter, leave) = (b.cap, cm(b.enter_cm), cm(b.leave_cm));
        format!(
            "{{ kinds = [{kinds}], cap = {cap}, enter = {enter}, leave = {leave}, fight = {fight} }}"
        )
    };
    out.key(&keys::BONDS, &bonds(&s.bonds), &bonds(&d.bonds));
    let rates = |s: &SceneSpec, tick: u32| {
        let time = |ticks: u32| ms(i64::from(ticks) * i64::from(tick));
        let (near, middle, far) = (time(s.rates.near), time(s.rates.middle), time(s.rates.far));
        format!("{{ near = {near}, middle = {middle}, far = {far} }}")
    };
    out.key(&keys::RATES, &rates(s, tick_ms), &"500ms (every tick without update_error), 1s, 4s");
    let update_error = |s: &SceneSpec| match s.update_error {
        Some(UpdateError { min_cm, share_permille: share }) => {
            let share = text(&format!("{}.{}%", share / 10, share % 10));
            format!("{{ min = {}, share = {share} }}", cm(min_cm))
        }
        None => text("off"),
    };
    out.key(&keys::UPDATE_ERROR, &update_error(s), &update_error(d));
    let size = |bytes: usize| text(&Quantity::Size.text(bytes as i64));
    out.key(&keys::FRAME_BUDGET, &size(s.frame_budget_bytes), &size(d.frame_budget_bytes));
    let egress = |s: &SceneSpec| match s.egress_bits_s {
        0 => text("off"),
        bits => text(&Quantity::Flow.text(bits.into())),
    };
    out.key(&keys::EGRESS, &egress(s), &egress(d));
    let pace = |s: &SceneSpec| {
        let bytes = size(s.pace.bytes_per_s as usize);
        format!("{{ acts = {}, bytes = {bytes} }}", s.pace.acts_per_s)
    };
    out.key(&keys::PACE, &pace(s), &pace(d));
    let crowd = |s: &SceneSpec| match s.crowd {
        Some(CrowdSpec { max, interval }) => {
            format!("{{ max = {max}, every = {} }}", ms(i64::from(interval) * i64::from(tick_ms)))
        }
        None => text("off"),
    };
    out.key(&keys::CROWD, &crowd(s), &crowd(d));
    out.key(&keys::HANDOFF_MARGIN, &cm(s.handoff_margin_cm), &cm(d.handoff_margin_cm));
    let speed = |v: i32| text(&Quantity::Speed.text(v.into()));
    out.key(&keys::TOP_SPEED, &speed(s.top_speed_cm_s), &speed(d.top_speed_cm_s));
    moves(out, s, &d.moves);
    let teleports = |s: &SceneSpec| text(if s.client_teleports { "clients" } else { "logic" });
    out.key(&keys::TELEPORTS, &teleports(s), &teleports(d));
    let band = |v: i32| if v == 0 { text("auto") } else { cm(v) };
    out.key(&keys::BAND, &band(s.band_cm), &band(d.band_cm));
    out.key(&keys::LINES, &s.lines, &d.lines);
    out.key(&keys::LINE_CAPACITY, &s.line_capacity, &d.line_capacity);
    out.key(&keys::PLANE_GROUPS, &s.plane_groups, &d.plane_groups);
    let spawn = format!("[{}, {}]", cm(s.spawn_x_cm), cm(s.spawn_z_cm));
    out.key(&keys::SPAWN, &spawn, &"");
}

fn moves(out: &mut Page, s: &SceneSpec, d: &MoveSpec) {
    let name = |m: &MoveSpec| text(if m.mode == Moves::Judged { "judged" } else { "trusted" });
    out.key(&keys::MOVES, &name(&s.moves), &name(d));
    let figures = |m: &MoveSpec| {
        let tile = (m.tile_cm != d.tile_cm).then(|| format!("tile = {}, ", cm(m.tile_cm)));
        let time = |v: u32| ms(v.into());
        let (name, grace) = (time(m.command_ms), time(m.grace_ms));
        let (leash, allowance) = (time(m.leash_ms), time(m.allowance_ms));
        let climb = m
            .climb
            .map(|c| format!(", climb_up = {}, climb_down = {}", cm(c.up_cm), cm(c.down_cm)));
        format!(
            "{{ {}command = {name}, grace = {grace}, leash = {leash}, allowance = {allowance}{} }}",
            tile.unwrap_or_default(),
            climb.unwrap_or_default()
        )
    };
    let default = format!("{}; tiles of {}, no limit to climbing", figures(d), cm(d.tile_cm));
    out.key(&keys::MOVEMENT, &figures(&s.moves), &default);
}

fn map(out: &mut Page, m: &MapSpec, d: &MapSpec) {
    out.section("[scene.map]");
    let path = |file: &std::path::Path| text(&file.to_string_lossy());
    out.key(&keys::TILE, &cm(m.tile_cm), &cm(d.tile_cm));
    if let Some(file) = &m.file {
        out.key(&keys::FILE, &path(file), &"none");
        if m.is_picture() {
            out.key(&keys::THRESHOLD, &m.threshold, &d.threshold);
            let name = if m.blocked == Shade::Dark { "dark" } else { "light" };
            out.key(&keys::BLOCKED, &text(name), &text("dark"));
        } else if let Some(layer) = &m.layer {
            out.key(&keys::MAP_LAYER, &text(layer), &"\"blocked\", if there is one");
        }
    }
    if let Some(file) = &m.height {
        out.key(&keys::HEIGHT, &path(file), &"none");
        out.key(&keys::HEIGHT_ZERO, &m.height_zero, &d.height_zero);
    }
    out.key(&keys::HEIGHT_STEP, &cm(m.height_step_cm), &cm(d.height_step_cm));
    if !m.doors.is_empty() {
        let entry = |door: &DoorSpec| {
            let (name, tiles, open) = (text(&door.name), door.tiles, door.open);
            format!("{{ name = {name}, tiles = {tiles:?}, open = {open} }}")
        };
        out.list(&keys::DOOR, m.doors.iter().map(entry), "none");
    }
}

fn layers_and_kinds(out: &mut Page, s: &SceneSpec, d: &SceneSpec) {
    match &s.layers[..] {
        [only] if only.name == "common" => out.key(&keys::PATCH, &cm(only.patch_cm), &""),
        layers => {
            let entry = |l: &purview::scene::spec::LayerSpec| {
                format!("{{ name = {}, patch = {} }}", text(&l.name), cm(l.patch_cm))
            };
            out.list(&keys::LAYER, layers.iter().map(entry), "one layer, \"common\"");
        }
    }
    let entry = |k: &purview::scene::spec::KindSpec| {
        let layer = s.layers.get(k.layer).map_or("", |l| &l.name);
        let speed = |v: i32| format!(", speed = {}", text(&Quantity::Speed.text(v.into())));
        let speed = k.speed_cm_s.map(speed).unwrap_or_default();
        let properties: Vec<_> = k.properties.iter().map(kind_properties::text).collect();
        let properties = match properties.is_empty() {
            true => String::new(),
            false => format!(", properties = [{}]", properties.join(", ")),
        };
        let watch = kind_watch::text(k.watch.as_ref(), &s.kinds);
        let sights: Vec<_> = k.sights.iter().copied().map(range).collect();
        let sights = match sights.is_empty() {
            true => String::new(),
            false => format!(", sights = [{}]", sights.join(", ")),
        };
        let (name, layer) = (text(&k.name), text(layer));
        format!("{{ name = {name}, layer = {layer}{speed}{properties}{watch}{sights} }}")
    };
    let names: Vec<_> = d.kinds.iter().map(|k| k.name.as_str()).collect();
    out.list(&keys::KIND, s.kinds.iter().map(entry), &names.join(", "));
}

fn visibility(out: &mut Page, s: &SceneSpec, d: &SceneSpec) {
    let name = match s.visibility {
        Visibility::Patches => "patches",
        Visibility::Circle { .. } => "circle",
        Visibility::All => "all",
    };
    out.key(&keys::VISIBILITY, &text(name), &text("patches"));
    if let Visibility::Circle { enter_cm, leave_cm } = s.visibility {
        out.key(&keys::ENTER, &cm(enter_cm), &text("80m"));
        out.key(&keys::LEAVE, &cm(leave_cm), &text("85m"));
    }
    if s.visibility == Visibility::Patches {
        out.key(&keys::RANGE, &range(s.range), &range(d.range));
        let margin = |cm_or_auto: Option<i32>| cm_or_auto.map_or_else(|| text("auto"), cm);
        out.key(&keys::PATCH_MARGIN, &margin(s.patch_margin_cm), &margin(d.patch_margin_cm));
    }
}

fn range(range: RangeSet) -> String {
    if range == RangeSet::FULL {
        return text("full");
    }
    let rings = ["near", "middle", "far"].into_iter().zip(0..);
    let rings: Vec<_> = rings.filter(|(_, r)| range.has_ring(*r)).map(|(n, _)| text(n)).collect();
    format!("[{}]", rings.join(", "))
}

fn cm(value: i32) -> String {
    text(&Quantity::Length.text(value.into()))
}

fn ms(value: i64) -> String {
    text(&Quantity::Time.text(value))
}

fn address(address: Option<SocketAddr>) -> String {
    text(&address.map_or("off".into(), |a| a.to_string()))
}

/// A text as TOML quotes it.
fn text(value: &str) -> String {
    toml::Value::String(value.into()).to_string()
}

/// The text being written.
#[derive(Default)]
struct Page(String);

impl Page {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        self.0.push_str(&line.to_string());
        self.0.push('\n');
    }

    fn section(&mut self, header: &str) {
        self.line(format_args!("\n{header}"));
    }

    fn about(&mut self, key: &Key, default: &dyn std::fmt::Display) {
        let default = default.to_string();
        let default = if default.is_empty() { default } else { format!(" Default: {default}.") };
        let rule = key.form.rule();
        let mut chars = rule.chars();
        let rule: String =
            chars.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(chars).collect();
        self.line(format_args!("# {}\n# {rule}.{default}", key.says));
    }

    fn key(&mut self, key: &Key, value: &dyn std::fmt::Display, default: &dyn std::fmt::Display) {
        self.about(key, default);
        self.line(format_args!("{} = {value}", key.name));
    }

    /// The path of a file, or, if there is none, an example as a comment.
    fn file(&mut self, key: &Key, path: Option<&std::path::Path>, default: &str, example: &str) {
        match path {
            Some(path) => self.key(key, &text(&path.to_string_lossy()), &default),
            None => {
                self.about(key, &default);
                self.line(format_args!("# {} = {}", key.name, text(example)));
            }
        }
    }

    fn list(&mut self, key: &Key, entries: impl Iterator<Item = String>, default: &str) {
        self.about(key, &default);
        self.line(format_args!("{} = [", key.name));
        for entry in entries {
            self.line(format_args!("    {entry},"));
        }
        self.line(format_args!("]"));
    }
}
